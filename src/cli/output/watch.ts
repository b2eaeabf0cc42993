/**
 * Repeated output: on a terminal each frame replaces the one before; in a pipe a frame is printed if anything changed.
 */
import { NotConnected } from '../../core/errors.ts'
import { sleep, toMilliseconds } from '../../core/time.ts'
import type { CliContext } from '../context.ts'
import type { FlagTable, FlagValues } from '../input/flags.ts'
import { parseDuration } from '../input/shared-options.ts'
import { printLines, reportError } from './output.ts'

export interface Frame {
  /** The lines to show. */
  readonly lines: readonly string[]
  /** The identity of the frame's content; ages are not in it, because they always change. */
  readonly content: string
}

/** Draws one frame; with `watch`, draws frames until Ctrl-C. Waits while there is no connection. */
export async function showFrames(
  frame: () => Promise<Frame>,
  flags: WatchFlags & { readonly json?: boolean },
  context: CliContext,
): Promise<void> {
  if (!flags.watch) return printLines(context, (await frame()).lines)
  const interval = toMilliseconds(parseDuration(flags.interval ?? DEFAULT_INTERVAL, '--interval'), '--interval')
  using interruption = context.listenForInterruption()
  const { signal } = interruption
  let before: string | undefined
  for (let fault = ''; !signal.aborted; await sleep(interval, { signal }).catch(() => undefined)) {
    try {
      const next = await frame()
      fault = ''
      if (context.stdout.columns !== undefined && !flags.json) await redraw(next.lines, context)
      else if (next.content !== before) await printLines(context, next.lines)
      before = next.content
    } catch (error) {
      if (!(error instanceof NotConnected)) throw error
      // A lasting fault is reported once.
      if (fault !== error.message) reportError(error, context)
      fault = error.message
    }
  }
}

const CURSOR_HOME = '\x1b[H'
const CLEAR_TO_LINE_END = '\x1b[K'
const CLEAR_TO_SCREEN_END = '\x1b[J'
/** The height for a terminal that does not report it. */
const DEFAULT_ROWS = 24

/**
 * Draws over the frame before, to avoid flicker; omits the lines that do not fit, because they would scroll the top
 * away.
 */
async function redraw(lines: readonly string[], context: CliContext): Promise<void> {
  const { truncate } = await import('./render/columns.ts')
  // A terminal that does not know its size reports 0.
  const rows = context.stdout.rows || DEFAULT_ROWS
  const columns = context.stdout.columns || Number.POSITIVE_INFINITY
  const room = Math.max(1, rows - 1)
  const shown =
    lines.length <= room ? lines : [...lines.slice(0, room - 1), `… and ${lines.length - room + 1} lines more`]
  const drawn = shown.map((line) => `${line.includes('\x1b') ? line : truncate(line, columns)}${CLEAR_TO_LINE_END}\n`)
  context.stdout.write(`${CURSOR_HOME}${drawn.join('')}${CLEAR_TO_SCREEN_END}`)
  await context.stdout.flush()
}

export const DEFAULT_INTERVAL = '1s'

/** The flags for repeated output. */
export const WATCH_FLAGS = {
  '--watch': 'repeat until Ctrl-C: redraw on a terminal, else print what has changed',
  '--interval <duration>': `with --watch, time between two reads (default: ${DEFAULT_INTERVAL})`,
} satisfies FlagTable

export type WatchFlags = FlagValues<typeof WATCH_FLAGS>
