/**
 * A log that keeps a board's entries for the error message: while a board is being opened, no listener can be added to
 * it, and only its log has the reason why a server could not be reached.
 */
import { pino } from 'pino'
import { InvalidPosting, type NotConnected } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { type Logger, silentLog } from '../../core/log.ts'

export class BoardLog {
  /** The logger for the board; it passes everything on. */
  readonly logger: Logger
  /** The errors of postings on the board, or in its trash, that cannot be read. */
  readonly unreadable: InvalidPosting[] = []
  /** The reason why the last connection failed. */
  noConnection: string | undefined

  constructor(target: Logger = silentLog) {
    this.logger = pino({
      level: 'debug',
      hooks: {
        logMethod: (args, _write, level) => {
          this.#note(args)
          target[levelName(level)](...args)
        },
      },
    })
  }

  /** Notes a failed attempt to open the board; another one follows. */
  noteFailure(error: NotConnected): void {
    this.noConnection ??= withoutClass(describeError(error.cause ?? error))
  }

  #note([facts]: readonly unknown[]): void {
    const { err, reason }: { err?: unknown; reason?: unknown } = Object(facts)
    if (err instanceof InvalidPosting) this.unreadable.push(err)
    if (typeof reason === 'string') this.noConnection = withoutClass(reason)
  }
}

/** Removes the class of the error and its causes, which repeat the message in other words. */
function withoutClass(reason: string): string {
  return reason
    .replace(/^\w+: /, '')
    .replace(/, because of .*/s, '')
    .replace(/\.$/, '')
}

function levelName(level: number): 'error' | 'warn' | 'info' | 'debug' {
  if (level >= 50) return 'error'
  if (level >= 40) return 'warn'
  return level >= 30 ? 'info' : 'debug'
}
