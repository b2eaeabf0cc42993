/** A disk that is slow, or fails, below a board in a file. */
import { symlink } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, vi } from 'vitest'
import { createDeferred } from '../../../../src/core/async/abort.ts'
import { StorageFailure } from '../../../../src/core/errors.ts'
import { openSqliteFile } from '../../../../src/sqlite/index.ts'
import { LogSync } from '../../../../src/sqlite/log-sync.ts'
import { startNode } from '../../../support/node-process.ts'
import { usual as test, variant } from '../../../variant.ts'
import { sqlitePlace } from './boards.ts'

const NO_THREADS = new URL('./no-threads-child.ts', import.meta.url)

afterEach(() => {
  vi.restoreAllMocks()
})

/** Replaces the wait for the disk by one that ends when the returned function is called. */
function stallDisk(): { readonly end: () => void; readonly flushes: () => number } {
  const stalled = createDeferred()
  const flush = vi.spyOn(LogSync.prototype, 'flush').mockImplementation(() => stalled.promise)
  return { end: () => stalled.resolve(), flushes: () => flush.mock.calls.length }
}

describe('a slow disk', () => {
  test('holds up the answer, and neither other processes nor readers', async () => {
    await using place = await sqlitePlace()
    await using board = await place.openUnviewed()
    const disk = stallDisk()
    let isAnswered = false
    const posted = board.post('flow', {}).then(() => {
      isAnswered = true
    })
    await expect.poll(disk.flushes, { interval: 1 }).toBe(1)
    // Another connection writes: it would be refused at once while the write lock is held.
    place.query('UPDATE boards SET paused = 0')
    expect(place.query('SELECT id FROM jobs')).toHaveLength(1)
    expect(isAnswered).toBe(false)
    disk.end()
    await posted
  })

  test('gathers what comes meanwhile into one transaction', async () => {
    await using place = await sqlitePlace()
    await using board = await place.openUnviewed()
    const disk = stallDisk()
    const posts = [board.post('flow', {})]
    await expect.poll(disk.flushes, { interval: 1 }).toBe(1)
    posts.push(...Array.from({ length: 20 }, () => board.post('flow', {})))
    disk.end()
    await Promise.all(posts)
    // One for each transaction; the process itself has some, too.
    expect(disk.flushes()).toBeLessThan(6)
  })

  test('does not end a session: its heartbeats do not wait for the disk', async () => {
    await using place = await sqlitePlace({ parameters: 'sessionTimeout=300ms' })
    await using board = await place.open()
    const lost: unknown[] = []
    board.on('state', ({ state }) => lost.push(state))
    const disk = stallDisk()
    const posted = board.post('flow', {})
    const heartbeat = () => Number(place.query('SELECT max(heartbeat_at) AS at FROM sessions')[0]?.['at'])
    const before = heartbeat()
    await expect.poll(() => heartbeat() - before, { interval: 10, timeout: 60_000 }).toBeGreaterThan(600)
    expect(lost).toEqual([])
    disk.end()
    await posted
  })

  test('delays the end of a board until all answers are given', async () => {
    await using place = await sqlitePlace()
    const board = await place.openUnviewed()
    const disk = stallDisk()
    const order: string[] = []
    const posted = board.post('flow', {}).then(() => order.push('posted'))
    await expect.poll(disk.flushes, { interval: 1 }).toBe(1)
    const closed = board.close().then(() => order.push('closed'))
    disk.end()
    await Promise.all([posted, closed])
    expect(order).toEqual(['posted', 'closed'])
  })
})

test('a step that a listener of a commit requests is not answered before that commit is on the disk', async () => {
  await using place = await sqlitePlace()
  const file = await openSqliteFile({ path: place.file, synchronous: 'FULL', create: true })
  const { connection } = file
  const insert = () => connection.run("INSERT INTO boards (name) VALUES ('other')")
  const isThere = () => connection.get("SELECT 1 FROM boards WHERE name = 'other'") !== undefined
  const disk = stallDisk()
  const order: string[] = []
  const looked = createDeferred()
  const off = file.onCommit(() => {
    off()
    void file.run(isThere).then((found) => {
      order.push(`found: ${found}`)
      looked.resolve()
    })
  })
  const inserted = file.run(insert).then(() => order.push('inserted'))
  await expect.poll(disk.flushes, { interval: 1 }).toBe(1)
  // Many turns of the event loop: the step would have run by now.
  for (let turn = 0; turn < 100; turn += 1) await nextTurn()
  expect(order).toEqual([])
  disk.end()
  await Promise.all([inserted, looked.promise])
  expect(order).toEqual(['inserted', 'found: true'])
  await file.close()
})

test('a board is closed although others of the process write to the file all the time', async () => {
  await using place = await sqlitePlace()
  await using writer = await place.openUnviewed()
  const board = await place.openUnviewed()
  let isClosed = false
  const write = async () => {
    while (!isClosed) await writer.post('flow', {})
  }
  // As soon as one is answered the next comes: the file has always something to do.
  const writing = Promise.all([write(), write(), write()])
  await board.close()
  isClosed = true
  await writing
})

test('an answer that rests on what another process has committed waits until that is on the disk', async () => {
  await using place = await sqlitePlace()
  await using board = await place.openUnviewed()
  await board.post('flow', {}, { key: 'one' })
  const flush = vi.spyOn(LogSync.prototype, 'flush')
  const again = async () => {
    const before = flush.mock.calls.length
    expect((await board.post('flow', {}, { key: 'one' })).created).toBe(false)
    return flush.mock.calls.length - before
  }
  await again()
  expect(await again()).toBe(0)
  place.query('UPDATE boards SET fence = fence + 1')
  expect(await again()).toBe(1)
  expect(await again()).toBe(0)
})

test('a disk that fails: the call fails, and so does everything that writes later; the session ends, so that others take the jobs', async () => {
  await using place = await sqlitePlace({ parameters: 'sessionTimeout=300ms' })
  const board = await place.openUnviewed()
  const states: string[] = []
  board.on('state', ({ state }) => states.push(state))
  board.on('error', () => undefined)
  vi.spyOn(LogSync.prototype, 'flush').mockRejectedValueOnce(new StorageFailure('the disk did not confirm'))
  await expect(board.post('flow', {})).rejects.toThrow('the disk did not confirm')
  vi.spyOn(LogSync.prototype, 'assertSound').mockImplementation(() => {
    throw new StorageFailure('the disk did not confirm the last changes')
  })
  await expect(board.post('flow', {})).rejects.toThrow('the disk did not confirm the last changes')
  await expect.poll(() => states, { interval: 20, timeout: 60_000 }).toContain('lost')
  await board.close()
})

test('a log that cannot be synced says so once and for all', async () => {
  await using place = await sqlitePlace()
  // A device that cannot be synced.
  await symlink('/dev/null', `${place.file}-wal`)
  const log = new LogSync(place.file)
  log.assertSound()
  await expect(log.flush()).rejects.toThrow(StorageFailure)
  expect(() => log.assertSound()).toThrow(
    `${place.file}: the disk did not confirm the last changes (EINVAL: invalid argument, fdatasync)`,
  )
  log.close()
})

describe('where no thread can be started', () => {
  variant('the log is written back by the connection of the file', async () => {
    await using place = await sqlitePlace({ parameters: 'synchronous=normal' })
    const run = startNode(NO_THREADS, [place.uri])
    await using process = await run
    expect(await process.ended).toBe(0)
    expect(Number(process.lines.at(-1))).toBeLessThan(8_000_000)
  })
})
