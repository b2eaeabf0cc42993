/**
 * Reports errors of users' handlers and listeners. They affect no other code and would stay unnoticed: so each is
 * logged and emitted as an event, and without a log or a listener the process warns once.
 */
import { describeFailure, failureOf } from '../../core/failure.ts'
import { type Logger, silentLog } from '../../core/log.ts'

/** An error of a handler of a watch, or of a listener. */
export interface HandlerFault {
  readonly error: unknown
  /** Watched path, for a handler of a watch. */
  readonly watch?: string
  /** Event, for a listener. */
  readonly event?: string
}

export interface HandlerErrorReporterOptions {
  readonly log: Logger | undefined
  /** Emits `error`; false when it has no listener. */
  readonly emit: (fault: HandlerFault) => boolean
}

export class HandlerErrorReporter {
  readonly #options: HandlerErrorReporterOptions
  #warned = false

  constructor(options: HandlerErrorReporterOptions) {
    this.#options = options
  }

  /** Reports that the handler of a watch of that path failed. */
  reportWatch(error: unknown, path: string): void {
    this.#handle({ error, watch: path }, `a handler of the watch of ${path}`)
  }

  /** Reports that a listener of that event failed; a failure of a listener for `error` is not emitted again. */
  reportListener(error: unknown, event: string): void {
    this.#handle({ error, event }, `a listener of ${event}`)
  }

  #handle(fault: HandlerFault, who: string): void {
    const { emit } = this.#options
    const failure = failureOf(fault.error)
    const reason = describeFailure(failure)
    this.#log(fault, reason, `${who} threw`)
    const isHandled = fault.event !== 'error' && emit(fault)
    if (isHandled || this.#options.log || this.#warned) return
    this.#warned = true
    process.emitWarning(`${who} of a ZooKeeper client threw, and it goes on: ${reason}`, {
      type: 'JobboardWarning',
      code: 'JOBBOARD_HANDLER_THREW',
      detail: `${failure.stack ?? reason}\nGive the client a log, or listen to its event "error", to receive the next ones.`,
    })
  }

  /** Logs a fault. Never throws: otherwise a handler that threw would close the connection. */
  #log({ error, ...where }: HandlerFault, reason: string, message: string): void {
    const { log = silentLog } = this.#options
    // The thrown value may throw again when a logger reads it.
    for (const thrown of [{ err: error }, {}]) {
      try {
        log.error({ ...where, ...thrown, reason }, message)
        return
      } catch {}
    }
  }
}

/** Calls users' functions so that their errors affect neither the caller nor other handlers. */

/**
 * Calls a user's handler so that its errors affect neither the caller nor other handlers.
 *
 * @param onFault receives the error that the handler threw, or the reason of its rejected promise
 */
export function invokeHandler(handler: () => unknown, onFault: (error: unknown) => void): void {
  try {
    const answer = handler()
    // Handlers are not awaited; but an async function fails later, and an unhandled rejection would end the process.
    if (answer instanceof Promise) answer.catch(onFault)
  } catch (error) {
    onFault(error)
  }
}
