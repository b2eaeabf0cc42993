/** The demo with its logbooks in Postgres, and what may happen meanwhile. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openPersistence } from 'jobboard'
import { expect, test } from 'vitest'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startPostgres } from '../../support/postgres.ts'
import { contentOf, Demo, manifestOf, pathOf, runsOf, temporaryFolder, untilRecorded, wrongEntries } from './demo.ts'

test('three conductors, one of them and then the database killed: every file is archived exactly once', async () => {
  await using server = await startPostgres()
  const folder = await temporaryFolder()
  const out = join(await temporaryFolder(), 'out')
  const names = Array.from({ length: 200 }, (_, index) => `part-${index % 7}/file-${index}`)
  for (const [index, name] of names.entries()) {
    await mkdir(join(folder, `part-${index % 7}`), { recursive: true })
    await writeFile(join(folder, name), contentOf(index))
  }
  const board = `zookeeper://${zookeeperHosts}${namespace('demo')}?sessionTimeout=3s`
  const places = ['--board', board, '--persistence', server.uri]
  const demo = new Demo([folder, '--out', out, ...places, '--conductors', '3'])
  const [victim] = await demo.conductorPids()
  if (victim === undefined) throw new Error('there are no conductors')
  await untilRecorded(out, 30)
  process.kill(victim, 'SIGKILL')
  await untilRecorded(out, 60)
  await server.kill()
  await server.restart()

  expect(await demo.exitCode(), demo.output + demo.errors).toBe(0)
  expect((await manifestOf(out)).map((entry) => pathOf(entry).toString()).sort()).toEqual(names.sort())
  expect(await wrongEntries(folder, out)).toEqual([])
  expect((await runsOf(out, server.uri)).some((run) => run > 1)).toBe(true)
  await using logbooks = await openPersistence(server.uri, { create: false })
  let finished = 0
  for await (const _ of logbooks.listBooks({ state: 'SUCCESS' })) finished += 1
  expect(finished).toBe(200)
})
