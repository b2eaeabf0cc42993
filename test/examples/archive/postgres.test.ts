/** The demo with its logbooks in Postgres, and what may happen meanwhile; and with its board there. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type JobBoard, openBoard, openPersistence } from 'jobboard'
import { expect, test } from 'vitest'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startPostgres } from '../../support/postgres.ts'
import { contentOf, Demo, manifestOf, pathOf, runsOf, temporaryFolder, untilRecorded, wrongEntries } from './demo.ts'

const FILES = 200

test('three conductors, one of them and then the database killed: every file is archived exactly once', async () => {
  await using server = await startPostgres()
  const { folder, out, names } = await manyFiles()
  const board = `zookeeper://${zookeeperHosts}${namespace('demo')}?sessionTimeout=3s`
  const persistence = server.uri.replace('postgres@', 'postgres:hidden@')
  const places = ['--board', board, '--persistence', persistence]
  const demo = new Demo([folder, '--out', out, ...places, '--conductors', '3'])
  const pids = await demo.conductorPids()
  await untilRecorded(out, 30)
  await killOneAtWork(board, pids)
  await untilRecorded(out, 60)
  await server.kill()
  await server.restart()

  expect(await demo.exitCode(), demo.output + demo.errors).toBe(0)
  expect((await manifestOf(out)).map((entry) => pathOf(entry).toString()).sort()).toEqual(names.sort())
  expect(await wrongEntries(folder, out)).toEqual([])
  expect((await runsOf(out, server.uri)).some((run) => run > 1)).toBe(true)
  expect(demo.output).toContain('postgres://postgres:***@127.0.0.1')
  expect(demo.output).not.toContain('hidden')
  await using logbooks = await openPersistence(server.uri, { create: false })
  let finished = 0
  for await (const _ of logbooks.listBooks({ state: 'SUCCESS' })) finished += 1
  expect(finished).toBe(FILES)
})

test('200 files on a board in Postgres, three conductors, one of them killed: every file is archived exactly once', async () => {
  await using server = await startPostgres()
  const { folder, out, names } = await manyFiles()
  const board = `${server.uri}?board=demo&sessionTimeout=3s`
  const demo = new Demo([folder, '--out', out, '--board', board, '--conductors', '3'])
  const pids = await demo.conductorPids()
  await demo.says(/^200 jobs posted$/m)
  await untilRecorded(out, 30)
  const victim = await killOneAtWork(board, pids)
  expect(await demo.exitCode(), demo.output).toBe(0)
  expect(demo.output).toContain(`conductor ${pids.indexOf(victim) + 1} (process ${victim}) is gone (SIGKILL)`)
  expect((await manifestOf(out)).map((entry) => pathOf(entry).toString()).sort()).toEqual(names.sort())
  expect(await wrongEntries(folder, out)).toEqual([])
  expect((await runsOf(out)).some((run) => run > 1)).toBe(true)
  await using left = await openBoard(board)
  expect(await left.countJobs()).toBe(0)
})

/**
 * Kills one of the processes while it owns a job. All of them are stopped meanwhile, so that none ends its jobs between the look and the kill.
 *
 * @returns the process that was killed
 */
async function killOneAtWork(uri: string, pids: readonly number[]): Promise<number> {
  const signal = (name: NodeJS.Signals, to: readonly number[]) => {
    for (const pid of to) process.kill(pid, name)
  }
  signal('SIGSTOP', pids)
  await using board = await openBoard(uri)
  using _view = await board.view()
  for (;;) {
    for (const pid of pids) {
      if (!(await ownsJob(board, pid))) continue
      process.kill(pid, 'SIGKILL')
      const others = pids.filter((other) => other !== pid)
      signal('SIGCONT', others)
      return pid
    }
    if ((await board.countJobs()) === 0) throw new Error('all jobs were done before')
    const claimed = new Promise((resolve) => board.on('claimed', resolve))
    signal('SIGCONT', pids)
    await claimed
    signal('SIGSTOP', pids)
  }
}

async function ownsJob(board: JobBoard, pid: number): Promise<boolean> {
  for await (const job of board.jobs({ ensureFresh: true })) {
    if (job.state !== 'CLAIMED') continue
    const owner = await board.findOwner(job).catch(() => undefined)
    if (owner?.endsWith(`:${pid}`)) return true
  }
  return false
}

async function manyFiles(): Promise<{ folder: string; out: string; names: string[] }> {
  const folder = await temporaryFolder()
  const out = join(await temporaryFolder(), 'out')
  const names = Array.from({ length: FILES }, (_, index) => `part-${index % 7}/file-${index}`)
  for (const [index, name] of names.entries()) {
    await mkdir(join(folder, `part-${index % 7}`), { recursive: true })
    await writeFile(join(folder, name), contentOf(index))
  }
  return { folder, out, names }
}
