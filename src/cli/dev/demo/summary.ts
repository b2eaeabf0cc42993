/** The summary of a demo, read from the logbook of the job whose owner died: it shows the recorded facts. */
import type { AtomState } from '../../../core/states.ts'
import type { FlowDetail, Persistence } from '../../../persistence/index.ts'
import type { DemoScenario } from './play.ts'

export interface Takeover {
  readonly uuid: string
  readonly job: string
  readonly from: string
  readonly by: string
  /** The time from the death to the first task of the next owner, in milliseconds. */
  readonly after: number
  /** The tasks that were done when their owner died, and were not run again. */
  readonly kept: readonly string[]
  /** The tasks that were running when their owner died, and began again. */
  readonly again: readonly string[]
}

export interface DemoSummary {
  readonly jobs: number
  readonly complete: number
  /** The duration of the demo, in milliseconds. */
  readonly took: number
  readonly takenOver?: Takeover
}

export async function toSummary(
  { jobs, victim }: Pick<DemoScenario, 'jobs' | 'victim'>,
  { persistence, took }: { persistence: Persistence; took: number },
): Promise<DemoSummary> {
  const complete = jobs.filter(({ state }) => state === 'COMPLETE').length
  const counts = { jobs: jobs.length, complete, took }
  const job = jobs.find(({ name }) => name === victim?.job)
  if (!job || victim?.by === undefined || victim.after === undefined) return counts
  const { from, by, after } = victim
  const book = await persistence.getBook(job.book.uuid)
  const flow = book.flows.find(({ uuid }) => uuid === job.uuid)
  return { ...counts, takenOver: { uuid: job.uuid, job: job.name, from, by, after, ...readTaskStates(flow) } }
}

/**
 * Returns the tasks by their states. A task that was begun again stays RUNNING in the record; the proof of it is its
 * success in a later run.
 */
function readTaskStates(flow: FlowDetail | undefined): Pick<Takeover, 'kept' | 'again'> {
  const tasks = (flow?.atoms ?? []).map(({ name, states = [] }) => {
    const runOf = (wanted: AtomState) => states.findLast(({ state }) => state === wanted)?.run
    return { name, began: runOf('RUNNING'), done: runOf('SUCCESS') }
  })
  const first = Math.min(...tasks.flatMap(({ began }) => began ?? []))
  const ofFirst = tasks.filter(({ began }) => began === first)
  return {
    kept: ofFirst.filter(({ done }) => done === first).map(({ name }) => name),
    again: ofFirst.filter(({ done }) => done !== first).map(({ name }) => name),
  }
}
