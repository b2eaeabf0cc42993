/** What a conductor checks while nothing runs: that it receives what is posted, that its logbooks answer, and that its clock is right. */
import { pino } from 'pino'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { boardInternals } from '../../src/board/internal.ts'
import { examineJobs } from '../../src/cli/doctor/jobs.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { NotFound, StorageFailure } from '../../src/core/errors.ts'
import { openBoard, openPersistence, type Persistence } from '../../src/index.ts'
import { startRedis } from '../support/redis.ts'
import { boards, delegate, singleTaskFlow, startTestConductor } from './conducting.ts'

const HOUR_MS = 3_600_000

const fine = singleTaskFlow('fine', () => 1)

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** Logbooks that can be away, or never answer. */
async function logbooks() {
  const inner = await openPersistence('memory:')
  const state: { is: 'there' | 'away' | 'silent' } = { is: 'there' }
  const answer = async <T>(work: () => Promise<T>): Promise<T> => {
    if (state.is === 'away') throw new StorageFailure('disk gone', { retryable: true })
    return state.is === 'there' ? work() : new Promise<never>(() => undefined)
  }
  const persistence: Persistence = delegate(inner, {
    acquire: (request) => answer(() => inner.acquire(request)),
    getBook: (uuid) => answer(() => Promise.reject(new NotFound(`there is no logbook ${uuid}`))),
  })
  return { persistence, state }
}

test('logbooks that a run has found away are away on each board that uses them, until they are back', async () => {
  const [[a], [b]] = await Promise.all([boards('a'), boards('b')])
  const { persistence, state } = await logbooks()
  const conductor = await startTestConductor({ boards: [a, b], persistence, flows: [fine], health: { port: 0 } })
  const ready = async () => {
    const response = await fetch(`${conductor.healthUrl}/readyz`)
    const { boards } = (await response.json()) as { readonly boards: readonly { readonly storage: string }[] }
    return [response.status, ...boards.map(({ storage }) => storage)]
  }
  expect(await ready()).toEqual([200, 'there', 'there'])
  state.is = 'away'
  const first = await a.post(fine, { n: 1 })
  await expect.poll(ready).toEqual([503, 'away', 'away'])
  const second = await b.post(fine, { n: 2 })
  state.is = 'there'
  expect(await Promise.all([first.wait(), second.wait()])).toEqual(['COMPLETE', 'COMPLETE'])
  expect(second.runs).toBe(1)
  await expect.poll(ready).toEqual([200, 'there', 'there'])
})

test('logbooks that do not answer the check of an idle conductor are away, and its entity says so', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  const [board, other] = await boards('a', 'b')
  const { persistence, state } = await logbooks()
  const conductor = await startTestConductor({ board, persistence, flows: [fine] })
  state.is = 'silent'
  const later = async () => {
    await vi.advanceTimersByTimeAsync(10_000)
    const [entity] = await other.entities('conductor')
    return [conductor.healthy, entity?.metadata['logbooks']]
  }
  await expect.poll(later).toEqual([false, 'away'])
  state.is = 'there'
  await expect.poll(later).toEqual([true, undefined])
})

test('the last check is that of an answer: it does not move while the board does not answer', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
  const [board] = await boards('a')
  const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine] })
  await expect.poll(() => conductor.lastClaimableCheck).toBeDefined()
  const begun = Number(conductor.lastClaimableCheck)
  const unanswered = createDeferred()
  const catchUp = vi.spyOn(boardInternals(board), 'catchUp').mockReturnValueOnce(unanswered.promise)
  const checkedAfter = async () => {
    await vi.advanceTimersByTimeAsync(60_000)
    return Number(conductor.lastClaimableCheck) - begun
  }
  expect([await checkedAfter(), catchUp.mock.calls.length]).toEqual([0, 1])
  expect([await checkedAfter(), catchUp.mock.calls.length]).toEqual([120_000, 2])
})

test('a clock that is an hour ahead of the servers is named once in the log, and by the doctor; waits are measured without it', async () => {
  await using redis = await startRedis()
  const clock = Date.now
  vi.spyOn(Date, 'now').mockImplementation(() => clock() + HOUR_MS)
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const board = await openBoard(`${redis.uri}/0?prefix=clock`, { who: 'poster' })
  onTestFinished(() => board.close())
  const lines: { msg: string }[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const conductor = await startTestConductor({
    ...{ board: `${redis.uri}/0?prefix=clock`, persistence: 'memory:', flows: [fine], name: 'fast', log },
    ...{ health: { port: 0 }, metrics: true },
  })
  await vi.advanceTimersByTimeAsync(2 * 60_000)
  expect(lines.map(({ msg }) => msg)).toEqual([
    expect.stringMatching(/^the clock of this machine is .* ahead of the servers' clock/),
  ])
  const findings = await examineJobs({ board, unreadable: [], stuckAfter: HOUR_MS })
  expect(findings).toContainEqual(
    expect.objectContaining({ about: 'clock', text: expect.stringMatching(/conductor fast is .* ahead of/) }),
  )
  let begun: Date | undefined
  conductor.on('started', ({ job: { attempts } }) => {
    begun = attempts.at(-1)?.at
  })
  await (await board.post(fine, { n: 1 })).wait()
  expect(Math.abs(Number(begun) - clock())).toBeLessThan(HOUR_MS / 2)
  const metrics = await (await fetch(`${conductor.healthUrl}/metrics`)).text()
  const value = (name: string) => Number(new RegExp(`^jobboard_${name}\\{.*\\} (.*)$`, 'm').exec(metrics)?.[1])
  expect(value('wait_seconds_sum')).toBeLessThan(HOUR_MS / 2_000)
  expect(value('clock_ahead_seconds')).toBeGreaterThan(HOUR_MS / 2_000)
})
