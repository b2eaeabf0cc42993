/** Counts the jobs of a view by flow, queue and state, from memory: no request, however long the board is. */
import type { JobEntry } from '../model/entry.ts'
import { queueOf } from '../model/queues.ts'
import type { LiveView } from './live-view.ts'

/**
 * The state by which a job is counted. `waiting`: for an owner or for resources. `limited`: a limit has no room for it. `blocked`: it waits
 * for other jobs.
 */
export const SURVEYED_STATES = ['waiting', 'limited', 'delayed', 'blocked', 'running'] as const
export type SurveyedState = (typeof SURVEYED_STATES)[number]

export interface FlowSurvey {
  readonly counts: Record<SurveyedState, number>
  /** The time since when the longest-waiting job has waited, on the board's clock in milliseconds; undefined if none waits. */
  oldest: number | undefined
}

export interface JobsSurvey {
  /** The number of jobs on the board, claimed or not. */
  readonly total: number
  /** Whether every job is counted. If not, the view has only the window of the board, and all counts but `running` are lower bounds. */
  readonly isComplete: boolean
  /** The jobs by flow. Jobs without a flow, or whose posting was not read, count as `none`. */
  readonly flows: ReadonlyMap<string, FlowSurvey>
  /** The jobs by queue. Jobs whose posting was not read are in none. */
  readonly queues: ReadonlyMap<string, FlowSurvey>
  /** The number of jobs that wait for each key of a limit. */
  readonly limited: ReadonlyMap<string, number>
}

const NO_FLOW = 'none'

/** Counts the jobs of an open view. */
export function surveyJobs(view: LiveView, { now }: { readonly now: number }): JobsSurvey {
  const flows = new Map<string, FlowSurvey>()
  const queues = new Map<string, FlowSurvey>()
  const limited = new Map<string, number>()
  for (const entry of view.entries()) {
    if (entry.ended) continue
    const flow = entry.stored?.posting.details.flow ?? NO_FLOW
    const surveys = [surveyOf(flows, flow), ...(entry.stored ? [surveyOf(queues, queueOf(entry.stored.posting))] : [])]
    const limit = entry.claimed ? undefined : view.queue.limitOf(entry)
    const state = stateOf(entry, { now, isLimited: limit !== undefined })
    for (const { counts } of surveys) counts[state] += 1
    if (limit) limited.set(limit.key, (limited.get(limit.key) ?? 0) + 1)
    if (state !== 'waiting' && state !== 'limited') continue
    const since = waitingSince(entry)
    if (since === undefined) continue
    for (const survey of surveys) survey.oldest = Math.min(survey.oldest ?? since, since)
  }
  return { total: view.jobCount ?? 0, isComplete: view.extent.showsWholeBoard, flows, queues, limited }
}

function surveyOf(surveys: Map<string, FlowSurvey>, name: string): FlowSurvey {
  const survey = surveys.get(name) ?? newFlowSurvey()
  surveys.set(name, survey)
  return survey
}

function newFlowSurvey(): FlowSurvey {
  return { counts: { waiting: 0, limited: 0, delayed: 0, blocked: 0, running: 0 }, oldest: undefined }
}

function stateOf(
  { claimed, stored, queuePlace, cancelRequested }: JobEntry,
  { now, isLimited }: { readonly now: number; readonly isLimited: boolean },
): SurveyedState {
  if (claimed) return 'running'
  if (stored?.waits && !cancelRequested) return 'blocked'
  if (isLimited) return 'limited'
  return queuePlace && queuePlace.dueAt > now ? 'delayed' : 'waiting'
}

/** Returns the time since when a job waits: its last write or its due time, whichever is later. */
function waitingSince({ stored, queuePlace }: JobEntry): number | undefined {
  return stored && Math.max(stored.writtenAt, queuePlace?.dueAt ?? 0)
}
