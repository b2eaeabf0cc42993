/** Requests that outlive the session of their caller: to cancel a job, and to pause the board. */

export interface BackendSignals {
  /**
   * Requests the cancellation of a job, on whichever process it runs, in one transaction. A second request changes nothing.
   * Errors: NotConnected, NotFound, OutcomeUnknown.
   */
  cancel(request: CancelRequest): Promise<void>
  /** Pauses or resumes the board, in one transaction: while it is paused, no claim is granted. Errors: NotConnected, OutcomeUnknown. */
  setPaused(paused: boolean): Promise<void>
  /** Returns the cancel request of the job, if there is one. */
  cancellation(id: string): Promise<Cancellation | undefined>
}

/** A request to cancel a job. */
export interface CancelRequest extends Cancellation {
  readonly id: string
  /** The job's uuid and name, for error messages. */
  readonly job: string
}

/** The owner name of the board that requested the cancel, and the reason. */
export interface Cancellation {
  readonly who: string
  readonly reason: string
}
