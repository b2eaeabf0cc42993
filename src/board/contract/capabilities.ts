/** The capabilities of backends, by which a board knows which requests to refuse. */

/** The capabilities of a backend. A request for a missing one is refused and never emulated. */
export interface BackendCapabilities {
  readonly keys: boolean
  readonly resources: boolean
  readonly delays: boolean
  /** Whether a job that is not started in time can expire. */
  readonly expiry: boolean
  /** Whether claims take slots and tokens of limits. */
  readonly limits: boolean
  /** Whether jobs can depend on others. */
  readonly dependencies: boolean
  /** Whether the board keeps a history of the jobs that have ended. */
  readonly history: boolean
  /** Whether the board counts the jobs of batches. */
  readonly batches: boolean
  /** Whether a claim can be taken away from its owner. */
  readonly release: boolean
}

/** The capabilities of a backend that lacks none. */
export const ALL_CAPABILITIES: BackendCapabilities = {
  keys: true,
  resources: true,
  delays: true,
  expiry: true,
  limits: true,
  dependencies: true,
  history: true,
  batches: true,
  release: true,
}
