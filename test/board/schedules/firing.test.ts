/** The transaction of a firing: a process that dies between any two steps, and several that fire at once. */
import { expect, onTestFinished, test } from 'vitest'
import { type Details, type Overlap, openBoard, type ScheduleOptions, schedule } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import type { BoardRecord, RecordStore } from '../../../src/board/records/record-store.ts'
import { type FiringOptions, fire } from '../../../src/board/schedules/firing.ts'
import { SCHEDULES, type ScheduleRecord } from '../../../src/board/schedules/record.ts'
import { RuleCache } from '../../../src/board/schedules/rule-cache.ts'
import { FlowRules } from '../../../src/board/settings/rules.ts'
import { NotFound } from '../../../src/core/errors.ts'

class Died extends Error {}

const HOUR_MS = 3_600_000
const STEPS = ['before the cancel', 'after the cancel', 'before the write', 'after the write'] as const
type Step = (typeof STEPS)[number]

/** A board with a schedule that is due in an hour, and processes that fire it. */
async function setup(overlap: Overlap, options: ScheduleOptions = {}) {
  const board = await openBoard('memory:')
  onTestFinished(() => board.close())
  await board.schedules.put(schedule('s', { every: '1h' }, 'report', {}, { overlap, ...options }))
  const store = boardInternals(board).records.of(SCHEDULES)
  const read = async (): Promise<BoardRecord<ScheduleRecord>> => {
    const found = await store.get('s')
    if (!found || 'error' in found) throw new Error('the schedule cannot be read')
    return found
  }
  /** Fires as a process does that dies at the step. */
  const fireAt = async (
    now: number,
    { diesAt, record }: { diesAt?: Step; record?: BoardRecord<ScheduleRecord> } = {},
  ) => {
    const dieAt = (step: Step) => {
      if (step === diesAt) throw new Died(step)
    }
    const options: FiringOptions = {
      rules: new RuleCache(),
      now: () => now,
      flowRules: async () => new FlowRules(),
      store: {
        write: async (...request: Parameters<RecordStore<ScheduleRecord>['write']>) => {
          dieAt('before the write')
          const written = await store.write(...request)
          if (written.done) dieAt('after the write')
          return written
        },
      } as RecordStore<ScheduleRecord>,
      cancel: async (uuid, reason) => {
        dieAt('before the cancel')
        const job = await board.find(uuid).catch((error: unknown) => {
          if (!(error instanceof NotFound)) throw error
        })
        if (job) await board.cancel(job, { reason })
        dieAt('after the cancel')
      },
    }
    return fire(record ?? (await read()), options)
  }
  /** The nominal times of all jobs that were ever posted. */
  const posted = async () => {
    const times: string[] = []
    const note = ({ details }: { readonly details: Details }) => void times.push(Object(details.schedule).nominal)
    for await (const job of board.jobs({ ensureFresh: true })) note(job)
    for await (const job of board.trashed()) note(job)
    return times.sort()
  }
  /** Consumes the job on the board. Returns what it says of its schedule. */
  const end = async () => {
    const [claim] = await board.claimNext({ timeout: '5s' })
    await claim.consume()
    return claim.job.details.schedule
  }
  const start = (await read()).value.next?.nominal ?? 0
  return { board, read, fireAt, posted, start, end }
}

const iso = (time: number) => new Date(time).toISOString()

test.each(
  (['skip', 'queueOne', 'queueAll', 'cancelPrevious', 'allow'] as const).flatMap((overlap) =>
    STEPS.map((step) => [overlap, step] as const),
  ),
)('%s: a process that dies %s leaves no time undecided, and none is posted twice', async (overlap, diesAt) => {
  const { read, fireAt, posted, start } = await setup(overlap)
  const times = [start, start + HOUR_MS, start + 2 * HOUR_MS]
  for (const now of times) {
    await fireAt(now, { diesAt }).catch((error: unknown) => {
      if (!(error instanceof Died)) throw error
    })
    // Another process takes over, and a third finds nothing to do.
    await fireAt(now)
    expect(await fireAt(now)).toBeUndefined()
  }
  const { value } = await read()
  const jobs = await posted()
  expect(jobs).toEqual([...new Set(jobs)])
  expect(jobs).toEqual(times.map(iso).slice(0, { skip: 1, queueOne: 2 }[overlap as string] ?? 3))
  expect(value.counts.fired).toBe(jobs.length)
  expect(value.counts.fired + (value.counts.skipped.overlap ?? 0)).toBe(3)
  expect(value.cursor).toBe(times.at(-1))
})

test('of ten processes that fire the same record at once, one posts', async () => {
  const { read, fireAt, posted, start } = await setup('skip')
  const record = await read()
  const fired = await Promise.all(Array.from({ length: 10 }, () => fireAt(start, { record })))
  expect(fired.filter((each) => each !== undefined)).toHaveLength(1)
  expect(await posted()).toEqual([iso(start)])
})

test('a change between the look and the write refuses the firing', async () => {
  const { read, fireAt, posted, start } = await setup('skip')
  const before = await read()
  await fireAt(start)
  expect(await fireAt(start, { record: before })).toBeUndefined()
  expect(await posted()).toEqual([iso(start)])
})

test('a job that the board refuses is skipped with the reason, and the next time comes', async () => {
  const { board, read, fireAt, posted, start } = await setup('allow')
  const record = await read()
  const broken = { ...record, value: { ...record.value, job: { ...record.value.job, maxAttempts: 0 } } }
  const fired = await fireAt(start, { record: broken })
  expect(fired).toMatchObject({
    posted: [],
    skipped: [{ reason: 'refused', error: expect.stringContaining('maxAttempts') }],
  })
  expect(await posted()).toEqual([])
  // This release does not read a record with such a job.
  const raw = boardInternals(board).records.of({ ...SCHEDULES, parse: (value) => value as ScheduleRecord })
  expect(await raw.get('s')).toMatchObject({ value: { next: { nominal: start + HOUR_MS } } })
})

test('a skipped time is none of the jobs after which a schedule ends', async () => {
  const { fireAt, read, start, posted } = await setup('skip', { times: 2 })
  await fireAt(start)
  await fireAt(start + HOUR_MS)
  expect((await read()).value).toMatchObject({ counts: { fired: 1, skipped: { overlap: 1 } } })
  expect((await read()).value.next?.nominal).toBe(start + 2 * HOUR_MS)
  expect(await posted()).toEqual([iso(start)])
})

test('a job knows the previous one after any number of skipped times', async () => {
  const { fireAt, read, start, end } = await setup('skip')
  await fireAt(start)
  for (let hour = 1; hour <= 12; hour += 1) await fireAt(start + hour * HOUR_MS)
  expect((await read()).value.recent.every(({ skipped }) => skipped === 'overlap')).toBe(true)
  await end()
  const fired = await fireAt(start + 13 * HOUR_MS)
  expect(fired?.posted).toHaveLength(1)
  expect(await end()).toMatchObject({ previous: iso(start), nominal: iso(start + 13 * HOUR_MS) })
})
