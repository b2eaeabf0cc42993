import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { monotonic } from '../../../src/core/time.ts'
import { PendingRequest, type PendingRequestOptions } from '../../../src/zookeeper/connection/pending.ts'
import { NotSent, SessionExpired } from '../../../src/zookeeper/protocol/errors.ts'
import { exists } from '../../../src/zookeeper/protocol/requests.ts'
import { RequestQueue } from '../../../src/zookeeper/session/request-queue.ts'

const SESSION = 7n
const ALL = { bytes: 1_000_000, count: 100 }

function waiting(path: string, options: PendingRequestOptions = {}) {
  const pending = new PendingRequest(exists(path), monotonic(), options)
  const failed = pending.promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  return { pending, failed }
}

const paths = (taken: readonly PendingRequest[]) => taken.map(({ request }) => request.path)

describe('an outbox', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  test('gives requests out in order, a portion at a time', () => {
    const outbox = new RequestQueue(1_000)
    const all = ['/a', '/b', '/c'].map((path) => waiting(path).pending)
    for (const pending of all) outbox.push(pending)
    const size = all[0]?.request.frame.length ?? 0
    expect(paths(outbox.take(SESSION, { bytes: size + 1, count: 100 }))).toEqual(['/a', '/b'])
    expect(paths(outbox.take(SESSION, ALL))).toEqual(['/c'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('gives out no more than there is room for', () => {
    const outbox = new RequestQueue(1_000)
    for (const path of ['/a', '/b', '/c']) outbox.push(waiting(path).pending)
    expect(paths(outbox.take(SESSION, { ...ALL, count: 2 }))).toEqual(['/a', '/b'])
  })

  test('leaves out what was given up and rejects what was meant for another session', async () => {
    const outbox = new RequestQueue(1_000)
    const giveUp = new AbortController()
    const other = waiting('/other', { session: 8n })
    outbox.push(waiting('/given-up', { signal: giveUp.signal }).pending)
    outbox.push(other.pending)
    outbox.push(waiting('/mine', { session: SESSION }).pending)
    giveUp.abort(new Error('enough'))
    expect(paths(outbox.take(SESSION, ALL))).toEqual(['/mine'])
    expect(await other.failed).toBeInstanceOf(SessionExpired)
    expect(await other.failed).toMatchObject({ outcome: 'not-sent', path: '/other' })
  })

  test('puts what is asked in between ahead of what waits', () => {
    const outbox = new RequestQueue(1_000)
    outbox.push(waiting('/waits').pending)
    outbox.pushFirst(() => {
      outbox.push(waiting('/first').pending)
      outbox.push(waiting('/second').pending)
    })
    expect(paths(outbox.take(SESSION, ALL))).toEqual(['/first', '/second', '/waits'])
  })

  test('waits for room as long as it takes, and for a connection from when it broke', async () => {
    const outbox = new RequestQueue(1_000)
    outbox.connected()
    const { pending, failed } = waiting('/a')
    outbox.push(pending)
    vi.advanceTimersByTime(60_000)
    expect([outbox.size, vi.getTimerCount()]).toEqual([1, 0])
    outbox.disconnected()
    vi.advanceTimersByTime(999)
    expect(outbox.size).toBe(1)
    vi.advanceTimersByTime(1)
    expect(await failed).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
  })

  test('drops with a connection what was meant for it alone', async () => {
    const outbox = new RequestQueue(1_000)
    outbox.connected()
    const here = waiting('/here', { currentConnectionOnly: true })
    for (const { pending } of [waiting('/a'), here, waiting('/b')]) outbox.push(pending)
    outbox.disconnected()
    expect(await here.failed).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
    expect(paths(outbox.take(SESSION, ALL))).toEqual(['/a', '/b'])
  })

  test('keeps nothing waiting longer than its patience', async () => {
    const outbox = new RequestQueue(1_000)
    const early = waiting('/early')
    outbox.push(early.pending)
    vi.advanceTimersByTime(600)
    const late = waiting('/late')
    outbox.push(late.pending)
    vi.advanceTimersByTime(400)
    expect(await early.failed).toBeInstanceOf(NotSent)
    expect(await early.failed).toMatchObject({ outcome: 'not-sent' })
    expect(outbox.size).toBe(1)
    vi.advanceTimersByTime(600)
    expect(await late.failed).toBeInstanceOf(NotSent)
    expect(await late.failed).toMatchObject({ retryable: true })
    expect(vi.getTimerCount()).toBe(0)
  })
})
