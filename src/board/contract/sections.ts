/** Parts of a board that may be too long to keep in memory. */
import type { ClaimOrderKey } from '../model/claim-order.ts'
import type { QueueKey } from './sink.ts'

/** Reads parts of a board, each as it is at some moment during the call. */
export interface BackendSections {
  /** The approximate number of jobs of the head of the board that a view holds. */
  readonly window: number
  /** The approximate number of bytes of their postings that a view holds. */
  readonly windowBytes: number
  /**
   * Returns up to `limit` jobs behind `after` in claim order: of the board, or of one queue. With `due`, claimed and delayed jobs are left
   * out. `end` in the answer is true if there are no more. A read of a queue other than the default one visits no jobs of other queues.
   */
  range(request: {
    readonly queue?: string | undefined
    readonly after?: ClaimOrderKey | undefined
    readonly limit: number
    readonly due: boolean
  }): Promise<{
    readonly jobs: readonly JobSummary[]
    readonly end: boolean
    /** The time of the backend's clock by which they were due. */
    readonly at: number
  }>
  /** Returns up to `limit` delayed jobs, of the board or of these queues, that become due later than `after`, in the order of their due times. */
  delayed(request: {
    readonly queues?: readonly string[] | undefined
    readonly after: number
    readonly limit: number
  }): Promise<readonly JobSummary[]>
  claimed(): Promise<readonly JobSummary[]>
  /** Returns the queues that have jobs, claimed and delayed ones included, with the number of these. */
  queues(): Promise<readonly QueueCount[]>
  /** Returns one status for each id. */
  statusOf(ids: readonly string[]): Promise<readonly ('there' | 'trashed' | 'gone')[]>
  /** Returns the id of the job with this uuid. */
  find(uuid: string): Promise<string | undefined>
}

/** A job without its posting. */
export interface JobSummary extends QueueKey {
  readonly claimed: boolean
  readonly cancelled: boolean
  /** Whether its claim holds resources or slots of limits. */
  readonly holds?: boolean
}

export interface QueueCount {
  readonly queue: string
  readonly jobs: number
}
