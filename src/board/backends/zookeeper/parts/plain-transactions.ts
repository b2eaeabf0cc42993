/**
 * The transactions of plain jobs: the post of a job without a key, dependencies or a batch; the claim of a job without resources, limits or
 * dependencies; the consume of a job without a key, a batch, resources, slots or a cancel request, on which no job is known to depend.
 *
 * Each transaction is one object. For other jobs, `commit/parts.ts` builds a transaction of parts, which allocates several kilobytes. If a plain
 * transaction is refused because this process knew too little, the operation is repeated with parts.
 */
import { BadVersion, type CheckOp, NoNode, NotEmpty, op, type ZooKeeperError } from '../../../../zookeeper/index.ts'
import type { ClaimGrant, ClaimRequest, Posted, Settlement } from '../../../contract/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import type { TrackedClaim } from '../commit/conflict-tracker.ts'
import { AGAIN, type Again, TRY_AGAIN } from '../commit/parts.ts'
import type {
  Applied,
  CommittedTransaction,
  JournalEntry,
  Precheck,
  RefusalMeaning,
  RefusedStep,
  TouchedName,
  Transaction,
  TransactionStep,
} from '../commit/transaction.ts'
import type { EndingJob } from '../store/late-cancellations.ts'
import type { BoardHandle } from './board-handle.ts'
import type { PreparedGate } from './gate-writer.ts'
import { isAbout, type SentPost, toClaimError, toJobName, toSettleError, touchedJob } from './posting-parts.ts'

const NOTHING_TOUCHED: readonly TouchedName[] = []

/** The transaction that posts a plain job. */
export class PlainPost implements Transaction<Posted> {
  readonly steps: readonly TransactionStep[]
  readonly touches = NOTHING_TOUCHED
  readonly #board: BoardHandle
  readonly #posting: Posting
  readonly #sent: SentPost
  readonly #again: (posting: Posting) => Promise<Posted>

  /**
   * @param again posts the job again. It is called when another program has taken the number of the znode.
   * @throws PayloadTooLarge
   */
  constructor(board: BoardHandle, posting: Posting, again: (posting: Posting) => Promise<Posted>) {
    const { postings } = board.components
    const bytes = postings.encodePosted(posting)
    const { path, step } = postings.createStep(bytes)
    this.steps = [step]
    this.#board = board
    this.#posting = posting
    this.#sent = { uuid: posting.uuid, path, bytes: postings.toCounted(bytes) }
    this.#again = again
  }

  get what(): string {
    return `post of ${toJobName(this.#posting)}`
  }

  onCommitted({ zxid, results: [created] }: Applied): Posted {
    const path = created && 'path' in created ? created.path : undefined
    return this.#board.components.postings.toPosted(this.#sent, path, zxid)
  }

  onRecovered({ zxid }: CommittedTransaction): Promise<Posted> {
    return this.#board.components.postings.recoverPosted(this.#sent, zxid)
  }

