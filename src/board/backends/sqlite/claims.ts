/**
 * Claims of a board.
 *
 * | step | checks, in this order | changes |
 * |---|---|---|
 * | claim | the session lives; the board is not paused; the job is unclaimed, at the revision, and waits for no other; its resources, then its limits | permits, slots, tokens, the fence, the job |
 * | settle | the session holds the job at the revision | permits and slots are free; the job is unclaimed, gone, or in the trash |
 * | release | the job is claimed at the revision, by whichever session | as an abandon |
 */
import { NotConnected } from '../../../core/errors.ts'
import { encodeText } from '../../../core/texts.ts'
import type {
  ClaimGrant,
  ClaimRequest,
  DiscardRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Settlement,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { encodeLife } from '../../model/posting.ts'
import type { BoardPlace, Changes } from './changes.ts'
import type { Jobs } from './jobs.ts'
import type { Limits } from './limits.ts'
import type { Resources } from './resources.ts'

export interface ClaimsOptions {
  readonly place: BoardPlace
  readonly changes: Changes
  readonly jobs: Jobs
  readonly resources: Resources
  readonly limits: Limits
}

/** The result of a settlement: the ids of the jobs that were cancelled because of the end of the job; undefined if the claim is gone. */
export type Settled = readonly string[] | undefined

export class ClaimSteps {
  readonly #options: ClaimsOptions

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  /** @throws NotConnected when the session has ended; NotFound, Unclaimable, LimitsChanged, LimitReached */
  claim({ id, revision, posting, who, limits }: ClaimRequest, session: number): Omit<ClaimGrant, 'session'> {
    const { place, changes, jobs, resources } = this.#options
    const { db, board, now } = place
    this.#requireSession(session, id)
    const gate = db.get('SELECT paused, fence FROM boards WHERE id = ?', board)
    if (gate?.['paused'] !== 0) throw refusalError(id, { why: 'paused' })
    const row = jobs.requireUnclaimed(id, revision)
    if (row['due_when_ready'] !== null) throw refusalError(id, { why: 'waits' })
    const job = Number(row['id'])
    // Before the first change: it throws for a posting that cannot be encoded.
    const life = encodeLife(posting, 'msgpack')
    const wanted = resources.requireFree(job, posting)
    const arrivals = limits ? this.#options.limits.take(job, id, limits) : []
    resources.hold(job, wanted)
    const at = now()
    // At least the time in microseconds, so that a board that is created again continues with larger fences.
    const fence = Math.max(Math.floor(at * 1_000), Number(gate['fence']) + 1)
    db.run('UPDATE boards SET fence = ? WHERE id = ?', fence, board)
    db.run(
      `UPDATE jobs SET life = ?, ran = 1, revision = revision + 1, written_at = ?, due_at = 0, session = ?, who = ? WHERE id = ?`,
      ...[life, at, session, encodeText(who), job],
    )
    changes.add('claimed', job)
    return { revision: revision + 1, fence: BigInt(fence), arrivals }
  }

  /** Ends the claim that a session holds. */
  settle(settlement: Settlement, session: number): Settled {
    const { jobs } = this.#options
    const { id, kind, revision, posting, history } = settlement
    const row = jobs.find(id)
    if (row?.['session'] !== session || row['revision'] !== revision) return undefined
    const job = Number(row['id'])
    let doomed: readonly string[] = []
    if (kind === 'abandon') jobs.giveBack(job, posting)
    else doomed = jobs.end(row, { history, ...(kind === 'trash' ? { trash: settlement } : {}) })
    this.free(job)
    return doomed
  }

  /** Ends the claim that any session holds at the revision. */
  release({ id, revision, posting }: ReleaseRequest): ReleaseOutcome {
    const { jobs } = this.#options
    const row = jobs.find(id)
    if (!row) return 'gone'
    if (row['revision'] !== revision) return 'changed'
    if (row['session'] === null) return 'unclaimed'
    jobs.giveBack(Number(row['id']), posting)
    this.free(Number(row['id']))
    return 'released'
  }

  /** Moves an unclaimed job to the trash. @returns the ids of the jobs that were cancelled because of that @throws NotFound, Unclaimable */
  discard(discarded: DiscardRequest): readonly string[] {
    const row = this.#options.jobs.requireUnclaimed(discarded.id, discarded.revision)
    return this.#options.jobs.end(row, { trash: discarded, history: discarded.history })
  }

  /** Pauses or resumes the board. */
  setPaused(paused: boolean): void {
    const { place, changes } = this.#options
    place.db.run('UPDATE boards SET paused = ? WHERE id = ?', Number(paused), place.board)
    changes.addGate(paused ? 'paused' : 'resumed')
  }

  /** Frees the resources and slots of a job. */
  free(job: number): void {
    this.#options.resources.free(job)
    this.#options.limits.free(job)
  }

  #requireSession(session: number, id: string): void {
    if (this.#options.place.db.get('SELECT 1 FROM sessions WHERE id = ?', session)) return
    throw new NotConnected(`claim of ${id}: the session is over`)
  }
}
