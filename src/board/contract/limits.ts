/** Limits: what claims, and calls outside of claims, take of them. */
import type { LimitUse, TokenRequest, TokensTaken } from '../model/limits.ts'

export interface BackendLimits {
  /**
   * Returns the revision of the board's limits. It changes with every change of a record of `LIMIT_KINDS`, in the same transaction,
   * and a claim with `ClaimRequest.limits` of another revision is refused with LimitsChanged. So no claim is granted by a former
   * limit. 0 if nothing was ever set. Errors: NotConnected.
   */
  revision(): Promise<number>
  /**
   * Returns the slots and tokens that claims have taken, of these keys or of all; at most `MAX_USED_KEYS`. Leaves out keys without taken slots
   * or tokens. Errors: NotConnected.
   */
  use(keys?: readonly string[]): Promise<readonly LimitUse[]>
  /**
   * Takes tokens of a key for calls outside of claims, in one transaction: for the calls in their order, up to the first one whose tokens
   * are not free. The tokens are not given back. A new rate is applied to the tokens that were taken by another one, also if none is free.
   * Works on a paused board. Errors: NotConnected, OutcomeUnknown, LimitsChanged at another revision of the limits.
   */
  takeTokens(request: TokenRequest): Promise<TokensTaken>
}
