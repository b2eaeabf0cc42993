/** The windows of keys on a memory board, to the millisecond of its clock. */
import { describe, expect, test } from 'vitest'
import { KeySteps } from '../../../../src/board/backends/memory/keys.ts'
import { ChangeListeners } from '../../../../src/board/backends/memory/store/change-listeners.ts'
import { JobRows } from '../../../../src/board/backends/memory/store/rows.ts'
import { memoryTestBackend } from '../../../../src/board/memory-place.ts'
import { InvalidState } from '../../../../src/core/errors.ts'
import { systemAlarmClock } from '../../../../src/core/time.ts'
import { ManualClock } from '../../../../src/testing/index.ts'
import { all } from '../../jobs.ts'

const KEY = { name: 'import', for: '10m' } as const

async function setBoard() {
  const clock = new ManualClock()
  const board = await memoryTestBackend({ clock }).open()
  return { clock, board, [Symbol.asyncDispose]: () => board.close() }
}

describe('a window', () => {
  test('counts from the post, and is over when its time has passed', async () => {
    await using setup = await setBoard()
    const { board, clock } = setup
    const first = await board.post('flow', {}, { key: KEY })
    expect(first.keyTakenUntil).toEqual(new Date(clock.now() + 600_000))
    clock.advance('5m')
    await (await board.claim(first)).consume()
    clock.advance(299_999)
    expect(await board.post('flow', {}, { key: KEY })).toMatchObject({ because: 'window', uuid: first.uuid })
    clock.advance(1)
    const next = await board.post('flow', {}, { key: KEY })
    expect(next.created).toBe(true)
    await (await board.claim(next)).consume()
    clock.advance('10m')
    expect(await board.post('flow', {}, { key: KEY })).toMatchObject({ created: true })
  })

  test('that was over before its job ended frees the key with the job', async () => {
    await using setup = await setBoard()
    const { board, clock } = setup
    const first = await board.post('flow', {}, { key: KEY })
    clock.advance('10m')
    expect(await board.post('flow', {}, { key: KEY })).toMatchObject({ because: 'waiting' })
    await (await board.claim(first)).consume()
    expect(await board.post('flow', {}, { key: KEY })).toMatchObject({ created: true })
  })

  test('begins anew with a replacement, and with a restoration', async () => {
    await using setup = await setBoard()
    const { board, clock } = setup
    const key = { ...KEY, on: 'replace' } as const
    const first = await board.post('flow', {}, { key })
    clock.advance('9m')
    const again = await board.post('flow', {}, { key })
    expect(again).toMatchObject({ replaced: true, keyTakenUntil: new Date(clock.now() + 600_000) })
    await (await board.claim(await board.find(first.uuid))).trash()
    clock.advance(599_999)
    expect(await board.post('flow', {}, { key })).toMatchObject({ because: 'window', state: 'TRASHED' })
    const [entry] = await all(board.trashed())
    if (entry) await board.restore(entry)
    const [claim] = await board.claimNext()
    await claim.consume()
    clock.advance(599_999)
    expect(await board.post('flow', {}, { key })).toMatchObject({ because: 'window', uuid: first.uuid })
  })
})

test('a job that is replaced expires by the new post, also where the old one would have expired before', async () => {
  await using setup = await setBoard()
  const { board, clock } = setup
  const stop = new AbortController()
  const waiting = board.claimNext({ signal: stop.signal, accept: () => false }).catch(() => undefined)
  const key = { name: 'sync', on: 'replace' } as const
  const job = await board.post('flow', {}, { key, expiresAfter: '10m' })
  clock.advance('9m')
  await board.post('flow', {}, { key, expiresAfter: '5m', name: 'new' })
  clock.advance('4m')
  expect((await board.find(job.uuid)).state).toBe('UNCLAIMED')
  clock.advance('1m')
  expect(await job.wait()).toBe('TRASHED')
  const [entry] = await all(board.trashed())
  expect(entry).toMatchObject({ name: 'new', expired: true, reason: 'nobody started it within 14 min' })
  stop.abort()
  await waiting
})

test('a delay of a replacement counts from it', async () => {
  await using setup = await setBoard()
  const { board, clock } = setup
  const key = { name: 'sync', on: 'replace' } as const
  const job = await board.post('flow', {}, { key, delay: '10m' })
  clock.advance('9m')
  await board.post('flow', {}, { key, delay: '10m' })
  expect((await board.find(job.uuid)).delayedUntil).toEqual(new Date(clock.now() + 600_000))
  clock.advance('9m')
  await expect(board.claimNext({ timeout: 0 })).rejects.toThrow('no job')
  clock.advance('1m')
  expect((await board.claimNext())[0].job.uuid).toBe(job.uuid)
})

test('keys whose windows are over are not kept, also behind one that lasts', () => {
  let now = 0
  const clock = { ...systemAlarmClock, now: () => now }
  const rows = new JobRows({ clock, alarms: undefined, onAlarm: () => undefined })
  const keys = new KeySteps({ clock, rows, changes: new ChangeListeners() })
  const use = (key: string, window: number) => {
    keys.take(key, { id: key, uuid: key }, window)
    keys.free(key, key)
  }
  use('long', 1e9)
  for (let n = 0; n < 1_000; n += 1) {
    now += 10
    use(`short ${n}`, 5)
  }
  expect(keys.size).toBeLessThan(10)
  expect(keys.holderOf('long')).toEqual({ uuid: 'long', inWindowOf: 'long' })
})

test('a post that would have to wait for other jobs is refused, and the job that waits is as it was', async () => {
  await using setup = await setBoard()
  const { board } = setup
  const one = await board.post('flow', {}, { name: 'one' })
  const job = await board.post('flow', { n: 1 }, { key: 'sync', name: 'waits' })
  const refused = board.post('flow', { n: 2 }, { key: { name: 'sync', on: 'replace' }, after: [one] })
  await expect(refused).rejects.toThrow(InvalidState)
  await expect(refused).rejects.toThrow(`job ${job.uuid} (waits)`)
  expect((await board.find(job.uuid)).details.store).toEqual({ n: 1 })
})
