/** Conductors in processes of their own, on ZooKeeper: stopped, killed and ended while their children work. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type JobBoard, openBoard } from '../../../src/index.ts'
import { isAlive, newFile, sendSignal, whenDead } from '../../pool/pools.ts'
import { ensureBuilt } from '../../support/build.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { type NodeProcess, startNode } from '../../support/node-process.ts'
import { startProxy } from '../../support/proxy.ts'
import { startZooKeeper } from '../../support/zookeeper.ts'

const PROCESS = new URL('./attempt-process.mjs', import.meta.url)
const MODULE = new URL('./attempt-flows.mjs', import.meta.url).href

interface Place {
  readonly uri: string
  readonly persistence: string
}

async function newPlace(uri: string): Promise<Place> {
  await ensureBuilt()
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-isolated-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return { uri, persistence: `directory:${join(folder, 'logbooks')}` }
}

async function startProcess(place: Place, name: string, pool: object = { max: 1 }): Promise<NodeProcess> {
  const started = await startNode(PROCESS, [place.uri, place.persistence, name, MODULE, JSON.stringify(pool)])
  onTestFinished(() => {
    started.signal('SIGCONT')
    return started[Symbol.asyncDispose]()
  })
  await started.says('ready')
  return started
}

interface AttemptOptions {
  readonly how: 'compute' | 'grandchild' | 'wait'
  readonly gate?: string
}

/** Posts a job, and resolves when its first attempt has begun. */
async function begin(board: JobBoard, { how, gate = '' }: AttemptOptions) {
  const file = await newFile()
  const job = await board.post('attempting', { file, how, gate }, { name: 'the-job' })
  const [pid = 0] = await vi.waitFor(
    () => {
      const pids = pidsOf(file, 'begin')
      expect(pids).toHaveLength(1)
      return pids
    },
    { timeout: 30_000 },
  )
  return { job, file, pid }
}

function pidsOf(file: string, word: string): number[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  return lines.filter((line) => line.startsWith(word)).map((line) => Number(line.split(' ')[1]))
}

