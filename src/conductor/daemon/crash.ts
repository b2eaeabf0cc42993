/**
 * How a conductor's process ends when something was thrown that nobody caught, or rejected that nobody handled: one line
 * in the log, the job that it came from fails, every other job goes back to the board uncharged, then the process ends.
 * To go on would be wrong: nobody knows what the fault has left half done.
 */
import { currentExecution, type ExecutionContext } from '../../core/async/work.ts'
import { Cancelled, ClaimLost, ShuttingDown } from '../../core/errors.ts'
import { describeError, failureOf } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import type { Conductor } from '../conductor.ts'

const FAULT_EVENTS = ['uncaughtException', 'unhandledRejection'] as const

/** Something was thrown outside of everything that would have caught it. */
export interface ProcessFault {
  readonly kind: (typeof FAULT_EVENTS)[number]
  readonly error: Error
  /** Where it came from, if that is known. */
  readonly work: ExecutionContext | undefined
}

/** What may still be done after the jobs were given back, in milliseconds: settling them, closing the board. */
const CLEAN_UP_TIMEOUT_MS = 5_000
/** Faults after the first one get a line each, up to so many: a timer may throw again and again. */
const MAX_FURTHER_FAULT_LINES = 10

/** Reports every fault of the process until it is disposed. The process does not end by itself meanwhile. */
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
  /** Resolves with the conductor, or with undefined where it could not start. */
  readonly conductor: () => Promise<Conductor | undefined>
  /** How long tasks that do not stop are waited for, in milliseconds. */
  readonly abortTimeout: number
  /** Closed at the end: nothing of this process goes on. */
  readonly opened: readonly AsyncDisposable[]
}

/** The end of a process that had a fault. */
export class CrashHandler {
  readonly #options: CrashOptions
  #ending: Promise<never> | undefined
  #furtherFaults = 0

  constructor(options: CrashOptions) {
    this.#options = options
  }

  /** Never resolves once there was a fault: the process ends. Undefined while there was none. */
  get ending(): Promise<never> | undefined {
    return this.#ending
  }

  /** Logs the fault; with the first one, begins to end the process. */
  report(fault: ProcessFault): void {
    const { kind, error, work } = fault
    const facts = {
      kind,
      err: failureOf(error),
      ...(work ? { job: work.job, name: work.name, run: work.run } : {}),
      ...(work?.task === undefined ? {} : { task: work.task }),
    }
    if (this.#ending !== undefined) {
      this.#furtherFaults += 1
      if (this.#furtherFaults <= MAX_FURTHER_FAULT_LINES)
        this.#options.log.error(facts, `${kind} while the process ends`)
      return
    }
    const from = work ? `in job ${work.job} (${work.name})` : 'outside of every job'
    const what = kind === 'uncaughtException' ? 'an exception that nothing caught' : 'a rejection that nothing handled'
    const message = `${what}, ${from}: the conductor gives its jobs back and ends the process`
    this.#options.log.fatal(facts, message)
    // What a task rejects with because it was told to stop is no fault of the job.
    const isExpected = [ShuttingDown, ClaimLost, Cancelled].some((type) => error instanceof type)
    if (!isExpected) work?.fail(error)
    this.#ending = this.#end()
  }

  async #end(): Promise<never> {
    const { conductor, abortTimeout, opened, log } = this.#options
    const failed = (error: unknown) => log.error({ err: failureOf(error) }, 'the process ends, and this failed')
    // Logbooks or a board that never answer keep it no longer than this.
    setTimeout(() => process.exit(1), abortTimeout + CLEAN_UP_TIMEOUT_MS)
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
  if (thrown instanceof Error) return thrown
  const how = kind === 'uncaughtException' ? 'thrown' : 'rejected with'
  return new Error(`${how} what is no Error: ${describeError(thrown)}`)
}
