/** The doctor's checks of jobs, and of the conductors that should run them. */
import type { Entity, Job, JobBoard } from '../../board/index.ts'
import { countTrailingDeaths, isKnownToAny, isSuspect, toFlowReference } from '../../board/internal.ts'
import { toMilliseconds } from '../../core/time.ts'
import { conductorView, formatDuration } from '../../views/index.ts'
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
/** The tolerated difference between the clock of an owner and this machine's. */
const CLOCK_TOLERANCE_MS = 2_000
export async function examineJobs({ board, unreadable, stuckAfter }: JobsExamined): Promise<Finding[]> {
  const entities = await board.entities('conductor')
  const jobs: Job[] = []
  for await (const job of board.jobs({ ensureFresh: true })) jobs.push(job)
  const claimed = jobs.filter(({ state }) => state === 'CLAIMED')
  const waiting = jobs.filter(({ state }) => state === 'UNCLAIMED')
  const found = [
    ...pauseFindings(board),
    ...conductorFindings(entities, waiting.length),
    ...stuckFindings(claimed, { entities, stuckAfter }),
    ...ignoredStopFindings(claimed),
    ...poisonFindings(jobs),
    ...orphanFindings(waiting, entities),
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

function pauseFindings({ paused }: JobBoard): Finding[] {
  return paused
    ? [warningFinding('pause', 'the board is paused: no job is claimed', 'jobboard resume ends the pause')]
    : []
}

function conductorFindings(entities: readonly Entity[], waiting: number): Finding[] {
  if (entities.length === 0 && waiting > 0) {
    const what = `no conductor is connected, and ${formatCount(waiting, 'job')} ${waiting === 1 ? 'waits' : 'wait'}`
    return [warningFinding('conductors', what, 'start one: jobboard conductor --flows MODULE')]
  }
  const views = entities.map(conductorView)
  const unwell = views.filter(({ state }) => state === 'unhealthy').map(({ name }) => name)
  const releases = [...new Set(views.flatMap(({ version }) => version ?? []))]
  return [
    okFinding(
      'conductors',
      `${formatCount(views.length, 'conductor')}${releases.length > 0 ? ` of release ${releases.join(', ')}` : ''}`,
    ),
    ...(unwell.length > 0
      ? [
          warningFinding(
            'conductors',
            `${listSome(unwell)} cannot claim`,
            'read their logs: logbooks or board may be away',
          ),
        ]
      : []),
  ]
}

interface StuckCheckOptions {
  readonly entities: readonly Entity[]
  readonly stuckAfter: number
}

function stuckFindings(claimed: readonly Job[], { entities, stuckAfter }: StuckCheckOptions): Finding[] {
  const living = new Set(entities.map(({ name }) => name))
  const now = Date.now()
  return claimed.flatMap((job) => {
    const newest = job.attempts.at(-1)
    if (!newest) return []
    const held = now - newest.at.getTime()
    const since = `${job}: claimed by ${newest.who} for ${formatDuration(held)}`
    if (!living.has(newest.who) && held > UNKNOWN_OWNER_AFTER_MS) {
      const advice = `check whether ${newest.who} is a loop of your own, or hangs: when its process ends, the job is free`
      return [warningFinding('claim', `${since}, and no living conductor has that name`, advice)]
    }
    if (held <= stuckAfter) return []
    const advice = `jobboard show ${job.uuid} shows its progress, jobboard cancel ${job.uuid} requests its cancellation; a deadline limits runs`
    return [warningFinding('claim', since, advice)]
  })
}

/** Returns findings for jobs that were requested to stop, and still run. */
function ignoredStopFindings(claimed: readonly Job[]): Finding[] {
  const now = Date.now()
  return claimed.flatMap((job) => {
    const newest = job.attempts.at(-1)
    const late = job.deadline === undefined || !newest ? 0 : now - newest.at.getTime() - job.deadline
    const lines = [
      ...(late > CLOCK_TOLERANCE_MS ? [`its deadline passed ${formatDuration(late)} ago`] : []),
      ...(job.cancelRequested ? ['its cancellation was requested'] : []),
    ]
    if (lines.length === 0) return []
    const text = `${job}: ${lines.join(', and ')}, and ${newest?.who ?? 'its owner'} still runs it`
    const advice = `it may be reverting: jobboard track ${job.uuid}; a task that ignores ctx.signal ends with its process only`
    return [warningFinding('unheeded', text, advice)]
  })
}

function poisonFindings(jobs: readonly Job[]): Finding[] {
  return jobs.flatMap((job) => {
    // The last attempt of a claimed job is the one that is running.
    const attempts = job.state === 'CLAIMED' ? job.attempts.slice(0, -1) : job.attempts
    if (!isSuspect({ attempts })) return []
    const deaths = countTrailingDeaths(attempts)
    const text = `${job}: its last ${deaths} owners died while running it`
    return [
      errorFinding('poison', text, `jobboard show ${job.uuid} names them; jobboard cancel ${job.uuid} cancels it`),
    ]
  })
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
