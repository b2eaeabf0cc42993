/**
 * What a board says to its log, kept for the error message: while it is being opened nobody can listen to its events, and
 * why a server could not be reached is known to nobody but the log.
 */
import { pino } from 'pino'
import { InvalidPosting, type NotConnected } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { type Logger, silentLog } from '../../core/log.ts'

export class BoardLog {
  /** For the board; passes everything on. */
  readonly logger: Logger
  /** What is on the board, or in its trash, and cannot be read. */
  readonly unreadable: InvalidPosting[] = []
  /** Why there was no connection, the last time one was tried. */
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

  /** A try to open it has failed, and another will be made. */
  noteFailure(error: NotConnected): void {
    this.noConnection ??= withoutClass(describeError(error.cause ?? error))
  }

  #note([facts]: readonly unknown[]): void {
    const { err, reason }: { err?: unknown; reason?: unknown } = Object(facts)
    if (err instanceof InvalidPosting) this.unreadable.push(err)
    if (typeof reason === 'string') this.noConnection = withoutClass(reason)
  }
}

/** Without the class of the error and its causes, which only say the same in other words; more follows in its sentence. */
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
