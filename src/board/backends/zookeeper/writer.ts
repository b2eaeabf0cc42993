/**
 * Changes the board: implements each operation of `Backend` as one transaction, and maps its refusal to an error.
 * `commit/transactions.ts` defines the steps of the transactions; `commit/committer.ts` sends them and determines their
 * outcomes.
 */
import { ClaimLost, PayloadTooLarge, Unclaimable } from '../../../core/errors.ts'
import { defined } from '../../../core/options.ts'
import {
  BadVersion,
  type CheckOp,
  NodeExists,
  NoNode,
  op,
  type ReadData,
  type ReadResult,
  ZooKeeperError,
} from '../../../zookeeper/index.ts'
import type {
  CancelRequest,
  ClaimGrant,
  ClaimRequest,
  DiscardRequest,
  GateRequest,
  KeyTaken,
  Posted,
  PostRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Replaced,
  ReplaceRequest,
  RestoreOutcome,
  Settlement,
  TrashedEntry,
  TrashReason,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { cascadeCancellation, type Dependency, isFirstRun } from '../../model/dependencies.ts'
import type { HistoryEntry } from '../../model/ended-job.ts'
import { toLimitCosts } from '../../model/limits.ts'
import { MAX_POSTING_BYTES, type Posting, type PostingLimit, toCountedBytes } from '../../model/posting.ts'
import { toResourceWants } from '../../model/resources.ts'
import { type BatchCounter, type BatchOpening, NO_OPENING, toGuard } from './batch-counter.ts'
import type { CommittedTransaction, JournalEntry, Precheck, TouchedName, Transaction } from './commit/batch.ts'
import type { ConflictTracker, TrackedClaim } from './commit/conflict-tracker.ts'
import { BatchChangedSignal, isBatchConflict } from './commit/job-batch-steps.ts'
import {
  alreadyTrashedError,
  isKeyTaken,
  notCancelledError,
  notClaimedError,
  notInTrashError,
  notSettledError,
} from './commit/refused-steps.ts'
import type { SequenceNumbers } from './commit/sequence-numbers.ts'
import type { TransactionStep } from './commit/transactions.ts'
import * as transactions from './commit/transactions.ts'
import { DependencyGoneSignal, type DependencyNodes, isDependentsConflict } from './dependency-nodes.ts'
import { DependentsChanged, type JobOutcome } from './dependency-release.ts'
import { GateWriter, type GateWriterOptions } from './gate-writer.ts'
import type { HistoryNodes } from './history-nodes.ts'
import type { LimitNodes, LimitReservation } from './limit-nodes.ts'
import type { BoardKind } from './store/board-kind.ts'
import type { GateSnapshot } from './store/gate.ts'
import type { KeyHolder, KeyNodes } from './store/key-nodes.ts'
import type { LateCancellations } from './store/late-cancellations.ts'
import type { LostPosts } from './store/lost-posts.ts'
import { translateErrors, type ZooKeeperReader } from './store/reader.ts'
import { encodeCancellation, encodeKey, encodeLock } from './store/records.ts'
import type { ResourceNodes } from './store/resource-nodes.ts'

/** The settings on which the maximum size of a request depends, for errors. */
export const SIZE_SETTING = "maxRequestBytes; the servers' jute.maxbuffer"

export interface ZooKeeperWriterOptions extends GateWriterOptions {
  readonly kind: BoardKind
  readonly reader: ZooKeeperReader
  readonly keys: KeyNodes
  readonly conflicts: ConflictTracker
  readonly folders: ResourceNodes
  readonly limits: LimitNodes
  readonly numbers: SequenceNumbers
  readonly lostPosts: LostPosts
  readonly lateCancellations: LateCancellations
  readonly dependencies: DependencyNodes
  readonly history: HistoryNodes
  readonly batches: BatchCounter
}

/** A post that can be sent, alone or in a transaction with others. */
export interface PreparedPost {
  readonly uuid: string
  /** The path, if this client has numbered it. */
  readonly path: string | undefined
  /** The counted size of the posting. */
  readonly bytes: number
  readonly key: KeyToTake | undefined
  readonly steps: readonly TransactionStep[]
  readonly touches: readonly TouchedName[]
  /** Returns what became of it. @param created the path that was created */
  toPosted(created: string | undefined, zxid: bigint): Posted
}

/** A key that a transaction creates, or takes over at a revision. */
interface KeyToTake {
  readonly name: string
  readonly bytes: Uint8Array
  readonly takenOverAt?: number
}

/** A granted claim, with the session of its transaction. */
export interface SessionClaimGrant {
  readonly session: bigint
  readonly revision: number
  readonly fence: bigint
  readonly mark: bigint
  readonly arrivals?: NonNullable<ClaimGrant['arrivals']>
}

export class ZooKeeperWriter {
  readonly #options: ZooKeeperWriterOptions
  readonly #gate: GateWriter
  /** The check of the gate that the last claim had. */
  #guard: CheckOp | undefined

  constructor(options: ZooKeeperWriterOptions) {
    this.#options = options
    this.#gate = new GateWriter(options)
  }

  /** Pauses or resumes the board. @throws InvalidState for a gate whose base cannot be read */
  setGate(request: GateRequest): Promise<GateSnapshot> {
    return this.#gate.set(request)
  }

  /** Prepares the steps of a post. @param opening what it adds for its batch @throws PayloadTooLarge */
  preparePost({ posting, takeOver, after = [] }: PostRequest, opening: BatchOpening): PreparedPost {
    const { layout, numbers, kind, committer } = this.#options
    const bytes = this.#encodePosting(posting, postLimit(committer.maxBytes))
    this.assertClaimable(posting, bytes)
    const counted = toCountedBytes(bytes, kind.encoding)
    const { path, dependencies } = this.#place(posting, after)
    const key = this.#keyToTake(posting, { path, takenOverAt: takeOver })
    return {
      ...{ uuid: posting.uuid, path, bytes: counted, key },
      steps: [
        ...transactions.postSteps(layout, { bytes, dependencies, ...(path === undefined ? {} : { path }) }, key),
        ...opening.steps,
      ],
      touches: [...touchedNames({ key: posting.key }), ...opening.touches],
      toPosted: (created, zxid) => {
        if (created !== undefined) numbers.note(created)
        const id = created === undefined ? {} : { id: layout.toJobId(created) }
        return { created: true, ...id, revision: 0, order: zxid, bytes: counted }
      },
    }
  }

  /** Returns the path of a posting if it has to be known, and the steps that register its dependencies: they need it, as a window does. */
  #place(
    { keyFor }: Posting,
    after: readonly Dependency[],
  ): {
    readonly path: string | undefined
    readonly dependencies: readonly TransactionStep[]
  } {
    const { layout, numbers, dependencies } = this.#options
    const path = after.length === 0 && keyFor === undefined ? numbers.next() : numbers.own()
    return { path, dependencies: path === undefined ? [] : dependencies.postSteps(layout.toJobId(path), after) }
  }

  async post({ takeOver, ...rest }: PostRequest): Promise<Posted> {
    const { committer, batches, dependencies, numbers } = this.#options
    const { posting, after = [] } = rest
    const what = `post of ${toJobName(posting)}`
    let revision = takeOver
    while (true) {
      const gone = dependencies.findGone(after)
      if (gone.length > 0) return { created: false, gone }
      // A job without a batch is sent in this turn of the event loop: a close waits for what is under way.
      const opening = posting.batch === undefined ? NO_OPENING : await batches.openPosted(rest)
      const request = { ...rest, ...(revision === undefined ? {} : { takeOver: revision }) }
      const { steps, touches, toPosted, ...prepared } = this.preparePost(request, opening)
      const { key } = prepared
      const posted = await committer
        .commit<Posted | undefined>({
          ...{ what, steps, touches, ...toGuard(opening) },
          onCommitted: ({ zxid, results: [created] }) =>
            toPosted(created && 'path' in created ? created.path : undefined, zxid),
          onRecovered: ({ zxid }) => this.recoverPosted(zxid, prepared),
          ...this.#prechecks(key, after),
          getConflict: () => this.#goneError(after),
          repair: (step, error) => this.createMissingFolder(step, error),
          // A taken key, and a number that another poster has created too, are results to examine and not errors yet.
          toRejection: (error, step) => {
            numbers.noteRefused(error, step)
            const other = opening.toRejection(error, step) ?? this.#goneDependency(error, step)
            return other ?? (isKeyTaken(error, step) ? new KeyTakenSignal() : error)
          },
        })
        .catch((error: unknown): Posted | undefined => {
          if (error instanceof KeyTakenSignal || error instanceof BatchChangedSignal) return undefined
          // It was noted with the signal.
          if (error instanceof DependencyGoneSignal) return { created: false, gone: dependencies.findGone(after) }
          throw error
        })
      if (posted) return posted
      if (posting.key === undefined) continue
      const holder = await this.findKey(what, posting.key)
      // If the key has the revision to take over, the number was taken and not the key.
      if (holder && holder.state !== 'free' && holder.revision !== revision) return toKeyTaken(holder)
      // Without a holder, the key was deleted since: there is nothing to take over any more.
      revision = holder?.revision
    }
  }

  /** Returns the holder of a key. @throws NotConnected */
  findKey(what: string, name: string): Promise<KeyHolder | undefined> {
    return translateErrors(what, () => this.#options.keys.find(name))
  }

  /** Replaces the posting of a job that was never claimed. @throws NotFound, Unclaimable, PayloadTooLarge */
  async replace({ id, revision, keyRevision, posting, window }: ReplaceRequest): Promise<Replaced> {
    const { layout, committer, kind } = this.#options
    const what = `replacement of ${toJobName(posting)}`
    const bytes = this.#encodePosting(posting, postLimit(committer.maxBytes))
    this.assertClaimable(posting, bytes)
    const { uuid, key: name = '' } = posting
    const record = { uuid, ...(window === undefined ? {} : { window: { id, ms: window } }) }
    const key = { name, bytes: encodeKey(record, kind.encoding), takenOverAt: keyRevision }
    await committer.commit({
      ...effectOnly(what, transactions.replaceSteps(layout, id, { revision, bytes }, key)),
      touches: touchedNames({ id, key: name }),
      toRejection: (error, step) => {
        // The key is that of the job as long as it has this revision.
        if (step !== 'guard' && step?.subject === 'key' && isKeyTaken(error, step))
          return new Unclaimable(`${what}: its key was changed`)
        return notClaimedError(what, error, step)
      },
    })
    return { revision: revision + 1, bytes: toCountedBytes(bytes, kind.encoding) }
  }

  async claim({ id, who, revision, posting, limits }: ClaimRequest): Promise<SessionClaimGrant> {
    const { layout, gate, kind, conflicts, folders } = this.#options
    const what = `claim of ${toJobName(posting)}`
    const tracked = conflicts.track(id)
    try {
      const { exclusive, shared } = toResourceWants(posting)
      if (exclusive.length + shared.length > 0)
        await translateErrors(what, () => folders.prepare([...exclusive, ...shared]))
      const bytes = this.#encodePosting(posting)
      const lock = encodeLock(who, kind.encoding)
      const touches = [...touchedNames({ id }), ...requestedResources(posting)]
      const { dependencies } = this.#options
      let proof = posting.after ? dependencies.proofSteps(id) : undefined
      while (true) {
        // Usually the gate is known, and there is nothing to wait for.
        const { session, seen } = this.#gate.prepared ?? (await this.#gate.prepare(what))
        if (limits && seen.limits !== limits.revision) {
          // The limits may have been read after the gate.
          if ((await translateErrors(what, () => gate.read())).limits === limits.revision) continue
          throw refusalError(what, { why: 'limits' })
        }
        const reserved = limits?.wants.length
          ? await translateErrors(what, () =>
              this.#options.limits.reserve(what, id, { gate: seen.version, wants: limits.wants }),
            )
          : undefined
        const at = { revision, bytes, lock, posting, kind, ...defined({ limits: reserved?.steps, proof }) }
        const steps = transactions.claimSteps(layout, id, at)
        try {
          const granted = await this.#commitClaim({ what, steps, touches, session, seen, tracked, reserved, revision })
          reserved?.granted()
          return granted
        } catch (error) {
          reserved?.refused({ stale: error instanceof LimitTakenSignal })
          // Another claim was faster: what is left is read again.
          if (error instanceof LimitTakenSignal) continue
          // The job waits for others. It can be claimed if it is cancelled and has run before.
          if (error instanceof WaitsSignal && proof?.length !== 1 && !isFirstRun(posting)) {
            proof = [dependencies.cancelledStep(id)]
            continue
          }
          if (error instanceof WaitsSignal) throw refusalError(what, { why: 'waits' })
          // Nothing was done: the gate was written meanwhile, or the session ended before the claim was sent. The claim
          // is tried again.
          if (!(error instanceof KeyTakenSignal || error instanceof ClaimLost)) throw error
          await translateErrors(what, () => gate.read())
        }
      }
    } finally {
      conflicts.untrack(tracked)
    }
  }

  #commitClaim(claim: {
    readonly what: string
    readonly steps: readonly TransactionStep[]
    readonly touches: readonly TouchedName[]
    readonly session: bigint
    readonly seen: GateSnapshot
    readonly tracked: TrackedClaim
    readonly reserved: LimitReservation | undefined
    readonly revision: number
  }): Promise<SessionClaimGrant> {
    const { what, steps, touches, session, seen, tracked, reserved, revision } = claim
    const granted = ({ session, zxid }: CommittedTransaction) => ({
      ...{ session, revision: revision + 1, fence: seen.fenceBase + zxid, mark: zxid },
      ...(reserved ? { arrivals: reserved.arrivals } : {}),
    })
    return this.#options.committer.commit<SessionClaimGrant>({
      ...{ what, steps, touches },
      // In another session the servers may have lost the data from which this base was computed.
      session,
      guard: this.#gateGuard(seen.version),
      ...(reserved ? { additions: reserved.additions } : {}),
      getConflict: () => conflictError(what, tracked.conflict),
      repair: (step, error) => this.#createMissingResource(step, error) ?? this.createMissingFolder(step, error),
      onCommitted: granted,
      onRecovered: granted,
      toRejection: (error, step) => {
        if (isLimitConflict(error, step)) return new LimitTakenSignal()
        if (isWaitConflict(error, step)) return new WaitsSignal()
        return isGateConflict(error, step) ? new KeyTakenSignal() : notClaimedError(what, error, step)
      },
    })
  }

  /** Returns the check of the gate at this version. Claims of one batch have the same, so that it is sent once. */
  #gateGuard(version: number): CheckOp {
    if (this.#guard?.version !== version) this.#guard = transactions.gateCheckOp(this.#options.layout, version)
    return this.#guard
  }

  settle(settlement: Settlement, session: bigint): Promise<void> {
    const { kind, posting, id } = settlement
    const what = `${kind} of ${toJobName(posting)}`
    const steps = this.#settleSteps(settlement)
    const settling = async () => {
      const rest = {
        ...{ what, session, onCommitted: noResult, onRecovered: noResult },
        touches: touchedNames({ id, key: posting.key }),
        toRejection: (error: ZooKeeperError, step: TransactionStep | 'guard' | undefined) =>
          notSettledError(what, error, step),
      }
      if (kind === 'abandon') await this.#options.committer.commit<void>({ ...rest, steps })
      else await this.#end(settlement, { ...rest, steps })
      this.#options.limits.free(id)
    }
    // A cancel request that is known is deleted in the same transaction.
    if (settlement.kind === 'abandon' || settlement.cancelRequested) return settling()
    return this.#options.lateCancellations.removeAfterEnd(id, settling)
  }

  /** Ends the claim of another owner: what its own client would commit to abandon the job. */
  async release({ id, revision, posting }: ReleaseRequest): Promise<ReleaseOutcome> {
    const { layout, kind, limits, committer } = this.#options
    const what = `release of ${toJobName(posting)}`
    const keys = toLimitCosts(posting).map(({ key }) => key)
    const slots = await translateErrors(what, () => limits.readSlotsOf(id, keys))
    const bytes = this.#encodePosting(posting)
    try {
      await committer.commit({
        ...effectOnly(what, transactions.abandonSteps(layout, id, { posting, revision, kind, slots, bytes })),
        touches: touchedNames({ id }),
        toRejection: (error, step) => {
          const outcome = refusedRelease(error, step)
          return outcome === undefined ? error : new ReleaseRefusedSignal(outcome)
        },
      })
      return 'released'
    } catch (error) {
      if (error instanceof ReleaseRefusedSignal) return error.outcome
      throw error
    }
  }

  discard(discarded: DiscardRequest): Promise<void> {
    const { id, posting } = discarded
    const what = `removal of ${toJobName(posting)}`
    const { layout } = this.#options
    const entry = this.#encodeTrashEntry(discarded)
    const discarding = () =>
      this.#end(discarded, {
        ...effectOnly(what, transactions.discardSteps(layout, id, { ...discarded, entry })),
        touches: touchedNames({ id, key: posting.key }),
        toRejection: (error, step) => alreadyTrashedError(what, id, error, step) ?? notClaimedError(what, error, step),
      })
    return discarded.cancelRequested ? discarding() : this.#options.lateCancellations.removeAfterEnd(id, discarding)
  }

  /** Ends a job, with what follows for the jobs that depend on it, and adds it to the history. */
  async #end(ended: EndedRequest, transaction: Transaction<void>): Promise<void> {
    const { layout, committer, dependencies, history, batches, numbers, kind: boardKind } = this.#options
    const { id, revision, posting } = ended
    const { batch, uuid } = posting
    const { reason } = ended
    const cancellation = reason === undefined ? undefined : cascadeCancellation({ ...ended, reason })
    const outcome: JobOutcome = cancellation
      ? { outcome: 'trashed', cancellation: encodeCancellation(cancellation, boardKind.encoding) }
      : { outcome: 'done' }
    const toRejection: Transaction<void>['toRejection'] = (error, step) => {
      numbers.noteRefused(error, step)
      if (isDependentsConflict(error, step)) return new DependentsChanged()
      if (isBatchConflict(error, step)) return new BatchChangedSignal()
      return toHistorySignal(error, step) ?? transaction.toRejection(error, step)
    }
    const job = batch === undefined ? undefined : { batch, uuid, id, trashed: cancellation !== undefined }
    const commit = (
      steps: readonly TransactionStep[],
      dependentChecks: readonly Precheck[],
      entry?: JournalEntry,
    ): Promise<void> =>
      batches.end(job, async ({ steps: counting, finish, touches }) => {
        const needed = [...steps, ...transaction.steps, ...counting]
        const whole = [...needed, ...finish]
        const fits =
          finish.length > 0 &&
          committer.sizeOf(whole) + (entry?.bytes.length ?? 0) <= withoutReserve(committer.maxBytes)
        const sent = { steps: fits ? whole : needed, touches: [...transaction.touches, ...touches] }
        const prechecks = [...(transaction.prechecks ?? []), ...dependentChecks]
        await committer.commit<void>({ ...transaction, ...sent, prechecks, toRejection, ...(entry ? { entry } : {}) })
        return fits
      })
    await dependencies.end(id, {
      outcome,
      // The job is done, and stays on the board until all that depend on it are free: if its owner dies meanwhile, another one goes on.
      commitPart: (steps, prechecks) =>
        committer.commit<void>({
          ...{ ...transaction, toRejection, prechecks },
          steps: [transactions.postingCheckStep(layout, id, { revision }), ...steps],
        }),
      commit: (steps, prechecks) => this.#withHistory(ended.history, (entry) => commit(steps, prechecks, entry)),
    })
    if (ended.history) history.added(ended.history)
    // It may have ended while it waited, because it was cancelled.
    if (posting.after && cancellation) await dependencies.removeWaits(id).catch(ignoreFailure)
  }

  /** Commits the end of a job with its entry in the history. */
  async #withHistory(
    entry: HistoryEntry | undefined,
    commit: (entry: JournalEntry | undefined) => Promise<void>,
  ): Promise<void> {
    if (!entry) return commit(undefined)
    const { history } = this.#options
    while (true) {
      // Without this condition, jobs that end together would be sent in several transactions.
      if (!history.isPrepared) await translateErrors('adding to the history', () => history.prepare())
      try {
        return await commit(history.toEntry(entry))
      } catch (error) {
        if (error instanceof HistoryGoneSignal) history.forget()
        else if (error instanceof HistoryTakenSignal)
          await translateErrors('adding to the history', () => history.skipTakenNumber())
        else throw error
      }
    }
  }

  async cancel({ id, job, who, reason }: CancelRequest): Promise<void> {
    const { layout, committer, kind } = this.#options
    const what = `cancellation of ${job}`
    const asked = (error: ZooKeeperError, step: TransactionStep | 'guard' | undefined) =>
      error instanceof NodeExists && step !== 'guard' && step?.subject === 'cancel'
    await committer
      .commit({
        ...effectOnly(what, transactions.cancelSteps(layout, id, encodeCancellation({ who, reason }, kind.encoding))),
        touches: touchedNames({ id }),
        toRejection: (error, step) => {
          if (asked(error, step)) return new KeyTakenSignal()
          return notCancelledError(what, error, step)
        },
      })
      .catch((error: unknown) => {
        if (!(error instanceof KeyTakenSignal)) throw error
      })
  }

  async restore(
    entry: TrashedEntry,
    posting: Posting,
    { after = [] }: { readonly after?: readonly Dependency[] } = {},
  ): Promise<RestoreOutcome> {
    const { layout, committer, batches, numbers } = this.#options
    const what = `restoration of ${toJobName(posting)}`
    const bytes = this.#encodePosting(posting)
    let takenOverAt: number | undefined
    while (true) {
      const opening = posting.batch === undefined ? NO_OPENING : await batches.openRestored(posting, entry)
      const { path, dependencies } = this.#place(posting, after)
      const created = { bytes, dependencies, ...(path === undefined ? {} : { path }) }
      const key = this.#keyToTake(posting, { path, takenOverAt })
      const restoring = committer.commit({
        ...effectOnly(what, [...transactions.restoreSteps(layout, entry, created, key), ...opening.steps]),
        touches: [...touchedNames({ id: entry.id, key: posting.key }), ...opening.touches],
        repair: (step, error) => this.createMissingFolder(step, error),
        toRejection: (error, step) => {
          numbers.noteRefused(error, step)
          const other = opening.toRejection(error, step) ?? this.#goneDependency(error, step)
          if (other) return other
          return isKeyTaken(error, step) ? new KeyTakenSignal() : notInTrashError(what, error)
        },
      })
      try {
        await restoring
        return { restored: true }
      } catch (error) {
        if (error instanceof DependencyGoneSignal)
          return { restored: false, gone: this.#options.dependencies.findGone(after) }
        if (!(error instanceof KeyTakenSignal || error instanceof BatchChangedSignal)) throw error
      }
      // The key is taken, or another poster has created the same number, and the next one is free; or the batch was changed meanwhile.
      const holder = posting.key === undefined ? undefined : await this.findKey(what, posting.key)
      const isOwn = holder?.state === 'window' && holder.id === entry.id
      if (holder && holder.state !== 'free' && !isOwn) throw refusalError(what, { why: 'key' })
      takenOverAt = holder?.revision
    }
  }

  purge({ id, revision, posting }: TrashedEntry): Promise<void> {
    const what = `purge of ${toJobName(posting)}`
    const { layout, committer } = this.#options
    return committer.commit({
      ...effectOnly(what, transactions.purgeSteps(layout, { id, revision })),
      touches: touchedNames({ id }),
      toRejection: (error) => notInTrashError(what, error),
    })
  }

  /** Notes that a step was refused: the number of a posting may be taken, see `SequenceNumbers.noteRefused`. */
  noteRefused(error: Error, step: TransactionStep | 'guard' | undefined): void {
    this.#options.numbers.noteRefused(error, step)
  }

  /** Returns the step that creates the callback of a batch, in the transaction of the last count. */
  toCallbackStep(posting: Posting): TransactionStep {
    const { layout, numbers } = this.#options
    const path = numbers.next()
    const bytes = this.#encodePosting(posting)
    return transactions.callbackStep(layout, { bytes, ...(path === undefined ? {} : { path }) })
  }

  /** Finds a posted job whose answer was lost: other clients may have claimed, consumed or trashed it since. */
  async recoverPosted(
    zxid: bigint,
    { uuid, bytes, path }: Pick<PreparedPost, 'uuid' | 'bytes' | 'path'>,
  ): Promise<Posted> {
    const { layout, lostPosts } = this.#options
    const id = path === undefined ? {} : { id: layout.toJobId(path) }
    const found = await translateErrors('reading a job that was just posted', () =>
      lostPosts.find({ zxid, uuid, ...id }),
    )
    return { created: true, revision: 0, order: zxid, bytes, ...found }
  }

  /**
   * Refuses a posting whose claim would be too large: every resource adds some steps, each with the board's ACL.
   * @throws PayloadTooLarge
   */
  assertClaimable(posting: Posting, bytes: Uint8Array = this.#encodePosting(posting)): void {
    if (!posting.resources) return
    const { layout, committer, kind } = this.#options
    const at = { revision: 0, bytes, lock: new Uint8Array(), posting, kind }
    const size = committer.sizeOf(transactions.claimSteps(layout, layout.toJobId(layout.newPosting), at))
    const most = withoutReserve(committer.maxBytes)
    if (size <= most) return
    throw new PayloadTooLarge(
      `${toJobName(posting)}: its claim, with all of its resources, would have ${size} bytes; this board accepts ${most} (${SIZE_SETTING}); ` +
        'name fewer resources, or put large data elsewhere',
    )
  }

  /** Returns the reads that show whether a post would be refused, because of its key or of a job on which it would depend. */
  #prechecks(key: PreparedPost['key'], after: readonly Dependency[]): Pick<Transaction<unknown>, 'prechecks'> {
    if (!key && after.length === 0) return {}
    return { prechecks: [...(key ? [this.#keyPrecheck(key)] : []), ...this.#options.dependencies.prechecks(after)] }
  }

  /** Returns the reason to refuse a post without a request, because one of its dependencies is known to have left the board. */
  #goneError(after: readonly Dependency[]): DependencyGoneSignal | undefined {
    return this.#options.dependencies.findGone(after).length === 0 ? undefined : new DependencyGoneSignal()
  }

  #goneDependency(
    error: ZooKeeperError,
    step: TransactionStep | 'guard' | undefined,
  ): DependencyGoneSignal | undefined {
    if (step === undefined || step === 'guard' || step.dependency === undefined) return undefined
    if (!(error instanceof NoNode)) return undefined
    this.#options.dependencies.noteGone(step.dependency)
    return new DependencyGoneSignal()
  }

  /** Returns the check whether the key is taken. A key at the revision to take over is free. */
  #keyPrecheck({ name, takenOverAt }: KeyToTake): Precheck {
    const judge = ({ error, stat }: ReadResult<ReadData>) => {
      if (error) return undefined
      return stat.version === takenOverAt ? undefined : new KeyTakenSignal()
    }
    return { op: op.getData(this.#options.layout.key(name)), judge }
  }

  /** Returns the repair for a resource whose folder was swept since it was last seen. */
  #createMissingResource({ resource }: TransactionStep, error: ZooKeeperError): (() => Promise<unknown>) | undefined {
    if (resource === undefined || !(error instanceof NoNode)) return undefined
    return () => this.#options.folders.create(resource)
  }

  /** Returns the repair of a step that was refused because the folder of the jobs that wait is missing: the first of them creates it. */
  createMissingFolder(
    { subject, op: { type } }: TransactionStep,
    error: ZooKeeperError,
  ): (() => Promise<void>) | undefined {
    const isMissing = (subject === 'wait' || subject === 'proof') && type === 'create' && error instanceof NoNode
    return isMissing ? () => this.#options.dependencies.createFolder() : undefined
  }

  /** Returns the key that the transaction of a posting takes. @param at.path the path of the posting, known for one whose key has a window */
  #keyToTake(
    { uuid, key: name, keyFor }: Posting,
    { path, takenOverAt }: { readonly path: string | undefined; readonly takenOverAt?: number | undefined },
  ): KeyToTake | undefined {
    if (name === undefined) return undefined
    const { layout, kind } = this.#options
    const window =
      keyFor === undefined || path === undefined ? {} : { window: { id: layout.toJobId(path), ms: keyFor } }
    const bytes = encodeKey({ uuid, ...window }, kind.encoding)
    return { name, bytes, ...(takenOverAt === undefined ? {} : { takenOverAt }) }
  }

  #settleSteps(settlement: Settlement): readonly TransactionStep[] {
    const { layout, kind, limits } = this.#options
    const { id, posting, revision, cancelRequested } = settlement
    const at = { posting, revision, cancelRequested, kind, slots: limits.slotsOf(id) }
    switch (settlement.kind) {
      case 'consume':
        return transactions.consumeSteps(layout, id, at)
      case 'abandon': {
        const bytes = this.#encodePosting(posting)
        if (!settlement.held) return transactions.abandonSteps(layout, id, { ...at, bytes })
        this.assertClaimable(posting, bytes)
        // The permits of other names may be those of other jobs.
        return transactions.abandonSteps(layout, id, { ...at, posting: settlement.held, bytes })
      }
      case 'trash':
        return transactions.trashSteps(layout, id, { ...at, entry: this.#encodeTrashEntry(settlement) })
    }
  }

  #encodePosting(posting: Posting, limit: PostingLimit = this.#postingLimit): Uint8Array {
    return this.#options.kind.encodePosting(posting, limit)
  }

  #encodeTrashEntry(entry: TrashReason & { posting: Posting; who: string; at?: Date }): Uint8Array {
    return this.#options.kind.encodeTrash({ ...entry, at: entry.at ?? new Date() }, this.#postingLimit)
  }

  get #postingLimit(): PostingLimit {
    return { limit: this.#options.committer.maxBytes, setting: SIZE_SETTING }
  }
}

