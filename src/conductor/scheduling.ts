/** The schedules of a conductor: declares the schedules that it was given, and fires the schedules of the board while it runs. */
import type { DeclaredSchedules, JobBoard } from '../board/index.ts'
import type { Fired, Scheduler } from '../board/internal.ts'
import { boardInternals } from '../board/internal.ts'
import { AccessDenied, UnsupportedCapability } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import type { ConductorEvents } from './events.ts'
import type { RunSettled } from './runs/runs.ts'

export interface SchedulingOptions {
  readonly board: JobBoard
  /** The name of the conductor. */
  readonly name: string
  /** The schedules that it declares. */
  readonly schedules: Required<DeclaredSchedules> | undefined
  readonly log: Logger
  readonly emit: <E extends 'fired' | 'skipped'>(event: E, value: ConductorEvents[E]) => void
  readonly onError: (error: unknown) => void
}

export class Scheduling implements AsyncDisposable {
  readonly #options: SchedulingOptions
  #scheduler: Scheduler | undefined
  #declared: Required<DeclaredSchedules> | undefined

  constructor(options: SchedulingOptions) {
    this.#options = options
    this.#declared = options.schedules
  }

  /** The schedules that it has declared. */
  get declared(): Required<DeclaredSchedules> | undefined {
    return this.#declared
  }

  /** Declares schedules, in place of the schedules that it has declared before. @throws the errors of the declaration; NotConnected */
  async declare(schedules: Required<DeclaredSchedules>): Promise<void> {
    const { board, name, log } = this.#options
    const { put, newer, foreign, pruned, kept } = await boardInternals(board).declareSchedules(schedules)
    this.#declared = schedules
    if (put.length > 0 || pruned.length > 0) log.info({ conductor: name, put, pruned }, 'schedules declared')
    const warn = (ids: readonly string[], why: string) => {
      if (ids.length > 0) log.warn({ conductor: name, schedules: ids }, why)
    }
    warn(newer, 'a newer version has declared these schedules: left as they are')
    warn(
      foreign,
      'another owner has declared schedules with these ids: left as they are; choose other ids, or remove them first',
    )
    warn(
      kept,
      'these schedules are not declared any more, and were not pruned: a newer version than that of this declaration has declared them',
    )
  }

  /** Declares the schedules, and fires from now on. @throws the errors of the declaration; NotConnected */
  async start(): Promise<void> {
    const { board, name, schedules, onError } = this.#options
    if (schedules) await this.declare(schedules)
    const scheduler = boardInternals(board).scheduler({
      name,
      onFired: (fired) => this.#report(fired),
      onError,
    })
    try {
      await scheduler.start()
      this.#scheduler = scheduler
    } catch (error) {
      await scheduler[Symbol.asyncDispose]()
      // A conductor that declares none also works where there can be none, and where it may not read them.
      if (schedules || !(error instanceof UnsupportedCapability || error instanceof AccessDenied)) throw error
      if (error instanceof AccessDenied) onError(error)
    }
  }

  /** Notes the end of a job that a schedule has posted: the times of some schedules depend on it. */
  onSettled({ job, settled, failure }: RunSettled): void {
    const ended = settled === 'consumed' || settled === 'trashed'
    if (!ended || !this.#scheduler) return
    const failed = settled === 'trashed' && failure !== undefined
    this.#scheduler.onJobEnded({ uuid: job.uuid, details: job.details, failed })
  }

  /** Ends the firing. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scheduler?.[Symbol.asyncDispose]()
  }

  #report({ id, tenant, posted, skipped }: Fired): void {
    const { log, name, emit } = this.#options
    const who = { schedule: id, ...(tenant === undefined ? {} : { tenant }) }
    for (const { uuid, nominal, lateMs: exactMs } of posted) {
      const lateMs = Math.round(exactMs)
      log.info({ conductor: name, ...who, job: uuid, nominal: new Date(nominal), lateMs }, 'schedule fired')
      emit('fired', { ...who, uuid, nominal: new Date(nominal), lateMs })
    }
    for (const { reason, count, from, to, error } of skipped) {
      const times = { reason, count, from: new Date(from), to: new Date(to), ...(error === undefined ? {} : { error }) }
      log.warn({ conductor: name, ...who, ...times }, 'times of a schedule were skipped')
      emit('skipped', { ...who, ...times })
    }
  }
}
