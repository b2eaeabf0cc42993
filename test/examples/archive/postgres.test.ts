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
  const [victim] = await demo.conductorPids()
  if (victim === undefined) throw new Error('there are no conductors')
  await untilRecorded(out, 30)
  await killAtWork(board, victim)
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
  const [, victim] = await demo.conductorPids()
  if (victim === undefined) throw new Error('there is no second conductor')
  await demo.says(/^200 jobs posted$/m)
  await untilRecorded(out, 30)
  await killAtWork(board, victim)
  expect(await demo.exitCode(), demo.output).toBe(0)
  expect(demo.output).toContain(`conductor 2 (process ${victim}) is gone (SIGKILL)`)
  expect((await manifestOf(out)).map((entry) => pathOf(entry).toString()).sort()).toEqual(names.sort())
  expect(await wrongEntries(folder, out)).toEqual([])
  expect((await runsOf(out)).some((run) => run > 1)).toBe(true)
  await using left = await openBoard(board)
  expect(await left.countJobs()).toBe(0)
})

/** Kills the process while it owns a job: it is stopped, so that none ends between the look and the kill. */
async function killAtWork(uri: string, pid: number): Promise<void> {
  // At once: on a quiet machine all jobs are done before a board is open.
  process.kill(pid, 'SIGSTOP')
  await using board = await openBoard(uri)
  using _view = await board.view()
  while (!(await ownsJob(board, pid))) {
    // Between two looks it has to get as far as a claim, while the others do the rest of the jobs.
    const claimed = new Promise((resolve) => board.on('claimed', resolve))
    process.kill(pid, 'SIGCONT')
    await claimed
    process.kill(pid, 'SIGSTOP')
  }
  process.kill(pid, 'SIGKILL')
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
