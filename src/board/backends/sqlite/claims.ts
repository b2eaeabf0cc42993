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
import { type Result, settleEach } from '../../../core/result.ts'
import { encodeText } from '../../../core/texts.ts'
import type { Row } from '../../../sqlite/index.ts'
import type {
  BackendClaims,
  ClaimGrant,
  ClaimRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Settlement,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { encodeLife } from '../../model/posting/posting-codec.ts'
import type { JobSteps } from './jobs.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { LimitSteps } from './limits.ts'
import type { ResourceSteps } from './resources.ts'
import type { BoardContext, ChangeLog } from './store/change-log.ts'
import type { JobRows } from './store/job-rows.ts'
import { jobNumber, readText } from './store/rows.ts'

export interface ClaimsOptions {
  readonly context: BoardContext
  readonly rows: JobRows
  readonly changes: ChangeLog
  readonly jobs: JobSteps
  readonly resources: ResourceSteps
  readonly limits: LimitSteps
}

/** Reads the board, and whether the session is alive, in one statement. */
const GATE =
  'SELECT paused, fence, limits, EXISTS (SELECT 1 FROM sessions WHERE id = ?) AS alive FROM boards WHERE id = ?'
const CLAIM =
  'UPDATE jobs SET life = ?, ran = 1, revision = revision + 1, written_at = ?, due_at = 0, session = ?, who = ? WHERE id = ?'

/** The result of a settlement: the ids of the jobs that were cancelled because of the end of the job; undefined if the claim is gone. */
export type Settled = readonly string[] | undefined

export class ClaimSteps {
  readonly #options: ClaimsOptions

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  /** @throws NotConnected when the session has ended; NotFound, Unclaimable, LimitsChanged, LimitReached */
  claim({ id, revision, posting, who, limits }: ClaimRequest, session: number): Omit<ClaimGrant, 'session'> {
    const { context, rows, changes, resources } = this.#options
    const { db, board, now } = context
    const gate = db.get(GATE, session, board)
    if (gate?.['alive'] !== 1) throw new NotConnected(`claim of ${id}: the session is over`)
    if (gate['paused'] !== 0) throw refusalError(id, { why: 'paused' })
    const row = rows.requireUnclaimedForClaim(id, revision)
    if (row['due_when_ready'] !== null) throw refusalError(id, { why: 'waits' })
    const job = Number(row['id'])
    // Before the first change: it throws for a posting that cannot be encoded.
    const life = encodeLife(posting, 'msgpack')
    const wanted = resources.requireFree(job, posting)
    const arrivals = limits ? this.#options.limits.take(job, id, { ...limits, current: Number(gate['limits']) }) : []
    resources.hold(job, wanted)
    const at = now()
    // At least the time in microseconds, so that a board that is created again continues with larger fences.
    const fence = Math.max(Math.floor(at * 1_000), Number(gate['fence']) + 1)
    db.run('UPDATE boards SET fence = ? WHERE id = ?', fence, board)
    db.run(CLAIM, life, at, session, encodeText(who), job)
    changes.addClaimed(job, { holds: wanted.length > 0 || (limits?.wants.length ?? 0) > 0 })
    return { revision: revision + 1, fence: BigInt(fence), arrivals }
  }

  /** Ends the claim that a session holds. */
  settle(settlement: Settlement, session: number): Settled {
    const { rows, jobs } = this.#options
    const { id, kind, revision, posting, history } = settlement
    const row = rows.find(id)
    if (row?.['session'] !== session || row['revision'] !== revision) return undefined
    const job = Number(row['id'])
    let doomed: readonly string[] = []
    if (settlement.kind === 'abandon') jobs.giveBack(job, posting, settlement)
    else doomed = jobs.end(row, { history, trash: kind === 'trash' ? settlement : undefined })
    this.#free(row)
    return doomed
  }

  /** Ends the claim that any session holds at the revision. */
  release({ id, revision, posting }: ReleaseRequest): ReleaseOutcome {
    const { rows, jobs } = this.#options
    const row = rows.find(id)
    if (!row) return 'gone'
    if (row['revision'] !== revision) return 'changed'
    if (row['session'] === null) return 'unclaimed'
    jobs.giveBack(Number(row['id']), posting)
    this.#free(row)
    return 'released'
  }

  /** Frees the resources and slots of a job, if it held any when the row was read. */
  #free(row: Row): void {
    if (row['holding'] !== 1) return
    const job = Number(row['id'])
    this.#options.resources.free(job)
    this.#options.limits.free(job)
  }

  owner(id: string): string | undefined {
    const { db, board } = this.#options.context
    const sql = 'SELECT who FROM jobs WHERE id = ? AND board = ? AND session IS NOT NULL'
    const row = db.get(sql, jobNumber(id), board)
    return row && readText(row, 'who')
  }
}

export class SqliteClaims implements BackendClaims {
  readonly #board: SqliteBoard<{ readonly claims: ClaimSteps }>

  constructor(board: SqliteBoard<{ readonly claims: ClaimSteps }>) {
    this.#board = board
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    const { id, label } = this.#board.requireSession('claiming')
    return settleEach(choices, (choice) =>
      this.#board.step(({ claims }) => ({ session: label, ...claims.claim(choice, id) })),
    )
  }

  async settle(settlement: Settlement): Promise<void> {
    const { sink, keeper } = this.#board.requireOpen()
    const session = keeper.current
    const isOurs = session?.label === settlement.session
    const doomed = isOurs ? await this.#board.step(({ claims }) => claims.settle(settlement, session.id)) : undefined
    if (!doomed) throw refusalError(`job ${settlement.posting.uuid}`, { why: 'lost' })
    if (doomed.length > 0) sink.doomed(doomed)
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    return this.#board.step(({ claims }) => claims.release(request))
  }

  async owner(id: string): Promise<string | undefined> {
    return this.#board.read(({ claims }) => claims.owner(id))
  }
}
