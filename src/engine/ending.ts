/** How the work of one engine on a flow came to its end. */
import type { Failure } from '../core/failure.ts'

export interface Ending {
  /**
   * SUCCESS: every task was executed. REVERTED: one failed, and everything was undone. FAILURE: undoing failed too; what
   * is left needs a human. SUSPENDED: it was asked to rest; another engine can go on.
   */
  readonly state: 'SUCCESS' | 'REVERTED' | 'FAILURE' | 'SUSPENDED'
  /** What tasks provide, as far as it has been made and not undone. */
  readonly results: Readonly<Record<string, unknown>>
  /** Why tasks failed, whichever process they failed in. */
  readonly failures: readonly Failure[]
  readonly revertFailures: readonly Failure[]
  /** The very error of the first failure, where it was thrown in this engine: to be thrown on in the foreground. */
  readonly error?: unknown
}
