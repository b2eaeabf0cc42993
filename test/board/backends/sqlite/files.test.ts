/** Files that cannot be used, or not any more: one clear line each, and nothing that was acknowledged is lost. */
import { existsSync } from 'node:fs'
import { copyFile, link, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { openBoard } from '../../../../src/board/index.ts'
import { openPersistence } from '../../../../src/persistence/index.ts'
import { openDatabase } from '../../../../src/sqlite/driver.ts'
import { openSqliteFile } from '../../../../src/sqlite/index.ts'
import { count } from '../../../support/counts.ts'
import { usual as test, variant } from '../../../variant.ts'
import { rejectionOf } from '../../events.ts'
import { namesOn } from '../../jobs.ts'
import { withFile } from './boards.ts'

const ROUNDS = count({ test: 100, long: 1_000 })

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'jobboard-sqlite-'))
  file = join(folder, 'jobs.db')
})

afterEach(() => rm(folder, { recursive: true, force: true }))

describe.each([
  ['a board', openBoard],
  ['logbooks', openPersistence],
])('%s', (_, openAt) => {
  const open = () => openAt(`sqlite:${file}`)

  test('in a file that is no database', async () => {
    await writeFile(
      file,
      'a text that is long enough to be read as the first page of a database, and is none. '.repeat(100),
    )
    const error = await rejectionOf(open())
    expect(error).toMatchObject({ code: 'JOBBOARD_STORAGE_FAILURE' })
    expect(String(error)).toContain('is not an SQLite database')
  })

  test('in a database of another program', async () => {
    const other = openDatabase(file)
    other.exec('CREATE TABLE accounts (name TEXT)')
    other.close()
    expect(String(await rejectionOf(open()))).toContain('is an SQLite database of another program; name another file')
  })

  test('in a file of a newer release', async () => {
    await (await openBoard(`sqlite:${file}`)).close()
    const newer = openDatabase(file)
    newer.exec('PRAGMA user_version = 99')
    newer.close()
    expect(String(await rejectionOf(open()))).toContain(
      'has format 99, and this release knows 2: a newer release wrote it',
    )
  })

  test('in a folder that is a file', async () => {
    await writeFile(file, '')
    const error = await rejectionOf(openAt(`sqlite:${file}/jobs.db`))
    expect(error).toMatchObject({ code: 'JOBBOARD_INVALID_ARGUMENT' })
    expect(String(error)).toContain('name another folder')
  })
})

test('a file of the first format is migrated with its jobs', async () => {
  {
    await using board = await openBoard(`sqlite:${file}`)
    await board.post('flow', { n: 1 }, { name: 'earlier' })
  }
  const earlier = openDatabase(file)
  earlier.exec('DROP INDEX jobs_in_queues; DROP INDEX jobs_that_rest_in_queues; ALTER TABLE jobs DROP COLUMN queue')
  earlier.exec('PRAGMA user_version = 1')
  earlier.close()
  // Two processes may find the earlier format at the same time.
  const boards = await Promise.all([openBoard(`sqlite:${file}`), openBoard(`sqlite:${file}`)])
  try {
    const [one, two] = boards
    await two?.post('flow', {}, { name: 'later', queue: 'bulk' })
    expect((await one?.claimNext({ queues: ['default'] }))?.[0]?.job.name).toBe('earlier')
    expect((await one?.claimNext({ queues: ['bulk'] }))?.[0]?.job.name).toBe('later')
  } finally {
    await Promise.all(boards.map((board) => board.close()))
  }
})

test.each([
  ['sqlite:', 'must name a file of this machine, as in sqlite:./jobs.db'],
  ['sqlite::memory:', 'for jobs in memory write memory:'],
  ['sqlite://host/jobs.db', 'must name a file of this machine'],
  ['sqlite:./jobs.db?synchronous=off', "synchronous must be full or normal, got 'off'"],
  ['sqlite:./jobs.db?sync=full', 'unknown parameter "sync"'],
  ['sqlite:./jobs.db?board=', 'board must not be empty'],
  ['sqlite:./jobs.db?sessionTimeout=0', 'sessionTimeout must be longer than 0'],
])('the URI %s is refused', async (uri, message) => {
  expect(String(await rejectionOf(openBoard(uri)))).toContain(message)
})

test('a file that is not there is not created for a reader', async () => {
  for (const uri of [`sqlite:${file}?create=false`, `sqlite:${join(folder, 'deep/jobs.db')}?create=false`]) {
    expect(await rejectionOf(openBoard(uri))).toMatchObject({ code: 'JOBBOARD_NOT_FOUND' })
    expect(await rejectionOf(openPersistence(uri))).toMatchObject({ code: 'JOBBOARD_NOT_FOUND' })
  }
  expect(await rejectionOf(openBoard(`sqlite:${file}`, { create: false }))).toMatchObject({
    code: 'JOBBOARD_NOT_FOUND',
  })
  expect(await readdir(folder)).toEqual([])
})

test('a board that is not in its file is not created for a reader', async () => {
  await (await openBoard(`sqlite:${file}`)).close()
  const error = await rejectionOf(openBoard(`sqlite:${file}?board=other&create=false`))
  expect(String(error)).toContain(`there is no board other in ${file}`)
})

test('folders are made, and names with spaces and signs work', async () => {
  const odd = join(folder, 'a b', 'ä%20#1', 'jobs é.db')
  await using board = await openBoard(`sqlite:${odd.split('/').map(encodeURIComponent).join('/')}`)
  await board.post('flow', {})
  expect(existsSync(odd)).toBe(true)
})

