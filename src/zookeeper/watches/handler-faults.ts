/**
 * What handlers and listeners of users threw. It harms nobody else, so nobody else would ever know: it is logged, it is an
 * event, and whoever gave neither a log nor a listener is warned by the process, once.
 */
import { describeFailure, failureOf } from '../../core/failure.ts'
import { type Logger, silentLog } from '../../core/log.ts'

/** A handler of a watch, or a listener, threw or rejected. */
export interface HandlerFault {
  readonly error: unknown
  /** The path that is watched, of a handler of a watch. */
  readonly watch?: string
  /** What was told, of a listener. */
  readonly event?: string
}

export interface HandlerErrorReporterOptions {
  readonly log: Logger | undefined
  /** Tells those who listen to `error`; false when nobody does. */
  readonly emit: (fault: HandlerFault) => boolean
}

export class HandlerErrorReporter {
  readonly #options: HandlerErrorReporterOptions
  #warned = false

  constructor(options: HandlerErrorReporterOptions) {
    this.#options = options
  }

  /** The handler of a watch of that path failed. */
  reportWatch(error: unknown, path: string): void {
    this.#handle({ error, watch: path }, `a handler of the watch of ${path}`)
  }

  /** A listener of that event failed; where it listens to failures, nobody who listens is told again. */
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
      detail: `${failure.stack ?? reason}\nGive the client a log, or listen to its event "error", to hear of the next ones.`,
    })
  }

  /** Never throws, or a handler that threw would take the connection with it. */
  #log({ error, ...where }: HandlerFault, reason: string, message: string): void {
    const { log = silentLog } = this.#options
    // What was thrown may throw again when a logger looks at it.
    for (const thrown of [{ err: error }, {}]) {
      try {
        log.error({ ...where, ...thrown, reason }, message)
        return
      } catch {}
    }
  }
}