/** Returns the maximum size minus a reserve for attempts, which are added later, and for sizes that are estimated too low. */
function withoutReserve(maxBytes: number): number {
  return maxBytes - Math.min(64 * 1_024, maxBytes / 16)
}

/** Returns the maximum size of a job that is posted: a request has room for it twice, since attempts and reasons are added later. */
function postLimit(maxBytes: number): PostingLimit {
  const half = Math.floor((maxBytes - Math.min(32 * 1_024, maxBytes / 16)) / 2)
  return half < MAX_POSTING_BYTES ? { limit: half, setting: SIZE_SETTING } : { limit: MAX_POSTING_BYTES }
}

function toKeyTaken({ uuid, revision, state, id }: KeyHolder): KeyTaken {
  return {
    ...{ created: false, revision },
    ...(uuid === undefined ? {} : { uuid }),
    ...(state === 'window' && id !== undefined ? { inWindowOf: id } : {}),
  }
}

/** Internal signal: the answer must be examined; it is not an error yet. */
class KeyTakenSignal extends Error {}

/** Returns why a claim is refused when its job was changed meanwhile, or undefined if no change is known. */
function conflictError(what: string, by: 'change' | 'end' | undefined): Error | undefined {
  if (by === undefined) return undefined
  return refusalError(what, { why: by === 'end' ? 'gone' : 'changed' })
}