describe('names of one file', () => {
  test('a symbolic link leads to the locks of the file', async () => {
    const link = join(folder, 'link.db')
    await symlink(file, link)
    await using board = await openBoard(`sqlite:${link}`)
    await board.post('flow', {}, { name: 'linked' })
    await using other = await openBoard(`sqlite:${file}`)
    expect(await namesOn(other)).toEqual(['linked'])
    expect((await readdir(folder)).filter((name) => name.startsWith('link.db-'))).toEqual([])
  })

  test('a hard link is refused: processes would not see each other', async () => {
    await (await openBoard(`sqlite:${file}`)).close()
    await link(file, join(folder, 'second.db'))
    const error = await rejectionOf(openBoard(`sqlite:${file}`))
    expect(error).toMatchObject({ code: 'JOBBOARD_UNSUPPORTED_CAPABILITY' })
    expect(String(error)).toContain('has 2 names (hard links)')
  })
})

describe('a damaged file', () => {
  test('does not end the process that looks at it in the background', async () => {
    await using board = await openBoard(`sqlite:${file}`)
    const errors: string[] = []
    board.on('error', ({ error }) => errors.push(String(error)))
    withFile(file, (database) => database.exec('ALTER TABLE changes RENAME TO other'))
    await expect.poll(() => errors.some((error) => error.includes('no such table: changes'))).toBe(true)
    withFile(file, (database) => database.exec('ALTER TABLE other RENAME TO changes'))
    await board.post('flow', {}, { name: 'later' })
    expect(await namesOn(board)).toEqual(['later'])
  })
})

test('a step that fails beside the opening of a board does not hinder it', async () => {
  const opened = await openedFile()
  const failing = rejectionOf(opened.run(() => JSON.parse('{')))
  const opening = openBoard(`sqlite:${file}`)
  expect(await failing).toBeInstanceOf(SyntaxError)
  await (await opening).close()
  await (await openBoard(`sqlite:${file}`)).close()
  await opened.close()
})

test('the bell does not grow, and what is done after the end is refused', async () => {
  const opened = await openedFile()
  const board = await openBoard(`sqlite:${file}`)
  for (let posted = 0; posted < 20; posted += 1) await board.post('flow', {})
  expect((await stat(`${file}-bell`)).size).toBe(1)
  await board.close()
  await opened.close()
  expect(await rejectionOf(opened.run(() => undefined))).toMatchObject({ code: 'JOBBOARD_INVALID_STATE' })
})

variant('many opens and closes leave nothing', async () => {
  const descriptors = async () => (await readdir('/proc/self/fd')).length
  await (await openBoard(`sqlite:${file}`)).close()
  const before = await descriptors()
  for (let round = 0; round < ROUNDS; round += 1) {
    const board = await openBoard(`sqlite:${file}`)
    if (round % 10 === 0) await board.post('flow', {})
    await board.close()
  }
  expect(await descriptors()).toBeLessThanOrEqual(before)
  expect((await readdir(folder)).sort()).toEqual(['jobs.db', 'jobs.db-bell'])
  for (const table of ['processes', 'sessions'])
    expect(withFile(file, (database) => database.prepare(`SELECT * FROM ${table}`).all())).toEqual([])
})

describe('a file that is replaced while it is open', () => {
  test('takes no job any more, and says why', async () => {
    await using board = await openBoard(`sqlite:${file}`)
    const kept = await board.post('flow', {}, { name: 'kept' })
    await copyFile(file, join(folder, 'copy.db'))
    await rename(file, join(folder, 'away.db'))
    const deleted = await rejectionOf(board.post('flow', {}))
    expect(deleted).toMatchObject({ code: 'JOBBOARD_STORAGE_FAILURE' })
    expect(String(deleted)).toContain('was deleted or replaced while it was open')
    await rename(join(folder, 'copy.db'), file)
    expect(String(await rejectionOf(board.post('flow', {})))).toContain('was deleted or replaced')
    // Put back, it goes on.
    await rename(join(folder, 'away.db'), file)
    await board.post('flow', {}, { name: 'later' })
    expect((await board.find(kept.uuid)).name).toBe('kept')
  })
})

describe('a file that cannot be written to', () => {
  test('on a full disk takes no job, and takes them again when there is room', async () => {
    await using board = await openBoard(`sqlite:${file}`)
    const opened = await openedFile()
    const { connection } = opened
    // SQLite gives the same answer as on a full disk.
    connection.exec('PRAGMA max_page_count = 150')
    const posted: string[] = []
    const fill = async () => {
      for (;;) posted.push((await board.post('flow', { data: 'x'.repeat(50_000) })).uuid)
    }
    const error = await rejectionOf(fill())
    expect(error).toMatchObject({ code: 'JOBBOARD_WRITES_REFUSED', retryable: true })
    expect(String(error)).toContain('the disk is full; free space, nothing was changed')
    expect(posted.length).toBeGreaterThan(2)
    connection.exec('PRAGMA max_page_count = 100000')
    posted.push((await board.post('flow', {})).uuid)
    const found: string[] = []
    for await (const { uuid } of board.jobs({ ensureFresh: true })) found.push(uuid)
    expect(found.sort()).toEqual(posted.sort())
    await opened.close()
  })

  test('because of its folder is refused when it is opened', async () => {
    // Nobody can make a file here, the superuser neither.
    const uri = 'sqlite:/proc/jobs.db'
    const error = await rejectionOf(openBoard(uri))
    expect(error).toMatchObject({ code: 'JOBBOARD_ACCESS_DENIED' })
    expect(String(error)).toContain('change their owner or mode')
    expect(await rejectionOf(openPersistence(uri))).toMatchObject({
      code: 'JOBBOARD_STORAGE_FAILURE',
      retryable: false,
    })
  })
})

/** Opens the file as the boards of this process share it. */
function openedFile() {
  return openSqliteFile({ path: file, synchronous: 'FULL', create: true })
}
