/** A disk that is slow, or fails, below a board in a file. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createDeferred } from '../../../../src/core/async/abort.ts'
import { StorageFailure } from '../../../../src/core/errors.ts'
import { LogSync } from '../../../../src/sqlite/log-sync.ts'
import { sqlitePlace } from './boards.ts'

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
    expect(disk.flushes()).toBe(2)
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

test('a disk that fails: the call fails, and so does everything that writes later, until the process is restarted', async () => {
  await using place = await sqlitePlace()
  const board = await place.openUnviewed()
  vi.spyOn(LogSync.prototype, 'flush').mockRejectedValueOnce(new StorageFailure('the disk did not confirm'))
  const asserted = vi.spyOn(LogSync.prototype, 'assertSound')
  await expect(board.post('flow', {})).rejects.toThrow('the disk did not confirm')
  asserted.mockImplementation(() => {
    throw new StorageFailure('the disk did not confirm the last changes')
  })
  await expect(board.post('flow', {})).rejects.toThrow('the disk did not confirm the last changes')
  await board.close()
})

test('a log that cannot be synced says so once and for all', async () => {
  const log = new LogSync('/nowhere/jobs.db')
  log.assertSound()
  await expect(log.flush()).rejects.toThrow(StorageFailure)
  expect(() => log.assertSound()).toThrow(
    "/nowhere/jobs.db: the disk did not confirm the last changes (ENOENT: no such file or directory, open '/nowhere/jobs.db-wal')",
  )
  await log.close()
})