/** The end of a job; with a reason, it goes to the trash. */
type EndedRequest = Pick<Settlement, 'id' | 'revision' | 'posting' | 'history' | 'who'> & Partial<TrashReason>

/** Internal signal: the claim was not released. */
class ReleaseRefusedSignal extends Error {
  readonly outcome: ReleaseOutcome

  constructor(outcome: ReleaseOutcome) {
    super(outcome)
    this.outcome = outcome
  }
}

/** Returns why a claim is not released; undefined for an error that says nothing of the claim. A claim that has ended has no lock. */
function refusedRelease(
  error: ZooKeeperError,
  step: TransactionStep | 'guard' | undefined,
): ReleaseOutcome | undefined {
  if (step === undefined || step === 'guard') return undefined
  if (step.subject === 'lock') return error instanceof NoNode ? 'unclaimed' : undefined
  if (step.subject !== 'posting') return undefined
  if (error instanceof NoNode) return 'gone'
  return error instanceof BadVersion ? 'changed' : undefined
}

/** Internal signal: the job waits for others. */
class WaitsSignal extends Error {}

function isWaitConflict(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): boolean {
  const isProof = step !== undefined && step !== 'guard' && step.subject === 'proof'
  return isProof && (error instanceof NodeExists || error instanceof NoNode)
}

