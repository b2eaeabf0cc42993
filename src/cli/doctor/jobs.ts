/** The doctor's checks of jobs, and of the conductors that should run them. */
import type { Entity, Job, JobBoard } from '../../board/index.ts'
import { boardInternals, isKnownToAny, toFlowReference } from '../../board/internal.ts'
import { toMilliseconds } from '../../core/time.ts'
import { conductorView, currentRun, describeClock, doesServe, formatDuration } from '../../views/index.ts'
import { describeKeptSlots, jobWarnings } from '../../views/internal.ts'
import { shellWord } from '../output/render/text.ts'
import { errorFinding, type Finding, formatCount, listSome, okFinding, warningFinding } from './finding.ts'

export interface JobsExamined {
  readonly board: JobBoard
  /** The errors of postings that could not be read. */
  readonly unreadable: readonly Error[]
  /** The age in milliseconds from which on a claim is examined. */
  readonly stuckAfter: number
}

/**
 * The age from which on a claim whose owner is no conductor is suspicious; before, it may be of a loop or of a run in
 * the foreground.
 */
const UNKNOWN_OWNER_AFTER_MS = toMilliseconds('5m', '')

export async function examineJobs({ board, unreadable, stuckAfter }: JobsExamined): Promise<Finding[]> {
  const entities = await board.entities('conductor')
  // Claims have times of the servers' clock.
  const now = await boardInternals(board).readClock()
  const jobs: Job[] = []
  for await (const job of board.jobs({ ensureFresh: true })) jobs.push(job)
  const claimed = jobs.filter(({ state }) => state === 'CLAIMED')
  const waiting = jobs.filter(({ state }) => state === 'UNCLAIMED')
  const found = [
    ...(await pauseFindings(board)),
    ...conductorFindings(entities, waiting.length),
    ...stuckFindings(claimed, { entities, stuckAfter, now }),
    ...jobFindings(jobs, { conductors: entities, now }),
    ...orphanFindings(waiting, entities),
    ...unservedFindings(waiting, entities),
    ...blockingFindings(waiting, entities),
    ...unreadable.map((problem) =>
      errorFinding('posting', problem.message, 'remove or repair it, where it was written'),
    ),
  ]
  if (found.every(({ severity }) => severity === 'ok'))
    found.push(
      okFinding('jobs', `${formatCount(waiting.length, 'job')} waiting, ${claimed.length} running, without problems`),
    )
  return found
}

async function pauseFindings(board: JobBoard): Promise<Finding[]> {
  if (!board.paused) return []
  const origin = await board.pauseOrigin()
  const why = origin?.reason === undefined ? '' : `: ${origin.reason}`
  const who = origin ? ` since ${origin.since.toISOString()} by ${origin.by}${why}; ` : ': '
  return [warningFinding('pause', `the board is paused${who}no job is claimed`, 'jobboard resume ends the pause')]
}

function conductorFindings(entities: readonly Entity[], waiting: number): Finding[] {
  if (entities.length === 0 && waiting > 0) {
    const what = `no conductor is connected, and ${formatCount(waiting, 'job')} ${waiting === 1 ? 'waits' : 'wait'}`
    return [warningFinding('conductors', what, 'start one: jobboard conductor --flows MODULE')]
  }
  const views = entities.map(conductorView)
  const unwell = views
    .filter(({ logbooks, noChild }) => logbooks === 'away' || noChild !== undefined)
    .map(({ name }) => name)
  const clocks = views.flatMap(({ name, clockAheadMs = 0 }) =>
    clockAheadMs === 0 ? [] : [describeClock({ name, clockAheadMs })],
  )
  const versions = distinct(views.map(({ version }) => version))
  const releases = distinct(views.map(({ release }) => release))
  const what = [
    formatCount(views.length, 'conductor'),
    ...(versions.length > 0 ? [`jobboard ${versions.join(' and ')}`] : []),
    ...(releases.length > 0
      ? [`application ${releases.length === 1 ? 'release' : 'releases'} ${releases.join(' and ')}`]
      : []),
  ]
  return [
    okFinding('conductors', what.join(', ')),
    ...views.flatMap((view) => {
      const text = describeKeptSlots(view)
      const advice = 'the slots are free when the tasks end: restart that process if they hang'
      return text === undefined ? [] : [warningFinding('slots', text, advice)]
    }),
    ...(unwell.length > 0
      ? [
          warningFinding(
            'conductors',
            `${listSome(unwell)} cannot claim`,
            'read their logs: logbooks may be away, or child processes cannot be started',
          ),
        ]
      : []),
    ...clocks.map((text) =>
      warningFinding('clock', text, 'synchronize the clock of its machine, for example with NTP'),
    ),
  ]
}

