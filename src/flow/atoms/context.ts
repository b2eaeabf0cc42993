/** What a task is told beside its arguments: where it runs, for whom, and when to stop. */
import type { Failure } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'

/**
 * What a task is told beside its arguments.
 *
 * @typeParam S what the task needs of `services`, say `{ db: Database }`. Whoever runs its flow has to give it: the compiler
 * asks for it where the flow is run.
 */
export interface Context<S = unknown> {
  /**
   * Fires when the task has to stop: the claim is lost, the process shuts down, or its deadline has passed. Its reason is
   * an error. Except after a deadline, whatever the task throws afterwards is not held against it.
   */
  readonly signal: AbortSignal
  /** Names the flow and the task in every line. */
  readonly log: Logger
  /**
   * A number that grows with every claim of the whole board: a system outside that refuses smaller numbers than it has
   * seen cannot be written to by a former owner. `0n`, below every claim's, where no board is involved.
   */
  readonly fence: bigint
  /** How often the job has been claimed, this time included; from 1. */
  readonly run: number
  /** Undefined where the flow runs without a board. */
  readonly job: { readonly uuid: string; readonly name: string } | undefined
  /**
   * What whoever runs the flow gives to all of its tasks, a database say: the `services` of the conductor, of `runFlow`, or
   * of the engine; undefined where nothing was given.
   */
  readonly services: S
  /**
   * Says how much is done, from 0 to 1; what lies beyond counts as the nearest. It is on record with the next
   * transition, and at least once a second; it costs a write then. Says nothing while the atom is reverted.
   */
  progress(done: number): void
}

/** What a task is told while it is reverted: what `execute` made of it, and why it is undone. */
export interface RevertContext<R, S = unknown> extends Context<S> {
  /** What `execute` returned; undefined where it failed, or where its process died before anybody knew. */
  readonly result: R | undefined
  /** Why this task's own `execute` failed; undefined where it did not. */
  readonly failure: Failure | undefined
  /** Why the flow is being reverted: every failed `execute` of it. */
  readonly failures: readonly Failure[]
}
