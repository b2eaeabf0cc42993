/** The demo on Redis: three conductors in processes of their own, one of which is killed. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { startRedis } from '../../support/redis.ts'
import { contentOf, Demo, manifestOf, pathOf, runsOf, temporaryFolder, untilRecorded, wrongEntries } from './demo.ts'

const FILES = 200

test('200 files, three conductors, one of them killed: every file is archived exactly once', async () => {
  await using server = await startRedis()
  const folder = await temporaryFolder()
  const out = join(await temporaryFolder(), 'out')
  const names = Array.from({ length: FILES }, (_, index) => `part-${index % 7}/file-${index}`)
  for (const [index, name] of names.entries()) {
    await mkdir(join(folder, `part-${index % 7}`), { recursive: true })
    await writeFile(join(folder, name), contentOf(index))
  }
  const demo = new Demo([folder, '--out', out, '--board', `${server.uri}/0?prefix=demo&ttl=3s`, '--conductors', '3'])
  const [, victim] = await demo.conductorPids()
  if (victim === undefined) throw new Error('there is one conductor only')
  await demo.says(/^200 jobs posted$/m)
  await untilRecorded(out, 50)
  process.kill(victim, 'SIGKILL')

  expect(await demo.exitCode(), demo.output).toBe(0)
  expect(demo.output).toContain(`conductor 2 (process ${victim}) is gone (SIGKILL)`)
  expect((await manifestOf(out)).map((entry) => pathOf(entry).toString()).sort()).toEqual(names.sort())
  expect(await wrongEntries(folder, out)).toEqual([])
  // The kill did hit somebody at work.
  expect((await runsOf(out)).some((run) => run > 1)).toBe(true)
  const observer = new Redis(server.uri)
  for (const key of ['jobs', 'rows', 'held', 'trash']) expect(await observer.exists(`{demo}:${key}`), key).toBe(0)
  observer.disconnect()
})
