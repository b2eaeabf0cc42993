/** The events of a conductor, for `conductor.on`. */
import type { JobBoard, SkipReason } from '../board/index.ts'
import type { Child, ChildEnd } from '../pool/index.ts'
import type { EventLoopBlocked } from './event-loop-watch.ts'
import type { RunProgressed } from './runs/job-run.ts'
import type { RunSettled, RunStarted } from './runs/runs.ts'
import type { StopIgnored } from './runs/unstopped-jobs.ts'

/** A child process for isolated tasks is ready. */
export interface ChildStartedEvent {
  /** The number of the child in this conductor; never used again. */
  readonly child: number
  readonly pid: number | undefined
  readonly tookMs: number
}

/** A child process has ended. */
export interface ChildDiedEvent {
  readonly child: number
  readonly pid: number | undefined
  readonly exitCode: number | null
  readonly signal: string | null
  /** Whether the conductor has ended it. */
  readonly expected: boolean
  /** A description of the event. */
  readonly reason: string
  readonly outOfMemory: boolean
  /** The number of tasks that it has begun. */
  readonly tasks: number
}

/** A job of a schedule was posted. */
export interface ScheduleFired {
  readonly schedule: string
  readonly tenant?: string
  /** The job. */
  readonly uuid: string
  /** The time that the rule names. */
  readonly nominal: Date
  /** The milliseconds by which the job was posted later. */
  readonly lateMs: number
}

/** Times of a schedule that are not run. */
export interface ScheduleSkipped {
  readonly schedule: string
  readonly tenant?: string
  readonly reason: SkipReason
  /** The number of times. */
  readonly count: number
  /** The first and the last nominal time. */
  readonly from: Date
  readonly to: Date
  /** The reason why the board refused the job. */
  readonly error?: string
}

/** The events of a conductor, for `conductor.on`. */
export interface ConductorEvents {
  started: RunStarted
  settled: RunSettled
  /**
   * The event loop was blocked for half of the session's timeout. A block longer than the timeout loses every claim.
   */
  eventLoopBlocked: EventLoopBlocked
  /** The stop signal of a job fired ten seconds ago, and a task of it still runs. Emitted once for each run. */
  stopIgnored: StopIgnored
  /** A task has reported its progress. Emitted for each report. */
  progress: RunProgressed
  /** A child process for isolated tasks is ready. */
  childStarted: ChildStartedEvent
  /** A child process has ended, by itself or because the conductor has ended it. */
  childDied: ChildDiedEvent
  /** Emitted when this conductor has posted a job of a schedule. */
  fired: ScheduleFired
  /** Emitted when this conductor has decided that times of a schedule are not run. */
  skipped: ScheduleSkipped
  /**
   * The servers have lost the data of a board, which was created anew. The conductor runs its `beforeClaim` hooks again and declares its limits and schedules
   * anew; meanwhile it claims no jobs of this board.
   */
  emptied: { readonly board: JobBoard }
  /** An error that belongs to no job, or that a listener threw. */
  error: { readonly error: Error }
}

/** The names of all events: others are refused by `on`. */
export const CONDUCTOR_EVENTS: Readonly<Record<keyof ConductorEvents, true>> = {
  started: true,
  settled: true,
  eventLoopBlocked: true,
  stopIgnored: true,
  progress: true,
  childStarted: true,
  childDied: true,
  fired: true,
  skipped: true,
  emptied: true,
  error: true,
}

export function toChildDied(child: Child, end: ChildEnd): ChildDiedEvent {
  const { exitCode, signal, isExpected: expected, reason, isOutOfMemory: outOfMemory } = end
  return {
    ...{ child: child.number, pid: child.pid, exitCode, signal, expected, reason, outOfMemory },
    tasks: child.workCount,
  }
}
