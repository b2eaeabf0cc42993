/** Claims jobs, and settles or releases their claims. `commit/transactions.ts` has the steps. */

import { attempt, type Result, settleEach, toFailed } from '../../../core/result.ts'
import { BadVersion, NoNode, type ZooKeeperError } from '../../../zookeeper/index.ts'
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
import { toClaimCosts } from '../../model/limits.ts'
import type { TrackedClaim } from './commit/conflict-tracker.ts'
import { AGAIN, type Again, isAgain, TRY_AGAIN, type TransactionPart, untilDone, withParts } from './commit/parts.ts'
import type {
  CommittedTransaction,
  RefusalMeaning,
  RefusedStep,
  Transaction,
  TransactionStep,
} from './commit/transaction.ts'
import * as transactions from './commit/transactions.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import type { PreparedGate } from './parts/gate-writer.ts'
import { isPlainClaim, PlainClaim, PlainConsume, toConflictError } from './parts/plain-transactions.ts'
import { isAbout, toClaimError, toJobName, toSettleError, touchedJob, touchedKey } from './parts/posting-parts.ts'
import { prepareResources } from './parts/resource-part.ts'
import { encodeLock } from './store/encoding.ts'
import { readSlotsOf } from './store/limit-slots.ts'
import { translateErrors } from './store/reader.ts'

/** The state that all tries of one claim share. */
interface Claiming {
  readonly what: string
  readonly request: ClaimRequest
  readonly bytes: Uint8Array
  readonly lock: Uint8Array
  readonly permits: TransactionPart<Again> | undefined
  readonly tracked: TrackedClaim
  /** Whether the proof that the job is cancelled replaces the proof that it does not wait. */
  provesCancel: boolean
  /** Whether the gate was written since it was read. */
  isGateOld: boolean
}

const NO_BYTES: Uint8Array = new Uint8Array()
const NO_DEPENDENTS: readonly never[] = []

/** The result of a claim that has no other; there is none in practice. */
const NO_ANSWER: { readonly error: Error } = { error: new Error('a claim has no result') }

