/** The demo with its logbooks in Postgres, which is killed and comes back while three conductors work. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startPostgres } from '../../support/postgres.ts'
import { contentOf, Demo, manifestOf, pathOf, runsOf, temporaryFolder, untilRecorded, wrongEntries } from './demo.ts'

const FILES = 200

test('200 files, three conductors, Postgres killed in the middle: every file is archived once, by its first run', async () => {
  await using server = await startPostgres()
  const folder = await temporaryFolder()
  const out = join(await temporaryFolder(), 'out')
  const names = Array.from({ length: FILES }, (_, index) => `part-${index % 7}/file-${index}`)
  for (const [index, name] of names.entries()) {
    await mkdir(join(folder, `part-${index % 7}`), { recursive: true })
    await writeFile(join(folder, name), contentOf(index))
  }
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