/** Internal signal: the folder of the history was removed; it is created again. */
class HistoryGoneSignal extends Error {}

/** Internal signal: another program has created a znode with the name that the history would use next. */
class HistoryTakenSignal extends Error {}

function toHistorySignal(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): Error | undefined {
  if (step === undefined || step === 'guard' || step.subject !== 'history') return undefined
  if (error instanceof NoNode) return new HistoryGoneSignal()
  return error instanceof NodeExists ? new HistoryTakenSignal() : undefined
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof ZooKeeperError)) throw error
}

/** Internal signal: another claim has taken a slot or a token meanwhile, or the znode of the key was swept. */
class LimitTakenSignal extends Error {}

function isLimitConflict(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): boolean {
  const isLimit = step !== undefined && step !== 'guard' && step.subject === 'limit'
  return isLimit && [BadVersion, NodeExists, NoNode].some((type) => error instanceof type)
}

function isGateConflict(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): boolean {
  return step === 'guard' && (error instanceof BadVersion || error instanceof NoNode)
}

/** Returns the parts of a transaction that has an effect and no result. */
function effectOnly(
  what: string,
  steps: readonly TransactionStep[],
): Pick<Transaction<void>, 'what' | 'steps' | 'onCommitted' | 'onRecovered'> {
  return { what, steps, onCommitted: noResult, onRecovered: noResult }
}

function noResult(): undefined {
  return undefined
}

/** Returns the name of a job for errors. */
export function toJobName(posting: Posting): string {
  return `job ${posting.uuid} (${posting.name})`
}

function touchedNames({ id, key }: { id?: string; key?: string | undefined }): TouchedName[] {
  const touched: TouchedName[] = []
  if (id !== undefined) touched.push({ name: id, mode: 'alone' })
  if (key !== undefined) touched.push({ name: `key ${key}`, mode: 'alone' })
  return touched
}

const NO_NAMES: readonly TouchedName[] = []

function requestedResources(posting: Posting): readonly TouchedName[] {
  const { exclusive, shared } = toResourceWants(posting)
  if (exclusive.length + shared.length === 0) return NO_NAMES
  const touch = (mode: TouchedName['mode']) => (name: string) => ({ name: `resource ${name}`, mode })
  return [...exclusive.map(touch('alone')), ...shared.map(touch('together'))]
}
