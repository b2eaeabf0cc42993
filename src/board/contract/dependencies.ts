/** Jobs that depend on others. */

export interface BackendDependencies {
  /**
   * Returns the ids of the jobs on the board on which this one still depends, and of the jobs that depend on it; at most
   * {@link MAX_SHOWN_DEPENDENCIES} each. Errors: NotConnected.
   */
  of(id: string): Promise<KnownDependencies>
}

/** The ids of jobs. */
export interface KnownDependencies {
  readonly waitsFor: readonly string[]
  readonly dependents: readonly string[]
}

/** The most jobs that {@link BackendDependencies.of} returns of each kind. */
export const MAX_SHOWN_DEPENDENCIES = 1_000