describe.skipIf(!zookeeperHosts)('a conductor in a process of its own', () => {
  test('that is stopped for longer than its session loses the job to another, and the attempts do not overlap', async () => {
    await using server = await startZooKeeper({ tickTime: 250 })
    const place = await newPlace(`zookeeper://${server.hosts}/stopped?tick=250ms&sessionTimeout=3s`)
    const first = await startProcess(place, 'first')
    await using board = await openBoard(place.uri)
    const { job, file, pid } = await begin(board, { how: 'compute' })
    const second = await startProcess(place, 'second')
    first.signal('SIGSTOP')
    expect(await job.wait()).toBe('COMPLETE')
    expect(isAlive(pid)).toBe(false)
    await second.says('settled the-job consumed')
    first.signal('SIGCONT')
    await first.says('settled the-job lost')
    expect(pidsOf(file, 'begin')).toHaveLength(2)
    expect(pidsOf(file, 'overlap')).toEqual([])
  })

  test('that is cut off and then stopped has no child that works any more when another is given the job', async () => {
    await using server = await startZooKeeper({ tickTime: 500 })
    await using proxy = await startProxy({ port: server.port })
    const path = '/cut-off?tick=500ms&sessionTimeout=8s'
    const place = await newPlace(`zookeeper://${server.hosts}${path}`)
    const first = await startProcess({ ...place, uri: `zookeeper://${proxy.hosts}${path}` }, 'first')
    await using board = await openBoard(place.uri)
    const { job, file, pid } = await begin(board, { how: 'compute' })
    await startProcess(place, 'second')
    proxy.mode = 'blackhole'
    // They are spread over the time in which the session would be renewed: more than half of the session is over after them.
    for (let request = 0; request < 5; request += 1) await proxy.nextRequest()
    first.signal('SIGSTOP')
    expect(await job.wait()).toBe('COMPLETE')
    expect(isAlive(pid)).toBe(false)
    expect(pidsOf(file, 'overlap')).toEqual([])
  })

  test('that is stopped for less than its session gives the job back, and the job is not charged', async () => {
    await using server = await startZooKeeper({ tickTime: 500 })
    const place = await newPlace(`zookeeper://${server.hosts}/paused?tick=500ms&sessionTimeout=10s`)
    const conductor = await startProcess(place, 'only')
    await using board = await openBoard(place.uri)
    const { job, file, pid } = await begin(board, { how: 'compute' })
    conductor.signal('SIGSTOP')
    await whenDead([pid])
    conductor.signal('SIGCONT')
    expect(await job.wait()).toBe('COMPLETE')
    await conductor.says('settled the-job consumed')
    expect(conductor.lines).not.toContain('settled the-job charged')
    expect(pidsOf(file, 'overlap')).toEqual([])
  })

  test('that is killed takes its child and the process along that this has started, and another does the job', async () => {
    await using server = await startZooKeeper({ tickTime: 250 })
    const place = await newPlace(`zookeeper://${server.hosts}/killed?tick=250ms&sessionTimeout=3s`)
    const first = await startProcess(place, 'first')
    await using board = await openBoard(place.uri)
    const { job, file, pid } = await begin(board, { how: 'grandchild' })
    const second = await startProcess(place, 'second')
    first.signal('SIGKILL')
    await whenDead([pid, ...pidsOf(file, 'grandchild')])
    expect(await job.wait()).toBe('COMPLETE')
    await second.says('settled the-job consumed')
    expect(pidsOf(file, 'overlap')).toEqual([])
  })

  test('that a service manager ends with all its processes finishes its tasks first', async () => {
    const place = await newPlace(`zookeeper://${zookeeperHosts}${namespace('manager')}`)
    const conductor = await startProcess(place, 'only')
    await using board = await openBoard(place.uri)
    const gate = await newFile()
    const { job, file, pid } = await begin(board, { how: 'wait', gate })
    for (const each of [pid, conductor.pid]) sendSignal(each, 'SIGTERM')
    await conductor.says('draining')
    expect(isAlive(pid)).toBe(true)
    await writeFile(gate, '')
    expect(await conductor.ended).toBe(0)
    expect(await job.wait()).toBe('COMPLETE')
    expect(conductor.lines).toContain('settled the-job consumed')
    expect([pidsOf(file, 'begin'), pidsOf(file, 'end')]).toEqual([[pid], [pid]])
    await whenDead([pid])
  })

  test('that replaces its children after three tasks starts each successor first, and no job fails', async () => {
    const place = await newPlace(`zookeeper://${zookeeperHosts}${namespace('recycling')}`)
    const conductor = await startProcess(place, 'only', { min: 1, max: 2, maxTasks: 3 })
    await using board = await openBoard(place.uri)
    const jobs = await Promise.all(Array.from({ length: 40 }, (_, n) => board.post('visiting', { n })))
    expect(new Set(await Promise.all(jobs.map((job) => job.wait())))).toEqual(new Set(['COMPLETE']))
    const { lines } = conductor
    expect(lines.filter((line) => line.endsWith('charged'))).toEqual([])
    // The first child was ready before it could be said.
    let living = 1
    const died = lines.filter((line) => line.startsWith('child died'))
    for (const line of lines) {
      if (line.startsWith('child started')) living += 1
      if (line.startsWith('child died')) living -= 1
      expect(living, 'a child has ended before its successor was ready').toBeGreaterThanOrEqual(1)
    }
    expect(died.length).toBeGreaterThanOrEqual(9)
    expect(died.filter((line) => !line.endsWith('true'))).toEqual([])
    conductor.signal('SIGTERM')
    expect(await conductor.ended).toBe(0)
    await whenDead(lines.filter((line) => line.startsWith('child started')).map((line) => Number(line.split(' ')[2])))
  }, 180_000)
})