/** Returns findings for queues with waiting jobs that no living conductor serves; none without a conductor. */
function unservedFindings(waiting: readonly Job[], entities: readonly Entity[]): Finding[] {
  if (entities.length === 0) return []
  const views = entities.map(conductorView)
  const jobs = new Map<string, number>()
  for (const { queue } of waiting) jobs.set(queue, (jobs.get(queue) ?? 0) + 1)
  return [...jobs].sort().flatMap(([queue, count]) => {
    if (views.some((view) => doesServe(view, queue))) return []
    const text = `queue ${queue} is served by no living conductor, and ${formatCount(count, 'job')} ${count === 1 ? 'waits' : 'wait'} in it`
    return [warningFinding('queue', text, `start one: jobboard conductor --flows MODULE --queue ${shellWord(queue)}`)]
  })
}

function distinct(values: readonly (string | undefined)[]): string[] {
  return [...new Set(values.flatMap((value) => value ?? []))].sort()
}

interface StuckCheckOptions {
  readonly entities: readonly Entity[]
  readonly stuckAfter: number
  readonly now: number
}

function stuckFindings(claimed: readonly Job[], { entities, stuckAfter, now }: StuckCheckOptions): Finding[] {
  const living = new Set(entities.map(({ name }) => name))
  return claimed.flatMap((job) => {
    const run = currentRun(job)
    if (!run) return []
    const held = now - run.at.getTime()
    const since = `${job}: claimed by ${run.who} for ${formatDuration(held)}`
    if (!living.has(run.who) && held > UNKNOWN_OWNER_AFTER_MS) {
      const advice = `check whether ${run.who} is a loop of your own, or hangs: when its process ends, the job is free`
      return [warningFinding('claim', `${since}, and no living conductor has that name`, advice)]
    }
    if (held <= stuckAfter) return []
    const advice = `jobboard show ${job.uuid} shows its progress, jobboard cancel ${job.uuid} requests its cancellation; a deadline limits runs`
    return [warningFinding('claim', since, advice)]
  })
}

/** Returns findings for jobs that ignore a stop, and for jobs whose last owners died. */
function jobFindings(jobs: readonly Job[], context: Parameters<typeof jobWarnings>[1]): Finding[] {
  const listed = jobs.map((job) => {
    return { job, posting: job, claimed: job.state === 'CLAIMED', cancelRequested: job.cancelRequested }
  })
  return jobWarnings(listed, context).map(({ about, text, advice }) =>
    about === 'poison' ? errorFinding(about, text, advice) : warningFinding(about, text, advice),
  )
}

/**
 * Returns findings for jobs whose flow is unknown to all conductors; none if no conductor reports its flows, as own
 * loops do not.
 */
function orphanFindings(waiting: readonly Job[], entities: readonly Entity[]): Finding[] {
  if (entities.length === 0) return []
  const orphans = new Map<string, Job[]>()
  for (const job of waiting) {
    const work = toFlowReference(job)
    if (!work || isKnownToAny(work, entities)) continue
    const what = [work.flow, work.version].filter((part) => part !== undefined).join(' ')
    orphans.set(what, [...(orphans.get(what) ?? []), job])
  }
  return [...orphans].map(([what, jobs]) => {
    const text = `${formatCount(jobs.length, 'job')} of flow ${what}, which no living conductor knows: ${listSome(jobs.map(({ uuid }) => uuid))}`
    return errorFinding(
      'flow',
      text,
      'start a conductor that has the flow; a cancelled job that never ran is trashed at once, any other is reverted first, by a conductor that has the flow',
    )
  })
}

/**
 * Returns findings for jobs that block others: no living conductor knows their flow, and later jobs want the same
 * resources.
 */
function blockingFindings(waiting: readonly Job[], entities: readonly Entity[]): Finding[] {
  if (entities.length === 0) return []
  /** The first job that wants a resource, and the first that wants it exclusively, by the resource's name. */
  const orphans = new Map<string, { first: Job; alone?: Job }>()
  const blocked = new Map<Job, Job[]>()
  // The jobs are in claim order.
  for (const job of waiting) {
    const work = toFlowReference(job)
    const { exclusive = [], shared = [] } = job.resources
    if (work && !isKnownToAny(work, entities)) {
      for (const name of exclusive) orphans.set(name, { first: job, alone: job, ...orphans.get(name) })
      for (const name of shared) orphans.set(name, { first: job, ...orphans.get(name) })
      continue
    }
    const before =
      exclusive.flatMap((name) => orphans.get(name)?.first ?? [])[0] ??
      shared.flatMap((name) => orphans.get(name)?.alone ?? [])[0]
    if (before) blocked.set(before, [...(blocked.get(before) ?? []), job])
  }
  return [...blocked].map(([orphan, jobs]) => {
    const what = `${formatCount(jobs.length, 'job')} ${jobs.length === 1 ? 'wants' : 'want'} resources that ${orphan} wants before them`
    const advice = `start a conductor that has the flow, or jobboard cancel ${orphan.uuid}; others no longer wait for it once no conductor has known its flow for --unaccepted-after of the conductors (1h by default)`
    return warningFinding('resources', `${what}, and no living conductor knows its flow`, advice)
  })
}
