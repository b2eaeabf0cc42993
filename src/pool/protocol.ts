/**
 * The messages between a pool and its children.
 *
 * | message | from | means |
 * |---|---|---|
 * | `start` | pool | import the worker module and open the worker |
 * | `ready` | child | the worker is open; its facts are checked before it is given work |
 * | `refused` | child | the worker could not be opened; the child ends |
 * | `run` | pool | do this piece of work |
 * | `begun` | child | it has begun the work: if it dies before that, another child can do the work |
 * | `note` | child | something about the work under way: its progress, a line for the log |
 * | `ask` | child | a question about the work under way, with a number of its own |
 * | `drop` | child | the answer to a question is not needed any more |
 * | `answer` | pool | the answer to a question: a result, or a failure |
 * | `done`, `failed` | child | the answer; after an answer that `isLast`, the child ends |
 * | `fault` | child | code that does not belong to this work has failed; the work is not to blame, and the child ends |
 * | `cancel` | pool | fire the signal of the work |
 * | `terminate` | pool | end at once; sent with SIGTERM, which the child itself ignores |
 * | `retire` | pool | dispose of the worker and end |
 *
 * A message about work carries its number: a late one is never taken for one about the next piece of work.
 */
import type { Failure } from '../core/failure.ts'

/** The version of these messages: a child of another version is refused. */
export const PROTOCOL_VERSION = 3

/** The file descriptors of a child: after the standard ones, the channel of messages and the lifeline. */
export const CHANNEL_FD = 3
export const LIFELINE_FD = 4

/** The limit of a message of a child beside results: a failure with all of its causes, a checkpoint. */
const MAX_OTHER_MESSAGE = 32 * 1_024 ** 2
/** The maximum size of the rest of a message beside its result, in bytes. */
const MESSAGE_OVERHEAD = 65_536

/** Returns the limit of a message of a child, in bytes. @param maxMessage the limit of a result */
export function toMessageLimit(maxMessage: number): number {
  return Math.max(maxMessage, MAX_OTHER_MESSAGE) + MESSAGE_OVERHEAD
}

export type ToChild =
  | { readonly kind: 'start'; readonly worker: string; readonly settings: unknown }
  | { readonly kind: 'run'; readonly number: number; readonly work: unknown }
  | { readonly kind: 'cancel'; readonly number: number; readonly reason: Failure }
  | ({ readonly kind: 'answer'; readonly number: number; readonly question: number } & (
      | { readonly result: unknown }
      | { readonly failure: Failure }
    ))
  | { readonly kind: 'terminate' }
  | { readonly kind: 'retire' }

export type FromChild =
  | { readonly kind: 'ready'; readonly protocol: number; readonly facts: unknown }
  | { readonly kind: 'refused'; readonly failure: Failure }
  | { readonly kind: 'begun'; readonly number: number }
  | { readonly kind: 'note'; readonly number: number; readonly note: unknown }
  | { readonly kind: 'ask'; readonly number: number; readonly question: number; readonly content: unknown }
  | { readonly kind: 'drop'; readonly number: number; readonly question: number }
  | { readonly kind: 'done'; readonly number: number; readonly result: unknown }
  | { readonly kind: 'failed'; readonly number: number; readonly failure: Failure; readonly isLast: boolean }
  | { readonly kind: 'fault'; readonly number: number; readonly failure: Failure }

/** The function that a worker module exports as `openWorker`: called once in each child. */
export type OpenWorker = (settings: unknown) => Promise<Worker>

/** The part of a child that does the work. It is disposed of when the child retires. */
export interface Worker extends AsyncDisposable {
  /** Sent to the pool's owner, who decides whether the child may be used: plain data. */
  readonly facts: unknown
  /** Does one piece of work; a child does one at a time. The result must be plain data. */
  run(work: unknown, context: WorkContext): Promise<unknown>
}

export interface WorkContext {
  /** Fires when the work has to stop. A worker that does not stop in time is killed. */
  readonly signal: AbortSignal
  /** Sends a note about this work to the pool. */
  post(note: unknown): void
  /**
   * Asks the pool's owner something about this work; resolves with the answer.
   *
   * @throws the error of the owner, of the same class; the reason of `signal`, which ends what the owner does for it
   */
  ask(content: unknown, options: { readonly signal: AbortSignal }): Promise<unknown>
}
