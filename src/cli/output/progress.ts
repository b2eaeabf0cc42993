/**
 * A progress bar on standard error for operations of more than a second; in a pipe, a line from time to time, because a
 * log with a thousand redrawn bars is hard to read.
 */
import { monotonic } from '../../core/time.ts'
import type { CliContext } from '../context.ts'
import { printLines } from './output.ts'
import { renderBar, truncate } from './render/columns.ts'

/** The time before the first output, and the periods between two bars and between two lines. */
const FIRST_SHOWN_AFTER_MS = 1_000
const REDRAW_PERIOD_MS = 100
const LINE_PERIOD_MS = 10_000
const BAR_COLUMNS = 24
const CLEAR_LINE = '\r\x1b[K'

export interface ProgressOptions {
  /** The operation, for example `purging`. */
  readonly what: string
  readonly total: number
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number
}

export class Progress implements Disposable {
  readonly #context: CliContext
  readonly #options: ProgressOptions
  readonly #now: () => number
  readonly #since: number
  #done = 0
  #shownAt: number
  #drawn = false

  constructor(context: CliContext, options: ProgressOptions) {
    this.#context = context
    this.#options = options
    this.#now = options.now ?? monotonic
    this.#since = this.#now()
    this.#shownAt = this.#since
  }

  /** Counts one more as done. */
  step(): void {
    this.#done += 1
    const now = this.#now()
    const onTerminal = this.#context.stderr.columns !== undefined
    if (
      now - this.#since < FIRST_SHOWN_AFTER_MS ||
      now - this.#shownAt < (onTerminal ? REDRAW_PERIOD_MS : LINE_PERIOD_MS)
    )
      return
    this.#shownAt = now
    const line = this.#line(now)
    const room = this.#context.stderr.columns || Number.POSITIVE_INFINITY
    this.#context.stderr.write(onTerminal ? `${CLEAR_LINE}${truncate(line, room)}` : `${line}\n`)
    this.#drawn = onTerminal
  }

  /** Prints a result on standard output; clears the bar before. */
  async print(line: string): Promise<void> {
    this.clear()
    await printLines(this.#context, [line])
  }

  clear(): void {
    if (this.#drawn) this.#context.stderr.write(CLEAR_LINE)
    this.#drawn = false
  }

  [Symbol.dispose](): void {
    this.clear()
  }

  #line(now: number): string {
    const { what, total } = this.#options
    const perItem = (now - this.#since) / this.#done
    const left = Math.ceil((perItem * (total - this.#done)) / 1_000)
    return `${what} ${renderBar(this.#done, { most: total, width: BAR_COLUMNS, rest: '░' })} ${this.#done} of ${total}, ${left}s left`
  }
}
