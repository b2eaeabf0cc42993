/**
 * Sends changes of the board. Each kind of change has a connection of its own: posts, claims, tokens of limits, batches, and all others. The
 * sink receives the earlier changes of the board before the caller receives the answer; meanwhile the next request is sent.
 */
import type { CleanUp } from '../connection/clean-up.ts'
import type { PostgresChangeFeed } from '../connection/feed.ts'
import type { PostgresBoard } from '../store/board.ts'
import { jobId } from '../store/rows.ts'
import { FunctionCaller } from './function-caller.ts'

export class BoardWriter {
  readonly posts: FunctionCaller
  readonly claims: FunctionCaller
  /** Sends only requests for tokens: jobs that are settled do not wait behind them. */
  readonly tokens: FunctionCaller
  /** Sends only changes of batches: jobs that end do not wait behind a seal that waits for an open transaction. */
  readonly batches: FunctionCaller
  readonly others: FunctionCaller
  readonly #board: PostgresBoard
  readonly #feed: PostgresChangeFeed
  readonly #callers: readonly FunctionCaller[]

  constructor(board: PostgresBoard, feed: PostgresChangeFeed, cleanUp: CleanUp) {
    this.#board = board
    this.#feed = feed
    this.posts = new FunctionCaller(board, cleanUp)
    this.claims = new FunctionCaller(board, cleanUp)
    this.tokens = new FunctionCaller(board, cleanUp)
    this.batches = new FunctionCaller(board, cleanUp)
    this.others = new FunctionCaller(board, cleanUp)
    this.#callers = [this.posts, this.claims, this.tokens, this.batches, this.others]
  }

  /**
   * Calls a function of the database that changes the board.
   *
   * @param what the operation, for errors
   * @param values the arguments after the board
   * @returns the answer, after the sink has received the earlier changes
   */
  async call(what: string, name: string, values: readonly unknown[], caller = this.others): Promise<unknown> {
    this.#board.assertOpen()
    return (await this.afterCatchUp(caller.send({ what, name, values }))).answer
  }

  /** Resolves after the sink has received the earlier changes; meanwhile the next group is sent. */
  async afterCatchUp<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } finally {
      await this.#feed.caughtUp()
    }
  }

  /** Resolves when the sink has received the earlier changes. */
  readonly caughtUp = (): Promise<void> => this.#feed.caughtUp()

  /** Reports the doomed jobs of an answer: they were cancelled before their first run, because another job ended. */
  reportDoomed(answer: unknown): void {
    const { doomed }: { readonly doomed?: readonly number[] | null } = Object(answer)
    if (doomed) this.#board.sink.doomed(doomed.map((number) => jobId(String(number))))
  }

  /** Returns whether a backend of the server executes requests of this process. */
  isOwn(backend: number): boolean {
    return this.#callers.some((caller) => caller.backend === backend)
  }

  /** Resolves when no request is pending. */
  async idle(): Promise<void> {
    await Promise.all(this.#callers.map((caller) => caller.idle()))
  }

  /** Ends the connections at once; the answers of pending requests are recovered on other connections. */
  disconnect(reason: unknown): void {
    for (const caller of this.#callers) caller.disconnect(reason)
  }

  async close(): Promise<void> {
    await Promise.all(this.#callers.map((caller) => caller.close()))
  }
}
