/** Requests that outlive the session of their caller: to cancel a job, and to pause the board. */

export interface BackendSignals {
  /**
   * Records a request that outlives the session of its caller: to cancel a job, or to pause or resume the board. Every claim
   * after it takes it into account. One transaction. Errors: NotConnected, NotFound, OutcomeUnknown.
   */
  request(request: CancelRequest | GateRequest): Promise<void>
  /** Returns the cancel request of the job, if there is one. */
  cancellation(id: string): Promise<Cancellation | undefined>
}

/** A request to cancel a job, on whichever process it runs. A second request changes nothing. */
export interface CancelRequest extends Cancellation {
  readonly kind: 'cancel'
  readonly id: string
  /** The job's uuid and name, for error messages. */
  readonly job: string
}

/** The owner name of the board that requested the cancel, and the reason. */
export interface Cancellation {
  readonly who: string
  readonly reason: string
}

export interface GateRequest {
  readonly kind: 'gate'
  readonly paused: boolean
}
