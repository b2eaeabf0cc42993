/**
 * Changes the board: implements each operation of `Backend` as one transaction, and maps its refusal to an error.
 * `commit/transactions.ts` defines the steps of the transactions; `commit/committer.ts` sends them and determines their
 * outcomes.
 */
import { ClaimLost, Duplicate, LimitsChanged, NotFound, PayloadTooLarge, Unclaimable } from '../../../core/errors.ts'
import {
  BadVersion,
  type CheckOp,
  NodeExists,
  NoNode,
  op,
  type ReadData,
  type ReadResult,
  type ZooKeeperError,
} from '../../../zookeeper/index.ts'
import type {
  CancelRequest,
  ClaimGrant,
  ClaimRequest,
  DiscardRequest,
  GateRequest,
  Posted,
  PostRequest,
  Settlement,
  TrashedEntry,
  TrashReason,
} from '../../backend.ts'
import { MAX_POSTING_BYTES, type Posting, toCountedBytes } from '../../model/posting.ts'
import { toResourceWants } from '../../model/resources.ts'
import type { CommittedTransaction, Precheck, TouchedName, Transaction } from './commit/batch.ts'
import type { ConflictTracker, TrackedClaim } from './commit/conflict-tracker.ts'
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
import { GateWriter, type GateWriterOptions } from './gate-writer.ts'
import type { LimitNodes, LimitReservation } from './limit-nodes.ts'
import type { BoardKind } from './store/board-kind.ts'
import type { GateSnapshot } from './store/gate.ts'
import type { LateCancellations } from './store/late-cancellations.ts'
import type { LostPosts } from './store/lost-posts.ts'
import { type MarkedJob, translateErrors, type ZooKeeperReader } from './store/reader.ts'
import { encodeCancellation, encodeKey, encodeLock } from './store/records.ts'
import type { ResourceNodes } from './store/resource-nodes.ts'

/** The maximum size of a frame that a server accepts by default. */
export const MAX_FRAME_BYTES = 1_048_575
/** The maximum size of a claim when its job is posted: attempts are added later. */
const MAX_CLAIM_BYTES = MAX_FRAME_BYTES - 64 * 1_024

export interface ZooKeeperWriterOptions extends GateWriterOptions {
  readonly kind: BoardKind
  readonly reader: ZooKeeperReader
  readonly conflicts: ConflictTracker
  readonly folders: ResourceNodes
  readonly limits: LimitNodes
  readonly numbers: SequenceNumbers
  readonly lostPosts: LostPosts
  readonly lateCancellations: LateCancellations
}

/** A post that can be sent, alone or in a transaction with others. */
export interface PreparedPost {
  readonly uuid: string
  /** The path, if this client has numbered it. */
  readonly path: string | undefined
  /** The counted size of the posting. */
  readonly bytes: number
  readonly key: { readonly name: string; readonly bytes: Uint8Array; readonly takenOverAt?: number } | undefined
  readonly steps: readonly TransactionStep[]
  readonly touches: readonly TouchedName[]
  /** Returns what became of it. @param created the path that was created */
  toPosted(created: string | undefined, zxid: bigint): Posted
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

  /** Prepares the steps of a post. @throws PayloadTooLarge */
  preparePost({ posting, takeOver }: PostRequest): PreparedPost {
    const { layout, numbers, kind } = this.#options
    const bytes = this.#encodePosting(posting, { limit: MAX_POSTING_BYTES })
    this.#assertClaimable(posting, bytes)
    const counted = toCountedBytes(bytes, kind.encoding)
    const path = numbers.next()
    const key = this.#keyStep(posting, takeOver)
    return {
      ...{ uuid: posting.uuid, path, bytes: counted, key },
      steps: transactions.postSteps(layout, { bytes, ...(path === undefined ? {} : { path }) }, key),
      touches: touchedNames({ key: posting.key }),
      toPosted: (created, zxid) => {
        if (created !== undefined) numbers.note(created)
        const id = created === undefined ? {} : { id: layout.toJobId(created) }
        return { created: true, ...id, revision: 0, order: zxid, bytes: counted }
      },
    }
  }

