/** Half-done jobs of dead owners: when they may be taken over, and what it costs to wait for very many. */
import { afterEach, expect, test, vi } from 'vitest'
import type { Posting } from '../../../src/board/index.ts'
import { makePosting } from '../../../src/board/model/posting/post-options.ts'
import { TakeoverDelay, type TakeoverDelayOptions } from '../../../src/conductor/claiming/takeover-delay.ts'

const DELAY = 10_000
const MANY = 20_000

afterEach(() => vi.useRealTimers())

function halfDone(name: string, run = 1): Posting {
  const attempts = [{ who: 'dead', at: new Date() }]
  return { ...makePosting({ name, details: {} }), uuid: name, runs: run, attempts }
}

type Forget = (event: { job: { uuid: string } }) => void

/** Returns a board that shows its listeners. */
function observedBoard(): { on: TakeoverDelayOptions['board']['on']; listeners: Map<string, Forget> } {
  const listeners = new Map<string, Forget>()
  const on = (event: string, listener: unknown) => {
    listeners.set(event, listener as Forget)
    return () => listeners.delete(event)
  }
  return { on: on as TakeoverDelayOptions['board']['on'], listeners }
}

test('very many are waited for with one timer, and none is forgotten', () => {
  vi.useFakeTimers()
  let looks = 0
  const takeovers = new TakeoverDelay({ board: observedBoard(), takeoverDelay: DELAY, onRecheck: () => (looks += 1) })
  const jobs = Array.from({ length: MANY }, (_, n) => halfDone(`job ${n}`))
  for (const job of jobs) expect(takeovers.mayTakeOver(job)).toBe(false)
  expect(vi.getTimerCount()).toBe(1)
  for (const job of jobs) expect(takeovers.mayTakeOver(job)).toBe(false)
  vi.advanceTimersByTime(DELAY + 1)
  expect(looks).toBe(1)
  expect(jobs.every((job) => takeovers.mayTakeOver(job))).toBe(true)
  expect(vi.getTimerCount()).toBe(0)
})

test('each death begins a wait of its own; what was claimed or has left is forgotten', () => {
  vi.useFakeTimers()
  const board = observedBoard()
  const takeovers = new TakeoverDelay({ board, takeoverDelay: DELAY, onRecheck: () => undefined })
  expect(takeovers.mayTakeOver(halfDone('job', 1))).toBe(false)
  vi.advanceTimersByTime(DELAY)
  expect(takeovers.mayTakeOver(halfDone('job', 1))).toBe(true)
  expect(takeovers.mayTakeOver(halfDone('job', 2))).toBe(false)
  board.listeners.get('claimed')?.({ job: { uuid: 'job' } })
  vi.advanceTimersByTime(DELAY)
  expect(takeovers.mayTakeOver(halfDone('job', 2))).toBe(false)
  vi.advanceTimersByTime(DELAY + 1)
  expect(takeovers.mayTakeOver(halfDone('job', 2))).toBe(true)
  expect(board.listeners.size).toBe(0)
  expect(takeovers.mayTakeOver(halfDone('other', 1))).toBe(false)
  expect(board.listeners.size).toBe(3)
  takeovers[Symbol.dispose]()
  expect([vi.getTimerCount(), board.listeners.size]).toEqual([0, 0])
})

test('the board has listeners only while a job waits', () => {
  vi.useFakeTimers()
  const board = observedBoard()
  const takeovers = new TakeoverDelay({ board, takeoverDelay: DELAY, onRecheck: () => undefined })
  takeovers.mayTakeOver(halfDone('one'))
  takeovers.mayTakeOver(halfDone('two'))
  const forget = board.listeners.get('claimed')
  forget?.({ job: { uuid: 'one' } })
  expect(board.listeners.size).toBe(3)
  forget?.({ job: { uuid: 'two' } })
  expect(board.listeners.size).toBe(0)
  takeovers.mayTakeOver(halfDone('three'))
  expect(board.listeners.size).toBe(3)
})
