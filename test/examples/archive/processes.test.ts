/** The demo with conductors in processes of their own, on a real ZooKeeper, and what may become of them. */
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Job, type JobBoard, openBoard } from 'jobboard'
import { ZooKeeper } from 'jobboard/zookeeper'
import { expect, test } from 'vitest'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import {
  contentOf,
  Demo,
  manifestOf,
  pathOf,
  runsOf,
  temporaryFolder,
  untilFolder,
  untilRecorded,
  wrongEntries,
} from './demo.ts'

const FILES = 300

/** A killed owner's jobs go to others when its session is over: sooner than by default, so that the test is. */
const SESSION = 'sessionTimeout=3s'

test('300 files, three conductors, one of them killed: every file is archived exactly once', async () => {
  const folder = await temporaryFolder()
  const out = join(await temporaryFolder(), 'out')
  const names = Array.from({ length: FILES }, (_, index) => `part-${index % 7}/file-${index}`)
  for (const [index, name] of names.entries()) {
    await mkdir(join(folder, `part-${index % 7}`), { recursive: true })
    await writeFile(join(folder, name), contentOf(index))
  }
  const path = namespace('demo')
  const uri = `zookeeper://${zookeeperHosts}${path}?${SESSION}`
  const demo = new Demo([folder, '--out', out, '--board', uri, '--conductors', '3'])
  const pids = await demo.conductorPids()
  const [, victim] = pids
  if (pids.length !== 3 || victim === undefined) throw new Error(`there are ${pids.length} conductors`)
  await demo.says(/^300 jobs posted$/m)
  await untilRecorded(out, 50)
  process.kill(victim, 'SIGKILL')

  expect(await demo.exitCode(), demo.output).toBe(0)
  expect(demo.output).toContain(`conductor 2 (process ${victim}) is gone (SIGKILL)`)
  const manifest = await manifestOf(out)
  expect(manifest.map((entry) => pathOf(entry).toString()).sort()).toEqual(names.sort())
  expect(await wrongEntries(folder, out)).toEqual([])
  // The kill did hit somebody at work.
  expect((await runsOf(out)).some((run) => run > 1)).toBe(true)
  await using observer = new ZooKeeper({ hosts: zookeeperHosts })
  await observer.connect()
  // Neither postings nor locks.
  expect((await observer.getChildren(path)).names.filter((name) => !name.startsWith('.'))).toEqual([])
  expect((await observer.getChildren(`${path}/.trash`)).names).toEqual([])
})

test('says how to watch it, asks its conductors to stop at Ctrl-C, and leaves alone what is not its own', async () => {
  const { folder, out } = await folderWithEndlessFile()
  const uri = `zookeeper://${zookeeperHosts}${namespace('demo')}`
  await using board = await openBoard(uri)
  const foreign = await board.post('somebody-elses', {})
  const demo = new Demo([folder, '--out', out, '--board', uri, '--conductors', '1', '--concurrency', '1'])
  const [, watching] = await demo.says(/^ {2}npx jobboard jobs (.*)$/m)
  expect(watching).toBe(`--board ${uri}`)
  const logbooks = `--persistence directory:${join(out, 'logbooks')}`
  const [, uuid = '', showing] = await demo.says(/^ {2}npx jobboard show (\S+) (.*)$/m)
  expect(showing).toBe(`--board ${uri} ${logbooks}`)
  await demo.says(/^2 jobs posted$/m)
  await untilFolder(join(out, 'manifest'), (names) => names.includes(`${uuid}.json`))
  await untilClaimed(board, 'b-endless')
  const [pid = 0] = await demo.conductorPids()
  demo.signal('SIGINT')
  await demo.says(/^interrupted/m)
  demo.signal('SIGTERM')
  expect(await demo.exitCode()).toBe(130)
  expect(demo.output).toMatch(/^not done {2}1 file$/m)
  expect(demo.output).toMatch(/^ +1 job of this run is left on zookeeper:.*, as flow archive-/m)
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  expect(foreign.state).toBe('UNCLAIMED')
  // What was given back is for anybody at once, and not held against the job.
  const jobs: Job[] = []
  for await (const job of board.jobs({ ensureFresh: true, onlyUnclaimed: true })) jobs.push(job)
  expect(jobs.map(({ name }) => name)).toEqual(['somebody-elses', 'b-endless'])
  expect(jobs[1]?.attempts).toMatchObject([{ ended: 'returned' }])
})

test('Ctrl-C before the conductors have started ends everything at once', async () => {
  const { folder, out } = await folderWithEndlessFile()
  const uri = `zookeeper://${zookeeperHosts}${namespace('demo')}`
  const demo = new Demo([folder, '--out', out, '--board', uri, '--conductors', '2'])
  // The last thing it does before it starts them.
  await untilFolder(dirname(out), (names) => names.includes('out'))
  demo.signal('SIGINT')
  expect(await demo.exitCode()).toBe(130)
  expect(demo.errors).toBe('interrupted\n')
  expect(demo.output).not.toContain('archiving')
  await using board = await openBoard(uri)
  expect([await board.countJobs(), await board.entities('conductor')]).toEqual([0, []])
})

test('when the last conductor is gone it says so and ends', async () => {
  const { folder, out } = await folderWithEndlessFile()
  const uri = `zookeeper://${zookeeperHosts}${namespace('demo')}`
  const demo = new Demo([folder, '--out', out, '--board', uri, '--conductors', '2'], { way: 'tsx' })
  const pids = await demo.conductorPids()
  await untilRecorded(out, 1)
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  expect(await demo.exitCode()).toBe(1)
  expect(demo.output).toMatch(/^ +because no conductor is left$/m)
  expect(demo.output).toMatch(/^not done {2}1 file$/m)
  expect(await manifestOf(out)).toMatchObject([{ name: 'a-file' }])
})

test('logbooks that cannot be used are complained of once, not by every conductor', async () => {
  const { folder, out } = await folderWithEndlessFile()
  const uri = `zookeeper://${zookeeperHosts}${namespace('demo')}`
  const demo = new Demo([folder, '--out', out, '--board', uri, '--conductors', '3', '--persistence', 'stone:'])
  expect(await demo.exitCode()).toBe(2)
  expect(demo.output).toBe('')
  expect(demo.errors.trim()).toMatch(/^.*the scheme stone: is not known for logbooks; use.*$/)
})

async function folderWithEndlessFile(): Promise<{ folder: string; out: string }> {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'a-file'), 'a file')
  await writeFile(join(folder, 'b-endless'), '')
  await truncate(join(folder, 'b-endless'), 64 * 2 ** 30)
  return { folder, out: join(await temporaryFolder(), 'out') }
}

async function untilClaimed(board: JobBoard, name: string): Promise<void> {
  let wake = () => {}
  for (const event of ['posted', 'claimed'] as const) board.on(event, () => wake())
  while (true) {
    const happened = new Promise<void>((resolve) => {
      wake = resolve
    })
    for await (const job of board.jobs()) if (job.name === name && job.state === 'CLAIMED') return
    await happened
  }
}
