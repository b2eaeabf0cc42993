/** Conversion of a thrown value to one line on standard error and an exit code. */
import {
  AccessDenied,
  InvalidArgument,
  InvalidPosting,
  JobboardError,
  MissingDependencies,
  SealedLogbook,
} from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { oneLine as asOneLine } from '../../core/texts.ts'
import type { CliContext } from '../context.ts'
import { type ExitCode, FAILED, WRONG_USAGE } from '../exit-codes.ts'
import { escapeUnprintable } from './render/text.ts'

/** The errors that a different command line avoids. */
const USAGE_ERRORS = [InvalidArgument, MissingDependencies, InvalidPosting]

/** The maximum depth of causes: a longer chain is a loop. */
const MAX_CAUSE_DEPTH = 8

/** Writes the line, and with `verbose` the stack traces after it. Returns the exit code. */
export function reportError(thrown: unknown, context: CliContext, options: { verbose?: boolean } = {}): ExitCode {
  context.stderr.write(`jobboard: ${oneLine(thrown)}\n`)
  if (options.verbose) context.stderr.write(toStackTraces(thrown))
  return USAGE_ERRORS.some((meaning) => thrown instanceof meaning) ? WRONG_USAGE : FAILED
}

/**
 * Formats an error on one line. Messages of this project name the thing and the action; other errors need class and
 * cause.
 */
export function oneLine(thrown: unknown): string {
  const text = thrown instanceof JobboardError ? thrown.message : describeError(thrown)
  return escapeUnprintable(asOneLine(`${text}${hintFor(thrown, text)}`).trim())
}

/** Returns a hint that belongs to the command line: the library does not know it. */
function hintFor(thrown: unknown, text: string): string {
  const instead = findHint(thrown, text)
  return instead === undefined ? '' : `; on a command line, ${instead}`
}

function findHint(thrown: unknown, text: string): string | undefined {
  if (thrown instanceof SealedLogbook && text.includes('require: false')) return 'JOBBOARD_LOGBOOK_REQUIRE=false'
  if (thrown instanceof SealedLogbook) return 'the key in JOBBOARD_LOGBOOK_KEY, or --codec'
  if (!(thrown instanceof AccessDenied)) return undefined
  if (/\bredis/.test(text)) return 'user:password in the URI in JOBBOARD_BOARD'
  if (/\bpostgres/.test(text)) return 'user:password in the URI, in JOBBOARD_BOARD or JOBBOARD_PERSISTENCE'
  return 'user:password in JOBBOARD_ZOOKEEPER_AUTH'
}

function toStackTraces(thrown: unknown): string {
  const lines: string[] = []
  let at = thrown
  for (let depth = 0; depth < MAX_CAUSE_DEPTH && at instanceof Error; depth += 1) {
    const [first = '', ...rest] = (at.stack ?? String(at)).split('\n')
    lines.push(depth === 0 ? first : `caused by ${first}`, ...rest)
    at = at.cause
  }
  return lines.map((line) => `${escapeUnprintable(line)}\n`).join('')
}