  onRefused(error: ZooKeeperError, step: RefusedStep): RefusalMeaning<Posted> {
    if (step === undefined || !this.#board.components.postings.noteRefused(error, step)) return error
    return { answer: () => this.#again(this.#posting) }
  }
}

/** The transaction that claims a plain job. */
export class PlainClaim implements Transaction<ClaimGrant | Again>, TrackedClaim {
  readonly id: string
  conflict: TrackedClaim['conflict'] = undefined
  readonly steps: readonly TransactionStep[]
  readonly touches: readonly TouchedName[]
  readonly guard: CheckOp
  readonly #board: BoardHandle
  readonly #request: ClaimRequest
  readonly #gate: PreparedGate

  /** @param options.lock the content of the lock @throws PayloadTooLarge */
  constructor(
    board: BoardHandle,
    request: ClaimRequest,
    { gate, lock }: { readonly gate: PreparedGate; readonly lock: Uint8Array },
  ) {
    const { kind, postings, gates } = board.components
    const { layout } = board
    const { id, revision, posting } = request
    const steps: TransactionStep[] = [
      {
        subject: 'posting',
        op: {
          type: 'setData',
          path: layout.posting(id),
          data: postings.encode(posting),
          version: revision,
          isUnread: true,
        },
      },
    ]
    for (const lockOp of kind.lockOps(layout.lock(id), lock)) steps.push({ subject: 'lock', op: lockOp })
    this.id = id
    this.steps = steps
    this.touches = [touchedJob(id)]
    this.guard = gates.guardAt(gate.seen.version)
    this.#board = board
    this.#request = request
    this.#gate = gate
  }

  get what(): string {
    return `claim of ${toJobName(this.#request.posting)}`
  }

  /** The session of the base of the fences. After a change of session, the servers may have lost the data from which the base was computed. */
  get session(): bigint {
    return this.#gate.session
  }

  getConflict(): Error | undefined {
    return toConflictError(this.what, this.conflict)
  }

  onSessionOver(): RefusalMeaning<Again> {
    return TRY_AGAIN
  }

  onCommitted({ session, zxid }: CommittedTransaction): ClaimGrant {
    const fence = this.#gate.seen.fenceBase + zxid
    return { session: this.#board.labels.labelFor(session), revision: this.#request.revision + 1, fence, mark: zxid }
  }

  onRecovered(committed: CommittedTransaction): ClaimGrant {
    return this.onCommitted(committed)
  }

  onRefused(error: ZooKeeperError, step: RefusedStep): RefusalMeaning<Again> {
    if (step !== 'guard') return toClaimError(this.what, error, step)
    return error instanceof BadVersion || error instanceof NoNode ? TRY_AGAIN : error
  }
}

/** The transaction that consumes a plain job on which no job is known to depend. */
export class PlainConsume implements Transaction<Again | undefined>, EndingJob {
  readonly id: string
  isCancelled = false
  readonly steps: readonly TransactionStep[]
  readonly touches: readonly TouchedName[]
  readonly session: bigint
  readonly entry: JournalEntry | undefined
  readonly #board: BoardHandle
  readonly #settlement: Settlement

  constructor(board: BoardHandle, settlement: Settlement, session: bigint) {
    const { layout } = board
    const { id, revision } = settlement
    const { kind, history } = board.components
    this.id = id
    this.steps = [
      { subject: 'posting', op: op.delete(layout.posting(id), { version: revision }) },
      { subject: 'lock', op: kind.unlockOp(layout.lock(id)) },
    ]
    this.touches = [touchedJob(id)]
    this.session = session
    this.entry = settlement.history && history.entryOf(settlement.history)
    this.#board = board
    this.#settlement = settlement
  }

  get what(): string {
    return `${this.#settlement.kind} of ${toJobName(this.#settlement.posting)}`
  }

  /** The read which shows whether jobs depend on this job that this process does not know. */
  get prechecks(): readonly Precheck<Again>[] {
    return [this.#board.components.dependencies.othersPrecheck(this.#settlement.id, [], this.#unknownDependents)]
  }

  onCommitted(): undefined {
    return undefined
  }

  onRecovered(): undefined {
    return undefined
  }

  onRefused(error: ZooKeeperError, step: RefusedStep): RefusalMeaning<Again> {
    // Dependents are children of the znode of the posting: the job has some that this process did not know.
    if (error instanceof NotEmpty && isAbout(step, 'posting')) return this.#unknownDependents
    const isOfHistory = step !== undefined && step !== 'guard' && step.shared !== undefined
    if (isOfHistory) return this.#board.components.history.meaningOf(error) ?? error
    return toSettleError(this.what, error, step)
  }

  get #unknownDependents(): RefusalMeaning<Again> {
    return {
      answer: () => {
        this.#board.components.dependencies.distrust(this.#settlement.id, [])
        return AGAIN
      },
    }
  }
}

/** Returns whether a claim uses no feature. Limits that were read at another revision than the gate has may apply to the job. */
export function isPlainClaim({ posting, limits }: ClaimRequest, { seen }: PreparedGate): boolean {
  if (posting.resources !== undefined || posting.after !== undefined) return false
  return limits === undefined || (limits.wants.length === 0 && limits.revision === seen.limits)
}

/** Returns the error of a claim whose job was changed before the claim arrived; undefined if no change is known. */
export function toConflictError(what: string, conflict: TrackedClaim['conflict']): Error | undefined {
  if (conflict === undefined) return undefined
  return refusalError(what, { why: conflict === 'end' ? 'gone' : 'changed' })
}