  async post({ posting, takeOver }: PostRequest): Promise<Posted> {
    const { reader, committer } = this.#options
    const what = `post of ${toJobName(posting)}`
    let revision = takeOver
    while (true) {
      const request = { posting, ...(revision === undefined ? {} : { takeOver: revision }) }
      const { steps, touches, toPosted, ...prepared } = this.preparePost(request)
      const { key } = prepared
      const posted = await committer
        .commit<Posted | undefined>({
          ...{ what, steps, touches },
          onCommitted: ({ zxid, results: [created] }) =>
            toPosted(created && 'path' in created ? created.path : undefined, zxid),
          onRecovered: ({ zxid }) => this.recoverPosted(zxid, prepared),
          ...(key ? { precheck: this.#keyPrecheck(key) } : {}),
          // A taken key, and a number that another poster has created too, are results to examine and not errors yet.
          toRejection: (error, step) => (isKeyTaken(error, step) ? new KeyTakenSignal() : error),
        })
        .catch((error: unknown) => {
          if (error instanceof KeyTakenSignal) return undefined
          throw error
        })
      if (posted) return posted
      if (posting.key === undefined) continue
      const { key: name } = posting
      const holder = await translateErrors(what, () => reader.key(name))
      // If the key has the revision to take over, the number was taken and not the key.
      if (holder && holder.revision !== revision) {
        return {
          created: false,
          ...(holder.uuid === undefined ? {} : { uuid: holder.uuid }),
          revision: holder.revision,
        }
      }
      // The key was deleted since: there is nothing to take over any more.
      if (!holder) revision = undefined
    }
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
      while (true) {
        // Usually the gate is known, and there is nothing to wait for.
        const { session, seen } = this.#gate.prepared ?? (await this.#gate.prepare(what))
        if (limits && seen.limits !== limits.revision) {
          // The limits may have been read after the gate.
          if ((await translateErrors(what, () => gate.read())).limits === limits.revision) continue
          throw new LimitsChanged(`${what}: the limits of the board were changed`)
        }
        const reserved = limits?.wants.length
          ? await translateErrors(what, () => this.#options.limits.reserve(what, id, limits))
          : undefined
        const at = { revision, bytes, lock, posting, kind, ...(reserved ? { limits: reserved.steps } : {}) }
        const steps = transactions.claimSteps(layout, id, at)
        try {
          const granted = await this.#commitClaim({ what, steps, touches, session, seen, tracked, reserved, revision })
          reserved?.granted()
          return granted
        } catch (error) {
          reserved?.refused({ stale: error instanceof LimitTakenSignal })
          // Another claim was faster: what is left is read again.
          if (error instanceof LimitTakenSignal) continue
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
      repair: (step, error) => this.#createMissingResource(step, error),
      onCommitted: granted,
      onRecovered: granted,
      toRejection: (error, step) => {
        if (isLimitConflict(error, step)) return new LimitTakenSignal()
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
      await this.#options.committer.commit<void>({
        ...{ what, steps, session, onCommitted: noResult, onRecovered: noResult },
        touches: touchedNames({ id, key: posting.key }),
        toRejection: (error, step) => notSettledError(what, error, step),
      })
      this.#options.limits.free(id)
    }
    // A cancel request that is known is deleted in the same transaction.
    if (settlement.kind === 'abandon' || settlement.cancelRequested) return settling()
    return this.#options.lateCancellations.removeAfterEnd(id, settling)
  }

  discard(discarded: DiscardRequest): Promise<void> {
    const { id, posting } = discarded
    const what = `removal of ${toJobName(posting)}`
    const { layout, committer } = this.#options
    const entry = this.#encodeTrashEntry(discarded)
    const discarding = () =>
      committer.commit<void>({
        ...effectOnly(what, transactions.discardSteps(layout, id, { ...discarded, entry })),
        touches: touchedNames({ id, key: posting.key }),
        toRejection: (error, step) => alreadyTrashedError(what, id, error, step) ?? notClaimedError(what, error, step),
      })
    return discarded.cancelRequested ? discarding() : this.#options.lateCancellations.removeAfterEnd(id, discarding)
  }

  /** Moves a marked job into the trash. If another client was faster, the job is there already. */
  async moveToTrash(marked: MarkedJob): Promise<void> {
    const { layout, committer } = this.#options
    const what = `moving ${marked.id} into the trash`
    await committer
      .commit({
        ...effectOnly(what, transactions.moveSteps(layout, marked)),
        touches: touchedNames(marked),
        toRejection: (error, step) => {
          const gone = error instanceof NoNode || error instanceof BadVersion
          if (gone && step !== 'guard' && step?.subject === 'posting') return new KeyTakenSignal()
          return alreadyTrashedError(what, marked.id, error, step) ?? error
        },
      })
      .catch((error: unknown) => {
        // If several clients move it at once, all but one find the posting deleted.
        if (!(error instanceof KeyTakenSignal)) throw error
      })
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

  async restore(entry: TrashedEntry, posting: Posting): Promise<void> {
    const { layout, committer, numbers } = this.#options
    const what = `restoration of ${toJobName(posting)}`
    const bytes = this.#encodePosting(posting)
    const path = numbers.next()
    const created = { bytes, ...(path === undefined ? {} : { path }) }
    const restoring = committer.commit({
      ...effectOnly(what, transactions.restoreSteps(layout, entry, created, this.#keyStep(posting))),
      touches: touchedNames({ id: entry.id, key: posting.key }),
      toRejection: (error, step) => {
        if (isKeyTaken(error, step) && step !== 'guard' && step?.subject === 'posting') return new KeyTakenSignal()
        if (isKeyTaken(error, step))
          return new Duplicate(`${what}: its key is taken on the board; restore it when the key is free`, {
            cause: error,
          })
        return notInTrashError(what, error)
      },
    })
    await restoring.catch((error: unknown) => {
      if (!(error instanceof KeyTakenSignal)) throw error
      // Another poster has created the same number; the next one is free.
      return this.restore(entry, posting)
    })
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
  #assertClaimable(posting: Posting, bytes: Uint8Array): void {
    if (!posting.resources) return
    const { layout, committer, kind } = this.#options
    const at = { revision: 0, bytes, lock: new Uint8Array(), posting, kind }
    const size = committer.sizeOf(transactions.claimSteps(layout, layout.toJobId(layout.newPosting), at))
    if (size <= MAX_CLAIM_BYTES) return
    throw new PayloadTooLarge(
      `${toJobName(posting)}: its claim, with all of its resources, would have ${size} bytes; this board accepts ${MAX_CLAIM_BYTES}; ` +
        'name fewer resources, or put large data elsewhere',
    )
  }

  /** Returns the check whether the key is taken. A key at the revision to take over is free. */
  #keyPrecheck({ name, takenOverAt }: { readonly name: string; readonly takenOverAt?: number }): Precheck {
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

  #keyStep(
    posting: Posting,
    takenOverAt?: number,
  ): { readonly name: string; readonly bytes: Uint8Array; readonly takenOverAt?: number } | undefined {
    if (posting.key === undefined) return undefined
    const bytes = encodeKey(posting.uuid, this.#options.kind.encoding)
    return { name: posting.key, bytes, ...(takenOverAt === undefined ? {} : { takenOverAt }) }
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
        this.#assertClaimable(posting, bytes)
        // The permits of other names may be those of other jobs.
        return transactions.abandonSteps(layout, id, { ...at, posting: settlement.held, bytes })
      }
      case 'trash':
        return transactions.trashSteps(layout, id, { ...at, entry: this.#encodeTrashEntry(settlement) })
    }
  }

  #encodePosting(posting: Posting, options: { limit: number } = { limit: MAX_FRAME_BYTES }): Uint8Array {
    return this.#options.kind.encodePosting(posting, options)
  }

  #encodeTrashEntry(entry: TrashReason & { posting: Posting; who: string }): Uint8Array {
    return this.#options.kind.encodeTrash({ ...entry, at: new Date() }, { limit: MAX_FRAME_BYTES })
  }
}

/** Internal signal: the answer must be examined; it is not an error yet. */
class KeyTakenSignal extends Error {}

/** Returns why a claim is refused when its job was changed meanwhile, or undefined if no change is known. */
function conflictError(what: string, by: 'change' | 'end' | undefined): Error | undefined {
  if (by === undefined) return undefined
  return by === 'end'
    ? new NotFound(`${what}: it has left the board`)
    : new Unclaimable(`${what}: it was claimed or changed by another`)
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
