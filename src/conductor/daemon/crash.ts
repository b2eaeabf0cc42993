/**
 * Ends a conductor's process after an uncaught exception or an unhandled rejection. One line is written to the log, the job that caused the
 * fault fails, every other job returns to the board uncharged, and then the process ends. The process must not continue, because the fault
 * may have left any state half changed.
 */

import { currentExecution, type ExecutionContext } from '../../core/async/execution.ts'
import { isError } from '../../core/errors.ts'
import { describeError, failureOf } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { defined } from '../../core/options.ts'
import { startTimer } from '../../core/time.ts'
import type { Conductor } from '../conductor.ts'

const FAULT_EVENTS = ['uncaughtException', 'unhandledRejection'] as const

/** An uncaught exception or an unhandled rejection. */
export interface ProcessFault {
  readonly kind: (typeof FAULT_EVENTS)[number]
  readonly error: Error
  /** The job and task that caused it, if known. */
  readonly work: ExecutionContext | undefined
}

/** The time for settling jobs and closing the board, beyond `abortTimeout`. */
const CLEAN_UP_TIMEOUT_MS = 5_000
/** The maximum number of log lines for faults after the first one: a timer may throw again and again. */
const MAX_FURTHER_FAULT_LINES = 10

/** Reports every fault of the process until the result is disposed of. Until then, a fault does not end the process by itself. */
export function onFault(report: (fault: ProcessFault) => void): Disposable {
  const listeners = FAULT_EVENTS.map((kind) => {
    const listener = (thrown: unknown) => report({ kind, error: toFaultError(thrown, kind), work: currentExecution() })
    process.on(kind, listener)
    return { kind, listener }
  })
  return {
    [Symbol.dispose]: () => {
      for (const { kind, listener } of listeners) process.off(kind, listener)
    },
  }
}

export interface CrashOptions {
  readonly log: Logger
  /** Resolves with the conductor, or with undefined when it could not start. */
  readonly conductor: () => Promise<Conductor | undefined>
  /** The time limit in milliseconds for tasks that do not stop. */
  readonly abortTimeout: number
  /** The resources that are closed at the end, because the process ends. */
  readonly opened: readonly AsyncDisposable[]
}

/** Ends the process after a fault. */
export class CrashHandler {
  readonly #options: CrashOptions
  #ending: Promise<never> | undefined
  #furtherFaults = 0

  constructor(options: CrashOptions) {
    this.#options = options
  }

  /** A promise that never resolves, because the process ends; undefined while there was no fault. */
  get ending(): Promise<never> | undefined {
    return this.#ending
  }

  /** Logs the fault; the first one begins the end of the process. */
  report(fault: ProcessFault): void {
    const { kind, error, work } = fault
    const facts = {
      kind,
      err: failureOf(error),
      ...defined({ job: work?.job, name: work?.name, run: work?.run, task: work?.task }),
    }
    if (this.#ending !== undefined) {
      this.#furtherFaults += 1
      if (this.#furtherFaults <= MAX_FURTHER_FAULT_LINES)
        this.#options.log.error(facts, `${kind} while the process ends`)
      return
    }
    const from = work ? `in job ${work.job} (${work.name})` : 'outside of any job'
    const what = kind === 'uncaughtException' ? 'uncaught exception' : 'unhandled rejection'
    const message = `${what} ${from}: the conductor abandons its jobs and ends the process`
    this.#options.log.fatal(facts, message)
    work?.fail(error)
    this.#ending = this.#end()
  }

  async #end(): Promise<never> {
    const { conductor, abortTimeout, opened, log } = this.#options
    const failed = (error: unknown) =>
      log.error({ err: failureOf(error) }, 'cleaning up before the end of the process failed')
    // The timer limits the wait for logbooks or a board that never answer.
    startTimer(() => process.exit(1), abortTimeout + CLEAN_UP_TIMEOUT_MS)
    try {
      const running = await conductor()
      running?.abort()
      await running?.stop()
    } catch (error) {
      failed(error)
    }
    for (const each of opened) {
      try {
        await each[Symbol.asyncDispose]()
      } catch (error) {
        failed(error)
      }
    }
    return process.exit(1)
  }
}

function toFaultError(thrown: unknown, kind: ProcessFault['kind']): Error {
  if (isError(thrown)) return thrown
  const how = kind === 'uncaughtException' ? 'thrown' : 'rejected with'
  return new Error(`${how} a value that is not an Error: ${describeError(thrown)}`)
}
