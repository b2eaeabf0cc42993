/** `jobboard sqlite check`, `backup` and `compact`, beside processes that use the file. */
import { open, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { openBoard } from '../../src/board/index.ts'
import { type CliFolder, createCliFolder, killRemaining } from './workplace.ts'

let place: CliFolder
let file: string

beforeEach(async () => {
  place = await createCliFolder()
  file = join(place.cwd, 'jobs.db')
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

test('a sound file is sound, by its path and by its URI', async () => {
  await using board = await openBoard(`sqlite:${file}`)
  await board.post('flow', {})
  for (const name of ['jobs.db', `sqlite:${file}?board=other`])
    expect(await place.bare(['sqlite', 'check', name])).toEqual({
      exitCode: 0,
      stdout: `${file} is sound\n`,
      stderr: '',
    })
})

test('a damaged file is exit code 1', async () => {
  const board = await openBoard(`sqlite:${file}`)
  for (let posted = 0; posted < 50; posted += 1) await board.post('flow', { text: 'x'.repeat(1_500) })
  await board.close()
  // The pages behind the first one: the file can still be opened.
  const handle = await open(file, 'r+')
  const { size } = await handle.stat()
  for (let at = 3 * 4_096; at < size; at += 4_096) await handle.write(Buffer.alloc(64, 0xff), 0, 64, at)
  await handle.close()
  const { exitCode, stdout, stderr } = await place.bare(['sqlite', 'check', 'jobs.db'])
  expect(exitCode).toBe(1)
  expect(`${stdout}${stderr}`).toMatch(/is damaged.*restore it from a backup/)
})

test('a backup is a board with the same jobs, made while a process uses the file', async () => {
  await using board = await openBoard(`sqlite:${file}`)
  const job = await board.post('flow', {}, { name: 'kept' })
  expect(await place.bare(['sqlite', 'backup', 'jobs.db', 'copy.db'])).toMatchObject({ exitCode: 0, stderr: '' })
  await board.post('flow', {}, { name: 'later' })
  await using copy = await openBoard(`sqlite:${join(place.cwd, 'copy.db')}`)
  expect((await copy.find(job.uuid)).name).toBe('kept')
  expect(await copy.countJobs()).toBe(1)
  const again = await place.bare(['sqlite', 'backup', 'jobs.db', 'copy.db'])
  expect(again).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('copy.db exists; name a file that does not'),
  })
})

test('compacting gives the space of jobs that have gone back to the disk', async () => {
  await using board = await openBoard(`sqlite:${file}`)
  const uuids: string[] = []
  for (let posted = 0; posted < 30; posted += 1)
    uuids.push((await board.post('flow', { text: 'x'.repeat(50_000) })).uuid)
  const claims = await board.claimNext({ max: 30 })
  await Promise.all(claims.map((claim) => claim.consume()))
  expect(claims).toHaveLength(uuids.length)
  const { exitCode, stdout } = await place.bare(['sqlite', 'compact', 'jobs.db'])
  expect(exitCode).toBe(0)
  const [, before = '', after = ''] = /had (\d+) bytes, and has (\d+) now/.exec(stdout) ?? []
  expect(Number(before)).toBeGreaterThan(1_500_000)
  expect(Number(after)).toBeLessThan(500_000)
  expect((await stat(file)).size).toBe(Number(after))
  expect((await board.post('flow', {})).state).toBe('UNCLAIMED')
})

test.each([
  [['check', 'nowhere.db'], 'there is no file'],
  [['check', 'text.txt'], 'is not an SQLite database'],
  [['backup', 'nowhere.db', 'copy.db'], 'there is no file'],
  [['compact', 'redis://127.0.0.1:6379/0'], 'is not in a file'],
  [['check'], "missing required argument 'file'"],
])('sqlite %j is one line', async (args, message) => {
  await writeFile(join(place.cwd, 'text.txt'), 'not a database '.repeat(1_000))
  const { exitCode, stdout, stderr } = await place.bare(['sqlite', ...args])
  expect([exitCode === 0, stdout]).toEqual([false, ''])
  expect(stderr).toMatch(/^jobboard: [^\n]+\n$/)
  expect(stderr).toContain(message)
})
