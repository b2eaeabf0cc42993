/** The demo with its logbooks in Postgres, which is killed and comes back while three conductors work; and with its board there. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openBoard } from 'jobboard'
import { expect, test } from 'vitest'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startPostgres } from '../../support/postgres.ts'
import { contentOf, Demo, manifestOf, pathOf, runsOf, temporaryFolder, untilRecorded, wrongEntries } from './demo.ts'

const FILES = 200

test('200 files, three conductors, Postgres killed in the middle: every file is archived once, by its first run', async () => {
  await using server = await startPostgres()
  const { folder, out, names } = await manyFiles()
  const board = `zookeeper://${zookeeperHosts}${namespace('demo')}`
  const persistence = server.uri.replace('postgres@', 'postgres:hidden@')
  const demo = new Demo([folder, '--out', out, '--board', board, '--persistence', persistence, '--conductors', '3'])
  await demo.says(/^200 jobs posted$/m)
  await untilRecorded(out, 20)
  await server.kill()
  await server.restart()
  expect(await demo.exitCode(), demo.output).toBe(0)
  expect((await manifestOf(out)).map((entry) => pathOf(entry).toString()).sort()).toEqual(names.sort())
  expect(await wrongEntries(folder, out)).toEqual([])
  // They waited: nobody gave a job back.
  expect(await runsOf(out, persistence)).toEqual(Array(FILES).fill(1))
  expect(demo.output).toContain('postgres://postgres:***@127.0.0.1')
  expect(demo.output).not.toContain('hidden')
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
  process.kill(victim, 'SIGKILL')
  expect(await demo.exitCode(), demo.output).toBe(0)
  expect(demo.output).toContain(`conductor 2 (process ${victim}) is gone (SIGKILL)`)
  expect((await manifestOf(out)).map((entry) => pathOf(entry).toString()).sort()).toEqual(names.sort())
  expect(await wrongEntries(folder, out)).toEqual([])
  // The kill did hit somebody at work.
  expect((await runsOf(out)).some((run) => run > 1)).toBe(true)
  await using left = await openBoard(board)
  expect(left.jobCount).toBe(0)
})

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
