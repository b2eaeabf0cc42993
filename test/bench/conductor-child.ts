/**
 * One process with a conductor, as it is published: `conductor-child.ts ROLE BOARD PERSISTENCE [NUMBER…]`. It says `ready`
 * when it is connected, does its part when it is told to, and ends with a line of JSON.
 */
import { setTimeout as pause } from 'node:timers/promises'
// What makes TypeScript run as it is costs more than a small task does.
import { type AnyFlow, type Conductor, input, linear, openBoard, openPersistence, startConductor, task } from 'jobboard'
import { now, sideBySide, whenTold } from './part-child.ts'

/** Milliseconds that a job of the flow `io` waits. */
export const IO = 20

/** Longer than eight conductors that start at once take on two processors until the first has settled a job, in milliseconds. */
const IDLE_MS = 6_000

/** Of the jobs of `timed`: how long each took from before it was posted until the first line of its first task. */
const took: number[] = []

const one = task('one', { provides: 'text', execute: () => 'what one has made' })
const two = task('two', { requires: ['text'], execute: ({ text }: { text: string }) => text.length })
const note = task('note', { requires: ['at'], execute: ({ at }: { at: number }) => void took.push(now() - at) })
const rest = task('rest', { execute: () => undefined })

export const FLOWS = {
  two: linear('two', input(), one, two),
  timed: linear('timed', input<{ at: number }>(), note, rest),
  io: linear('io', input(), task('io', { execute: () => pause(IO) })),
} as const satisfies Record<string, AnyFlow>

const [role = '', uri = '', logbooks = '', ...numbers] = process.argv.slice(2)
const [count = 0, concurrency = 1] = numbers.map(Number)
await using board = await openBoard(uri, { who: `${role} ${process.pid}` })
await using persistence = await openPersistence(logbooks)
const options = { board, persistence, flows: Object.values(FLOWS), concurrency }

/** Resolves when so many jobs are settled; where that is Infinity, when none has been for {@link IDLE_MS}. */
async function settled(conductor: Conductor, jobs: number): Promise<number> {
  let done = 0
  let timer: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    const idle = () => {
      clearTimeout(timer)
      timer = setTimeout(resolve, IDLE_MS)
    }
    // The others may have taken all jobs.
    if (!Number.isFinite(jobs)) idle()
    conductor.on('settled', () => {
      done += 1
      if (done === jobs) resolve()
      else if (!Number.isFinite(jobs)) idle()
    })
  })
  clearTimeout(timer)
  return done
}

const ROLES: Readonly<Record<string, () => Promise<void>>> = {
  /** Posts so many jobs, as many side by side as a conductor has slots. */
  post: () => whenTold(() => sideBySide(count, concurrency, () => board.post(FLOWS.two, {}))),

  /** Runs so many jobs, which are on the board. */
  conduct: () =>
    whenTold(async () => {
      await using conductor = await startConductor(options)
      return await settled(conductor, count)
    }),

  /** Runs jobs until none has come for {@link IDLE_MS}; says how many, and when the last was done. */
  share: () =>
    whenTold(async () => {
      await using conductor = await startConductor(options)
      let last = now()
      conductor.on('settled', () => {
        last = now()
      })
      return { jobs: await settled(conductor, Number.POSITIVE_INFINITY), last }
    }),

  /** Waits for jobs one by one; says how soon each was begun. */
  wait: async () => {
    await using conductor = await startConductor(options)
    await whenTold(async () => {
      await settled(conductor, count)
      return took
    })
  },
}

await ROLES[role]?.()
