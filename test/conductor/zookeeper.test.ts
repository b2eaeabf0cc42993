/** Conductors on real servers: a leader that dies, very many at once, jobs that kill or block their process, and rest. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pass } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { EventLoopBlocked } from '../../src/conductor/event-loop-watch.ts'
import { input, type JobBoard, linear, openBoard, openPersistence, startConductor, task } from '../../src/index.ts'
import { all } from '../board/jobs.ts'
import { count } from '../support/counts.ts'
import { startEnsemble } from '../support/ensemble.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { type NodeProcess, startNode } from '../support/node-process.ts'
import { startProxy } from '../support/proxy.ts'
import { startZooKeeper, type ZooKeeperServer } from '../support/zookeeper.ts'
import { portOf } from '../zookeeper/clients.ts'
import { singleTaskFlow, startTestConductor } from './conducting.ts'

const CROWD = count({ test: 60, long: 200 })

describe.skipIf(!zookeeperHosts)('conductors on ZooKeeper', () => {
  test('a leader that is killed under load costs no run: each job is done once, by its first', async () => {
    await using ensemble = await startEnsemble()
    const persistence = await openPersistence('memory:')
    const ran: number[] = []
    const leader = await ensemble.leader()
    let killed: Promise<void> | undefined
    const flow = singleTaskFlow('flow', ({ n }) => {
      if (ran.push(n) === 150) killed = leader.kill()
    })
    await using board = await openBoard(`zookeeper://${ensemble.hosts}/leader`)
    for (const who of ['a', 'b']) {
      const own = await openBoard(`zookeeper://${ensemble.hosts}/leader`, { who })
      onTestFinished(() => own.close())
      await startTestConductor({ board: own, persistence, flows: [flow], name: who, concurrency: 16 })
    }
    const jobs = await Promise.all(Array.from({ length: 500 }, (_, n) => board.post(flow, { n })))
    const states = await Promise.all(jobs.map((job) => job.wait()))
    await killed
    expect(new Set(states)).toEqual(new Set(['COMPLETE']))
    expect(ran.sort((x, y) => x - y)).toEqual(jobs.map((_, n) => n))
    expect(await all(board.trashed())).toEqual([])
  })

  test('a conductor that stops does not wait for a server that answers nothing any more', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    const uri = `zookeeper://${proxy.hosts}${namespace('mute')}?sessionTimeout=10m`
    const board = await openBoard(uri)
    const flow = singleTaskFlow('flow', () => undefined)
    const conductor = await startConductor({ board, persistence: 'memory:', flows: [flow], name: 'a' })
    proxy.mode = 'blackhole'
    expect(board.connected).toBe(true)
    await conductor.stop()
    expect(conductor.state).toBe('stopped')
    proxy.mode = 'pass'
    proxy.resetAll()
    await board.close()
  })

  test('very many conductors start at once, and share twice as many jobs', async () => {
    const uri = `zookeeper://${zookeeperHosts}${namespace('crowd')}`
    const persistence = await openPersistence('memory:')
    const ran: number[] = []
    const flow = singleTaskFlow('flow', ({ n }) => ran.push(n))
    await using board = await openBoard(uri)
    const conductors = await Promise.all(
      Array.from({ length: CROWD }, async (_, index) => {
        const own = await openBoard(uri, { who: `conductor ${index}` })
        onTestFinished(() => own.close())
        return startTestConductor({
          board: own,
          persistence,
          flows: [flow],
          name: `conductor ${index}`,
          concurrency: 2,
        })
      }),
    )
    expect(await board.entities('conductor')).toHaveLength(CROWD)
    const jobs = await Promise.all(Array.from({ length: 2 * CROWD }, (_, n) => board.post(flow, { n })))
    expect(new Set(await Promise.all(jobs.map((job) => job.wait())))).toEqual(new Set(['COMPLETE']))
    expect(ran.sort((x, y) => x - y)).toEqual(jobs.map((_, n) => n))
    expect(conductors.filter(({ healthy }) => healthy)).toHaveLength(CROWD)
  })

  test('a job that kills its process ends in the trash with its ten owners, and the others are done', async () => {
    await using server = await startZooKeeper({ tickTime: 100 })
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-poison-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const uri = `zookeeper://${server.hosts}/poison?tick=100ms&sessionTimeout=2s`
    await using board = await openBoard(uri)
    const poison = await board.post('poison', {})
    const fine = await Promise.all(Array.from({ length: 20 }, () => board.post('fine', {})))
    const trashed = poison.wait()
    await using crowd = new Crowd([uri, `directory:${join(folder, 'logbooks')}`])
    crowd.keep(4)
    expect(await trashed).toBe('TRASHED')
    expect(new Set(await Promise.all(fine.map((job) => job.wait())))).toEqual(new Set(['COMPLETE']))
    const [entry, ...others] = await all(board.trashed())
    expect(others).toEqual([])
    expect(entry).toMatchObject({ uuid: poison.uuid, reason: 'its owner died 10 times in a row' })
    expect(entry?.attempts.map(({ ended, reason }) => ({ ended, reason }))).toEqual(
      Array.from({ length: 10 }, () => ({ ended: undefined, reason: undefined })),
    )
    expect(new Set(entry?.attempts.map(({ who }) => who)).size).toBe(10)
  })

  test('one that was killed is started again under its name as soon as its session is over', async () => {
    await using server = await startZooKeeper({ tickTime: 250 })
    const uri = `zookeeper://${server.hosts}/again?tick=250ms&sessionTimeout=2s`
    const child = new URL('../chaos/conductor/conductor-child.ts', import.meta.url)
    const killed = await startNode(child, [uri, 'memory:', 'http://127.0.0.1:9', 'one'])
    await killed.says('ready')
    killed.signal('SIGKILL')
    await killed.ended
    await using board = await openBoard(uri)
    expect(await board.entities('conductor')).toHaveLength(1)
    const flow = singleTaskFlow('flow', () => 1)
    await startTestConductor({ board, persistence: 'memory:', flows: [flow], name: 'one' })
    expect((await board.entities('conductor'))[0]?.metadata['pid']).toBe(process.pid)
    await using other = await openBoard(uri)
    const twin = startTestConductor({ board: other, persistence: 'memory:', flows: [flow], name: 'one' })
    await expect(twin).rejects.toThrow('registering conductor one: the name is in use')
  })

  test('a task that blocks for longer than the session: warned of, lost, and done by the next run', async () => {
    await using server = await startZooKeeper({ tickTime: 250 })
    await using board = await openBoard(`zookeeper://${server.hosts}/blocked?tick=250ms&sessionTimeout=1s`)
    const sleeper = new Int32Array(new SharedArrayBuffer(4))
    const block = task('block', {
      execute: (_: object, { run }) => void (run === 1 && Atomics.wait(sleeper, 0, 0, 2_500)),
    })
    const flow = linear('flow', input(), block)
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [flow] })
    const blocked = new Promise<EventLoopBlocked>((resolve) => conductor.on('eventLoopBlocked', resolve))
    const settled: string[] = []
    conductor.on('settled', (event) => settled.push(event.settled))
    const job = await board.post(flow, {})
    const { lag, sessionTimeout, tasks } = await blocked
    expect(tasks).toEqual([{ job: job.uuid, name: 'flow', task: 'block' }])
    expect(sessionTimeout).toBe(1_000)
    expect(lag).toBeGreaterThan(1_000)
    expect(await job.wait()).toBe('COMPLETE')
    expect(settled[0]).toBe('lost')
    expect(conductor.healthy).toBe(true)
  })

  test('an idle conductor sends nothing but pings', async () => {
    const time = count({ test: 4_000, long: 60_000 })
    await using server = await startZooKeeper()
    await using board = await openBoard(`zookeeper://${server.hosts}/idle`)
    await startTestConductor({ board, persistence: 'memory:', flows: [singleTaskFlow('flow', () => 1)] })
    const job = await board.post('flow', { n: 1 })
    await job.wait()
    await quiet(board, server)
    const before = await packets(server)
    const begin = performance.now()
    await pass(time)
    const pings = ((performance.now() - begin) * 3) / (board.sessionTimeout ?? Number.NaN)
    const after = await packets(server)
    expect(after.zxid).toBe(before.zxid)
    // Each question that we ask the server for its counters is one, too.
    expect(after.received - before.received).toBeLessThanOrEqual(Math.ceil(pings) + 2)
    expect(after.received - before.received).toBeGreaterThanOrEqual(1)
  })
})

/** A busy conductor shows itself as idle some seconds after the last job. */
async function quiet(board: JobBoard, server: ZooKeeperServer): Promise<void> {
  const state = async () => (await board.entities('conductor'))[0]?.metadata['state']
  await expect.poll(state, { timeout: 10_000 }).toBe('idle')
  let last = await packets(server)
  await expect
    .poll(
      async () => {
        const now = await packets(server)
        const same = now.zxid === last.zxid && now.received - last.received <= 2
        last = now
        return same
      },
      { timeout: 20_000, interval: 3_000 },
    )
    .toBe(true)
}

/** By the server's own count. */
async function packets(server: ZooKeeperServer): Promise<{ received: number; zxid: string | undefined }> {
  const text = await server.fourLetter('srvr')
  return { received: Number(/^Received: (\d+)/m.exec(text)?.[1]), zxid: /^Zxid: (\S+)/m.exec(text)?.[1] }
}

/** Processes of which so many live: for each that dies another is started. */
class Crowd implements AsyncDisposable {
  readonly #arguments: readonly string[]
  readonly #living = new Set<Promise<NodeProcess>>()
  #over = false

  constructor(args: readonly string[]) {
    this.#arguments = args
  }

  keep(processes: number): void {
    for (let number = 0; number < processes; number += 1) void this.#keepOne()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true
    await Promise.all([...this.#living].map(async (starting) => (await starting)[Symbol.asyncDispose]()))
  }

  async #keepOne(): Promise<void> {
    while (!this.#over) {
      const starting = startNode(new URL('./poison-child.ts', import.meta.url), this.#arguments)
      this.#living.add(starting)
      await (await starting).ended
      this.#living.delete(starting)
    }
  }
}
