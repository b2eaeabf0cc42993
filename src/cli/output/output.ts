/** Output: results on standard output, errors on standard error. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  AccessDenied,
  InvalidArgument,
  InvalidPosting,
  isError,
  JobboardError,
  MissingDependencies,
  SealedLogbook,
} from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { oneLine as asOneLine } from '../../core/texts.ts'
import { type CliContext, type ExitCode, FAILED, WRONG_USAGE } from '../context.ts'
import { InvalidConfig } from '../input/config/faults.ts'
import type { Screen } from './render/paint.ts'
import { escapeUnprintable, toPrintableJson } from './render/text.ts'

const LINES_PER_WRITE = 500

/** Prints lines. @throws the stream's error when the reader has closed the pipe: further output is useless */
export async function printLines(context: CliContext, lines: readonly string[]): Promise<void> {
  for (let start = 0; start < lines.length; start += LINES_PER_WRITE) {
    context.stdout.write(
      lines
        .slice(start, start + LINES_PER_WRITE)
        .map((line) => `${line}\n`)
        .join(''),
    )
    // The error of a closed pipe is emitted in a later turn of the event loop.
    await nextTurn()
    context.stdout.failed.throwIfAborted()
  }
}

/** A function that returns lines for people. */
type Draw = (renderers: typeof import('./render/index.ts'), screen: Screen) => readonly string[]

/** Returns lines for people. Loads the renderers, and the packages that they need, for this only. */
export async function render(context: CliContext, draw: Draw): Promise<readonly string[]> {
  const renderers = await import('./render/index.ts')
  return draw(renderers, renderers.toScreen(context))
}

/** Prints lines for people. */
export async function printDrawn(context: CliContext, draw: Draw): Promise<void> {
  await printLines(context, await render(context, draw))
}

/** Prints one JSON object per line. */
export async function printJson(context: CliContext, values: readonly unknown[]): Promise<void> {
  await printLines(context, values.map(toPrintableJson))
}

/** The errors that a different command line avoids. */
const USAGE_ERRORS = [InvalidArgument, MissingDependencies, InvalidPosting]

/** The maximum depth of causes: a longer chain is a loop. */
const MAX_CAUSE_DEPTH = 8

/** Writes the line, and with `verbose` the stack traces after it. Returns the exit code. */
export function reportError(thrown: unknown, context: CliContext, options: { verbose?: boolean } = {}): ExitCode {
  const lines = thrown instanceof InvalidConfig ? thrown.faults.map(escapeUnprintable) : [oneLine(thrown)]
  for (const line of lines) context.stderr.write(`jobboard: ${line}\n`)
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
  for (let depth = 0; depth < MAX_CAUSE_DEPTH && isError(at); depth += 1) {
    const [first = '', ...rest] = (at.stack ?? String(at)).split('\n')
    lines.push(depth === 0 ? first : `caused by ${first}`, ...rest)
    at = at.cause
  }
  return lines.map((line) => `${escapeUnprintable(line)}\n`).join('')
}
