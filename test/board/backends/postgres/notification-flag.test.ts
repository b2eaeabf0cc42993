/** When a session of a Postgres board asks to be notified, and when it polls, with a connection that answers as the test says. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  countTransactions,
  NotificationFlag,
} from '../../../../src/board/backends/postgres/connection/notification-flag.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const PERIOD_MS = 10_000
const NONE = { transactions: 0, concurrent: 0 }

/** A flag, its requests, and the transactions that are open on the server. */
function openFlag() {
  const requests: string[] = []
  const server = { open: [] as string[], isAway: false }
  const query = async (text: string, values: readonly unknown[]) => {
    if (server.isAway) throw new Error('the server is away')
    if (!text.includes('set_notified')) return { rows: [{ open: server.open }] }
    requests.push(values[1] === true ? 'set' : 'clear')
    return { rows: [] }
  }
  const source = { connection: { query }, session: 1 }
  const flag = new NotificationFlag({ schema: 'jobboard', period: PERIOD_MS })
  const poll = async (polled = NONE) => {
    vi.advanceTimersByTime(10)
    await flag.beforePoll(source)
    await flag.afterPoll(source, polled)
  }
  return { flag, source, requests, server, poll }
}

/** Polls every 10 ms for so long, each time with so many transactions, all of them beside another one or none. */
async function pollFor(
  { poll }: ReturnType<typeof openFlag>,
  ms: number,
  { transactions, beside }: { readonly transactions: number; readonly beside: boolean },
): Promise<void> {
  for (let at = 0; at <= ms; at += 10) {
    await poll({ transactions, concurrent: beside ? transactions : 0 })
  }
}

test('a session is notified as soon as no transaction is open that may not notify it', async () => {
  const { flag, source, server, poll } = openFlag()
  server.open = ['7', '8']
  await flag.set(source)
  flag.onRead()
  expect(flag.isNotified).toBe(false)
  // A transaction that began later has seen the flag.
  server.open = ['8', '9']
  await poll()
  expect(flag.isNotified).toBe(false)
  server.open = ['9']
  await poll()
  expect(flag.isNotified).toBe(true)
  expect(flag.pauseMs).toBe(PERIOD_MS)
})

test('polls for a transaction that stays open with growing pauses', async () => {
  const { flag, source, server } = openFlag()
  server.open = ['7']
  await flag.set(source)
  expect(flag.pauseMs).toBe(5)
  vi.advanceTimersByTime(1_280)
  expect(flag.pauseMs).toBe(20)
  vi.advanceTimersByTime(60_000)
  expect(flag.pauseMs).toBe(50)
})

test('a busy session polls, and is notified again once it is calm', async () => {
  const opened = openFlag()
  await opened.flag.set(opened.source)
  await pollFor(opened, 400, { transactions: 2, beside: true })
  expect(opened.requests).toEqual(['set', 'clear'])
  expect(opened.flag.pauseMs).toBe(5)
  await pollFor(opened, 5_000, { transactions: 3, beside: false })
  expect(opened.requests).toEqual(['set', 'clear'])
  await pollFor(opened, 4_100, { transactions: 1, beside: false })
  expect(opened.requests).toEqual(['set', 'clear', 'set'])
})

test('a session whose rate stays between calm and busy changes its flag every ten seconds at most', async () => {
  const opened = openFlag()
  await opened.flag.set(opened.source)
  await pollFor(opened, 60_000, { transactions: 1, beside: true })
  const before = opened.requests.length
  await pollFor(opened, 102_000, { transactions: 1, beside: true })
  expect(opened.requests.length - before).toBeLessThanOrEqual(20)
})

test('transactions that come one after the other keep a session notified, at any rate', async () => {
  const opened = openFlag()
  await opened.flag.set(opened.source)
  await pollFor(opened, 5_000, { transactions: 20, beside: false })
  expect(opened.requests).toEqual(['set'])
})

test('a crowd that is read after a long pause keeps a session notified', async () => {
  const { flag, source, requests, poll } = openFlag()
  await flag.set(source)
  vi.advanceTimersByTime(PERIOD_MS)
  await poll({ transactions: 400, concurrent: 400 })
  expect(requests).toEqual(['set'])
})

test('what is cleared already is not cleared again, unless the request failed', async () => {
  const { flag, source, requests, server } = openFlag()
  await flag.clear(source)
  expect(requests).toEqual([])
  await flag.set(source)
  server.isAway = true
  await expect(flag.clear(source)).rejects.toThrow('away')
  server.isAway = false
  await flag.clear(source)
  await flag.clear(source)
  expect(requests).toEqual(['set', 'clear'])
})

test.each([
  { what: 'none', changed: [], concurrent: 0 },
  { what: 'one that began after the former poll', changed: ['12'], concurrent: 0 },
  { what: 'one of which two kinds of changes are read', changed: ['12', '12'], concurrent: 0 },
  { what: 'one that was under way at the former poll', changed: ['9'], concurrent: 1 },
  { what: 'three that came between two polls', changed: ['12', '13', '12', '14'], concurrent: 2 },
  { what: 'three of which all were under way', changed: ['7', '8', '9'], concurrent: 3 },
])('of the transactions of a poll, $concurrent are concurrent: $what', ({ changed, concurrent }) => {
  expect(countTransactions(changed, '7:12:7,8,9').concurrent).toBe(concurrent)
})
