/** Looking again and again: one frame over the other on a terminal; in a pipe one after the other, where anything changed. */
import { NotConnected } from '../../core/errors.ts'
import { sleep, toMilliseconds } from '../../core/time.ts'
import type { CliContext } from '../context.ts'
import { parseDuration } from '../input/shared-options.ts'
import { DEFAULT_INTERVAL, type WatchFlags } from '../input/watch-flags.ts'
import { reportError } from './error-report.ts'
import { printLines } from './output.ts'
import { truncate } from './render/text.ts'

export interface Frame {
  /** What is shown. */
  readonly lines: readonly string[]
  /** Tells it from other frames; ages are not in it, or no two would be the same. */
  readonly content: string
}

/** Draws one frame; or, to `watch`, one after the other until Ctrl-C. Without a connection it waits for one. */
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
      // Said once, however long it lasts.
      if (fault !== error.message) reportError(error, context)
      fault = error.message
    }
  }
}

const CURSOR_HOME = '\x1b[H'
const CLEAR_TO_LINE_END = '\x1b[K'
const CLEAR_TO_SCREEN_END = '\x1b[J'
/** Of a terminal that does not say how high it is. */
const DEFAULT_ROWS = 24

/** Over what was drawn before, so that nothing flickers; what is too much is left out, or the top would scroll away. */
async function redraw(lines: readonly string[], context: CliContext): Promise<void> {
  // A terminal that does not know how large it is says 0.
  const rows = context.stdout.rows || DEFAULT_ROWS
  const columns = context.stdout.columns || Number.POSITIVE_INFINITY
  const room = Math.max(1, rows - 1)
  const shown =
    lines.length <= room ? lines : [...lines.slice(0, room - 1), `… and ${lines.length - room + 1} lines more`]
  const drawn = shown.map((line) => `${line.includes('\x1b') ? line : truncate(line, columns)}${CLEAR_TO_LINE_END}\n`)
  context.stdout.write(`${CURSOR_HOME}${drawn.join('')}${CLEAR_TO_SCREEN_END}`)
  await context.stdout.flush()
}