export class ZooKeeperClaims implements BackendClaims {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    const { scan, gates } = this.#board.components
    scan.startWork()
    // Usually the gate is known, and there is nothing to wait for.
    const gate = gates.prepared
    const claimAll = (requests: readonly ClaimRequest[]) => settleEach(requests, (request) => this.#claim(request))
    if (!gate) return claimAll(choices)
    if (choices.every((choice) => isPlainClaim(choice, gate))) return this.#claimPlain(choices, gate)
    const isPlain = choices.map((choice) => isPlainClaim(choice, gate))
    const [plain, others] = await Promise.all([
      this.#claimPlain(
        choices.filter((_, index) => isPlain[index]),
        gate,
      ),
      claimAll(choices.filter((_, index) => !isPlain[index])),
    ])
    const results = [plain.values(), others.values()] as const
    return isPlain.map((each) => results[each ? 0 : 1].next().value ?? NO_ANSWER)
  }

  async #claimPlain(requests: readonly ClaimRequest[], gate: PreparedGate): Promise<Result<ClaimGrant>[]> {
    const { conflicts, kind } = this.#board.components
    let owner: string | undefined
    let lock = NO_BYTES
    const claims = requests.map((request) => {
      // Usually all are of one owner.
      if (request.who !== owner) lock = encodeLock(request.who, kind.encoding)
      owner = request.who
      return this.#toPlainClaim(request, { gate, lock })
    })
    for (const claim of claims) if ('value' in claim) conflicts.track(claim.value)
    const answers = await this.#board.committer.commitAll<ClaimGrant | Again>(claims)
    for (const claim of claims) if ('value' in claim) conflicts.untrack(claim.value)
    if (answers.every(isDecided)) return answers
    const stale = requests.filter((_, index) => !isDecided(answers[index] ?? NO_ANSWER))
    const again = (await settleEach(stale, (request) => this.#claim(request, { isGateOld: true }))).values()
    return answers.map((answer) => (isDecided(answer) ? answer : (again.next().value ?? NO_ANSWER)))
  }

  #toPlainClaim(
    request: ClaimRequest,
    at: { readonly gate: PreparedGate; readonly lock: Uint8Array },
  ): Result<PlainClaim> {
    try {
      return { value: new PlainClaim(this.#board, request, at) }
    } catch (error) {
      return toFailed(error)
    }
  }

  /** Claims a job with its features. @param options.isGateOld whether the gate was written since it was read */
  async #claim(request: ClaimRequest, { isGateOld = false } = {}): Promise<ClaimGrant> {
    const { layout } = this.#board
    const { kind, conflicts, resources, postings } = this.#board.components
    const { id, who, posting } = request
    const what = `claim of ${toJobName(posting)}`
    const tracked: TrackedClaim = { id, conflict: undefined }
    conflicts.track(tracked)
    try {
      const claiming: Claiming = {
        ...{ what, request, tracked, provesCancel: false, isGateOld },
        permits:
          posting.resources &&
          (await translateErrors(what, () => prepareResources({ id, posting, what }, { layout, resources }))),
        bytes: postings.encode(posting),
        lock: encodeLock(who, kind.encoding),
      }
      return await untilDone(() => this.#tryToClaim(claiming))
    } finally {
      conflicts.untrack(tracked)
    }
  }

  async #tryToClaim(claiming: Claiming): Promise<ClaimGrant | Again> {
    const { layout } = this.#board
    const { gate, gates, kind, limits } = this.#board.components
    const { what, request, bytes, lock, permits, tracked } = claiming
    const { id, revision, posting } = request
    if (claiming.isGateOld) await translateErrors(what, () => gate.read())
    claiming.isGateOld = false
    // Usually the gate is known, and there is nothing to wait for.
    const { session, seen } = gates.prepared ?? (await gates.prepare(what))
    if (request.limits && seen.limits !== request.limits.revision) {
      // The limits may have been read after the gate.
      if ((await translateErrors(what, () => gate.read())).limits === request.limits.revision) return AGAIN
      throw refusalError(what, { why: 'limits' })
    }
    const wants = request.limits?.wants
    const reserved = wants?.length
      ? await translateErrors(what, () => limits.reserve(what, id, { gate: seen.version, wants }))
      : undefined
    const proof = posting.after && this.#proofPart(claiming)
    const parts = [proof, permits, reserved?.part]
    const granted = ({ session, zxid }: CommittedTransaction): ClaimGrant => ({
      session: this.#board.labels.labelFor(session),
      ...{ revision: revision + 1, fence: seen.fenceBase + zxid, mark: zxid },
      ...(reserved ? { arrivals: reserved.arrivals } : {}),
    })
    const gateChanged: RefusalMeaning<Again> = {
      answer: () => {
        claiming.isGateOld = true
        return AGAIN
      },
    }
    const transaction: Transaction<ClaimGrant | Again> = {
      what,
      steps: transactions.claimSteps(layout, id, {
        ...{ revision, bytes, lock, kind },
        parts: parts.flatMap((part) => part?.steps ?? []),
      }),
      touches: [touchedJob(id)],
      // In another session the servers may have lost the data from which the base of the fence was computed.
      session,
      onSessionOver: () => gateChanged,
      getConflict: () => toConflictError(what, tracked.conflict),
      onCommitted: granted,
      onRecovered: granted,
      onRefused: (error, step) => toClaimError(what, error, step),
    }
    try {
      const answer = await this.#board.committer.commit(
        withParts(transaction, [gates.guardPart(seen.version, gateChanged), ...parts]),
      )
      if (answer === AGAIN) reserved?.refused()
      else reserved?.granted()
      return answer
    } catch (error) {
      reserved?.refused()
      throw error
    }
  }

  /** Returns the proof that the job does not wait. A job that waits can be claimed if it is cancelled and has run before. */
  #proofPart(claiming: Claiming): TransactionPart<Again> | undefined {
    const { dependencies } = this.#board.components
    const { what, request } = claiming
    const waits = refusalError(what, { why: 'waits' })
    if (claiming.provesCancel) return dependencies.cancelledPart(request.id, () => waits)
    return dependencies.proofPart(request.id, () => {
      if (isFirstRun(request.posting)) return waits
      claiming.provesCancel = true
      return TRY_AGAIN
    })
  }

  settle(settlement: Settlement): Promise<void> {
    return attempt(() => {
      const { zookeeper, labels } = this.#board
      const session = labels.requireGranting(settlement, { now: zookeeper.session?.id })
      return this.#isPlainConsume(settlement)
        ? this.#consumePlain(settlement, session)
        : this.#settle(settlement, session)
    })
  }

  /** Returns whether the settlement consumes a plain job on which no other job depends, as far as this process knows. */
  #isPlainConsume({ kind, id, posting, cancelRequested, history: ended }: Settlement): boolean {
    if (kind !== 'consume' || cancelRequested || posting.key !== undefined || posting.batch !== undefined) return false
    const { known, limits, history } = this.#board.components
    if (posting.resources !== undefined || limits.holdsSlots(id) || known.hasDependents(id)) return false
    return ended === undefined || history.isPrepared
  }

  #consumePlain(settlement: Settlement, session: bigint): Promise<void> {
    const { committer } = this.#board
    const { dependencies, history, lateCancellations } = this.#board.components
    const { id, history: ended } = settlement
    const consume = new PlainConsume(this.#board, settlement, session)
    lateCancellations.watch(consume)
    return committer.commit(consume).then(
      (answer) => {
        lateCancellations.unwatch(consume)
        if (isAgain(answer)) return this.#settleAgain(settlement, { session, consume })
        dependencies.noteEnded(id, NO_DEPENDENTS)
        if (ended) history.added(ended)
        return consume.isCancelled ? lateCancellations.remove(id) : undefined
      },
      (error: unknown) => {
        lateCancellations.unwatch(consume)
        throw error
      },
    )
  }

  /** Settles with parts what a plain transaction could not settle, and removes a cancel request that was created meanwhile. */
  async #settleAgain(
    settlement: Settlement,
    { session, consume }: { readonly session: bigint; readonly consume: PlainConsume },
  ): Promise<void> {
    await this.#settle(settlement, session)
    if (consume.isCancelled) await this.#board.components.lateCancellations.remove(consume.id)
  }

  async #settle(settlement: Settlement, session: bigint): Promise<void> {
    const { committer } = this.#board
    const { limits, ending, lateCancellations } = this.#board.components
    const { kind, posting, id } = settlement
    const what = `${kind} of ${toJobName(posting)}`
    const transaction: Transaction<undefined> = {
      ...{ what, session, steps: this.#settleSteps(settlement), onCommitted: noResult, onRecovered: noResult },
      touches: posting.key === undefined ? [touchedJob(id)] : [touchedJob(id), touchedKey(posting.key)],
      onRefused: (error, step) => toSettleError(what, error, step),
    }
    const settling = async () => {
      if (kind === 'abandon') await committer.commit(transaction)
      else await ending.end(settlement, transaction)
      limits.free(id)
    }
    // A cancel request that is known is deleted in the same transaction.
    if (kind === 'abandon' || settlement.cancelRequested) return settling()
    return lateCancellations.removeAfterEnd(id, settling)
  }

  #settleSteps(settlement: Settlement): readonly TransactionStep[] {
    const { layout } = this.#board
    const { kind, limits, postings } = this.#board.components
    const { id, posting, revision, cancelRequested } = settlement
    const at = { posting, revision, cancelRequested, kind, slots: limits.slotsOf(id) }
    switch (settlement.kind) {
      case 'consume':
        return transactions.consumeSteps(layout, id, at)
      case 'abandon': {
        const bytes = postings.encode(posting)
        if (!settlement.held) return transactions.abandonSteps(layout, id, { ...at, bytes })
        postings.assertClaimable(posting, bytes)
        // The permits of other names may belong to other jobs.
        return transactions.abandonSteps(layout, id, { ...at, posting: settlement.held, bytes })
      }
      case 'trash':
        return transactions.trashSteps(layout, id, {
          ...at,
          entry: kind.encodeTrash({ ...settlement, at: new Date() }, postings.limit),
        })
    }
  }

  /** Releases the claim of another owner, by the transaction with which that owner would abandon the job. */
  async release({ id, revision, posting }: ReleaseRequest): Promise<ReleaseOutcome> {
    const { zookeeper, layout, committer } = this.#board
    const { kind, postings } = this.#board.components
    const what = `release of ${toJobName(posting)}`
    const keys = toClaimCosts(posting).map(({ key }) => key)
    const slots = await translateErrors(what, () => readSlotsOf({ zookeeper, layout }, { id, keys }))
    const bytes = postings.encode(posting)
    return committer.commit<ReleaseOutcome>({
      ...{ what, onCommitted: () => 'released', onRecovered: () => 'released' },
      steps: transactions.abandonSteps(layout, id, { posting, revision, kind, slots, bytes }),
      touches: [touchedJob(id)],
      onRefused: (error, step) => {
        const outcome = toReleaseOutcome(error, step)
        return outcome === undefined ? error : { answer: () => outcome }
      },
    })
  }

  async owner(id: string): Promise<string | undefined> {
    return translateErrors(`looking for the owner of ${id}`, () => this.#board.components.reader.owner(id))
  }
}

function isDecided(answer: Result<ClaimGrant | Again>): answer is Result<ClaimGrant> {
  return 'error' in answer || !isAgain(answer.value)
}

function noResult(): undefined {
  return undefined
}

/** Returns why a claim is not released; undefined for an error that says nothing of the claim. A claim that has ended has no lock. */
function toReleaseOutcome(error: ZooKeeperError, step: RefusedStep): ReleaseOutcome | undefined {
  if (isAbout(step, 'lock')) return error instanceof NoNode ? 'unclaimed' : undefined
  if (!isAbout(step, 'posting')) return undefined
  if (error instanceof NoNode) return 'gone'
  return error instanceof BadVersion ? 'changed' : undefined
}
