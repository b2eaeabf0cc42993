/** Opens the boards of a conductor at its start. Boards that cannot be reached then are opened later. */
import { type JobBoard, openBoard } from '../../board/index.ts'
import { isError, NotConnected } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { defined } from '../../core/options.ts'
import { sleep } from '../../core/time.ts'
import type { Persistence } from '../../persistence/index.ts'
import type { Telemetry } from '../../telemetry/index.ts'
import type { BoardEntry } from './board-entries.ts'

/**
 * The time for which the start waits for further boards after one is open: jobs of an earlier board are claimed before jobs of a later
 * one.
 */
const OPEN_TOGETHER_MS = 2_000

export interface BoardSourceOptions {
  readonly entry: BoardEntry
  readonly persistence: Persistence
  readonly log: Logger
  /** The owner's name in claims; undefined for the default. */
  readonly who: string | undefined
  /** The telemetry of the board, if it has no other. */
  readonly telemetry: Telemetry | undefined
}

/** A board of a conductor that is open, or to be opened. */
export class BoardSource implements AsyncDisposable {
  readonly entry: BoardEntry
  readonly persistence: Persistence
  readonly #options: BoardSourceOptions
  readonly #closing = new AbortController()
  #opening: Promise<JobBoard> | undefined
  #board: JobBoard | undefined
  #fault: Error | undefined

  constructor(options: BoardSourceOptions) {
    this.#options = options
    this.entry = options.entry
    this.persistence = options.persistence
  }

  /** The board, if it is open. */
  get board(): JobBoard | undefined {
    return this.#board
  }

  /** The error of the last failed opening; undefined while it is open. */
  get fault(): Error | undefined {
    return this.#fault
  }

  /** Opens the board if it is not open. Concurrent calls open it once. @throws the errors of `openBoard` */
  open(signal?: AbortSignal): Promise<JobBoard> {
    this.#opening ??= this.#open(signal)
    return this.#opening
  }

  async #open(signal: AbortSignal | undefined): Promise<JobBoard> {
    const { entry, log, who, telemetry } = this.#options
    const { board, options = {} } = entry
    try {
      const stop = signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal
      this.#board =
        typeof board === 'string'
          ? await openBoard(board, { ...defined({ telemetry }), ...options, log, signal: stop, ...defined({ who }) })
          : board
      this.#fault = undefined
      return this.#board
    } catch (error) {
      this.#opening = undefined
      if (isError(error)) this.#fault = error
      throw error
    }
  }

  /** Closes the board, if it was opened here. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new NotConnected('the conductor has stopped'))
    const opened = await this.#opening?.catch(() => undefined)
    if (opened && opened !== this.entry.board) await opened.close()
  }
}

/**
 * Opens the boards. A single board must be reachable. Of several, at least one must be: the others are opened later.
 *
 * @throws the error of a board that cannot be opened at all; NotConnected when none can be reached
 */
export async function openBoards(sources: readonly BoardSource[], signal: AbortSignal | undefined): Promise<void> {
  const [first] = sources
  if (sources.length === 1) {
    await first?.open(signal)
    return
  }
  const tries = sources.map((source) => source.open(signal))
  const all = Promise.all(tries.map((opening) => opening.catch(throwUnlessAway)))
  const done = new AbortController()
  const together = Promise.any(tries).then(() => sleep(OPEN_TOGETHER_MS, { signal: done.signal }))
  try {
    // If no board can be opened, `all` rejects with the reason.
    await Promise.race([all, together.catch(() => all)])
  } finally {
    done.abort()
  }
  if (sources.some(({ board }) => board)) return
  const reasons = sources.map(({ fault, entry }) => fault?.message ?? entry.uri)
  throw new NotConnected(`none of the boards can be reached: ${reasons.join('; ')}`, { cause: first?.fault })
}

function throwUnlessAway(error: unknown): void {
  if (!(error instanceof NotConnected)) throw error
}
