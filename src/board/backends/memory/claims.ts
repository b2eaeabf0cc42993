/**
 * Claims of a memory board.
 *
 * | step | checks, in this order | changes |
 * |---|---|---|
 * | claim | the board is not paused; the job is unclaimed, at the revision, and waits for no other; its resources, then its limits | resources, slots, tokens, the fence, the job |
 * | settle | the session holds the job at the revision | resources and slots are free; the job is unclaimed, gone, or in the trash |
 * | release | the job is claimed at the revision, by whichever session | as an abandon |
 */
import { catchError, type Result } from '../../../core/result.ts'
import type { AlarmClock } from '../../../core/time.ts'
import type {
  BackendClaims,
  ClaimGrant,
  ClaimRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Settlement,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { isFirstRun } from '../../model/dependencies.ts'
import type { DependencySteps } from './dependencies.ts'
import type { JobSteps } from './jobs.ts'
import type { LimitSteps } from './limits.ts'
import type { ResourceSteps } from './resources.ts'
import type { SignalSteps } from './signals.ts'
import type { MemoryBoard } from './store/board.ts'
import type { ChangeListeners } from './store/change-listeners.ts'
import { encodeUnlimited, type JobRows, type MemoryJob } from './store/rows.ts'

export interface ClaimsOptions {
  readonly clock: AlarmClock
  readonly rows: JobRows
  readonly changes: ChangeListeners
  readonly jobs: JobSteps
  readonly dependencies: DependencySteps
  readonly resources: ResourceSteps
  readonly limits: LimitSteps
  readonly signals: SignalSteps
}

export class ClaimSteps {
  readonly #options: ClaimsOptions
  #fence = 0n

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  /** @throws NotFound, Unclaimable, LimitsChanged, LimitReached */
  claim({ id, revision, posting, who, limits }: ClaimRequest, session: string): ClaimGrant {
    const { clock, rows, changes, dependencies, resources, signals } = this.#options
    const bytes = encodeUnlimited(posting)
    if (signals.paused) throw refusalError(id, { why: 'paused' })
    const row = rows.requireUnclaimed(id, revision)
    if (dependencies.waits(id) && (isFirstRun(posting) || !row.cancellation)) throw refusalError(id, { why: 'waits' })
    resources.requireFree(id, row.posting)
    const arrivals = limits ? this.#options.limits.take(id, limits) : []
    resources.hold(id, row.posting)
    rows.write(row, bytes)
    row.held = { who, session }
    this.#fence = nextFence(this.#fence, clock.now())
    changes.notify({ kind: 'updated', id }, { kind: 'claimed', id })
    return { session, revision: row.revision, fence: this.#fence, arrivals }
  }

  /**
   * Ends the claim that a session holds.
   *
   * @returns the ids of the jobs that were cancelled because of the end of the job; undefined if the claim is gone
   */
  settle(settlement: Settlement): readonly string[] | undefined {
    const { rows, jobs } = this.#options
    const { id, kind, session, revision, posting, history } = settlement
    const bytes = encodeUnlimited(posting)
    const row = rows.find(id)
    if (row?.held?.session !== session || row.revision !== revision) return undefined
    this.free(row)
    if (kind !== 'abandon')
      return jobs.end(row, { history, ...(kind === 'trash' ? { trash: { ...settlement, bytes } } : {}) })
    jobs.giveBack(row, posting, bytes)
    return []
  }

  /** Ends the claim that any session holds at the revision. */
  release({ id, revision, posting }: ReleaseRequest): ReleaseOutcome {
    const { rows, jobs } = this.#options
    const bytes = encodeUnlimited(posting)
    const row = rows.find(id)
    if (!row) return 'gone'
    if (row.revision !== revision) return 'changed'
    if (!row.held) return 'unclaimed'
    this.free(row)
    jobs.giveBack(row, posting, bytes)
    return 'released'
  }

  /** Frees the resources and slots of a job. */
  free({ id, posting }: MemoryJob): void {
    this.#options.resources.free(id, posting)
    this.#options.limits.free(id)
  }

  owner(id: string): string | undefined {
    return this.#options.rows.find(id)?.held?.who
  }
}

export class MemoryClaims implements BackendClaims {
  readonly #board: MemoryBoard<{ readonly claims: ClaimSteps }>

  constructor(board: MemoryBoard<{ readonly claims: ClaimSteps }>) {
    this.#board = board
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    const { session } = this.#board.requireOpen()
    const { claims } = this.#board.steps
    return choices.map((choice) => catchError(() => claims.claim(choice, session)))
  }

  async settle(settlement: Settlement): Promise<void> {
    const { sink } = this.#board.requireOpen()
    const doomed = this.#board.steps.claims.settle(settlement)
    if (!doomed) throw refusalError(`job ${settlement.posting.uuid}`, { why: 'lost' })
    if (doomed.length > 0) sink.doomed(doomed)
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    return this.#board.steps.claims.release(request)
  }

  async owner(id: string): Promise<string | undefined> {
    return this.#board.steps.claims.owner(id)
  }
}

/**
 * Returns the next fence: at least the time in microseconds, so that the space of the next process, which does not know
 * this one, continues with larger fences.
 */
function nextFence(last: bigint, nowMs: number): bigint {
  const micros = BigInt(Math.floor(nowMs * 1_000))
  return micros > last ? micros : last + 1n
}
