/**
 * The write that ends a flow, held back so that the board commits it with the settlement of the job: logbooks make it, the backend of the board
 * includes it in its transaction, and the conductor, which knows both, passes it on. They do not know each other.
 */
export interface HeldBackWrite {
  /** The place of the logbooks, in the form in which the backend of a board has it: only this board can include the write. */
  readonly place: string
  /** Its estimated size. */
  readonly bytes: number
  /** Does the write alone. @throws what `FlowLog.write` throws */
  send(): Promise<void>
  /** Returns the arguments of several such writes for the database. */
  toArguments(writes: readonly HeldBackWrite[]): unknown[]
}
