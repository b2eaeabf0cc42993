/**
 * Changes the board with a client that writes one znode at a time. Each operation has one deciding step: if the process dies
 * before it, nothing was done; if it dies after it, everything that matters was done:
 *
 * | operation | steps, the deciding one in capitals                                                                      |
 * |-----------|----------------------------------------------------------------------------------------------------------|
 * | post      | CREATE POSTING                                                                                           |
 * | claim     | create lock, SETDATA POSTING at the revision seen (next run, its attempt), read gate: undone when paused |
 * | consume   | DELETE POSTING at the revision this claim wrote, delete cancel request, delete lock                      |
 * | abandon   | SETDATA POSTING at that revision, delete lock                                                            |
 * | trash     | SETDATA POSTING at that revision: the trash entry, as a mark; delete cancel request, delete lock         |
 * | discard   | create lock, SETDATA POSTING at the revision seen: the mark; delete cancel request, delete lock          |
 * | cancel    | read posting, CREATE CANCEL REQUEST, read again: the request is deleted when the posting is gone         |
 * | gate      | SETDATA GATE at the revision seen; also to raise the fence base, by a claim that finds it too low        |
 * | purge     | DELETE TRASH ENTRY, or the posting that has the mark                                                     |
 *
 * All boards respect the lock: boards that have multi create it together with the rest of a claim or not at all. When an owner
 * has died, the posting beside its lock shows what it did: the posting is unchanged, or has one more run (a death like any
 * other), or is a mark, or is deleted, and then the lock belongs to no job. The lock ends with its session.
 */
import type { Encoding } from '../../../../core/codec.ts'
import {
  ClaimLost,
  NotConnected,
  NotFound,
  OutcomeUnknown,
  PayloadTooLarge,
  Unclaimable,
  UnsupportedCapability,
} from '../../../../core/errors.ts'
import {
  BadVersion,
  NodeExists,
  NoNode,
  NotEmpty,
  RequestTooLarge,
  SessionExpired,
  versionedSetData,
  type ZooKeeperDriver,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type {
  CancelRequest,
  ClaimRequest,
  DiscardRequest,
  GateRequest,
  Posted,
  PostRequest,
  Settlement,
  TrashedEntry,
  TrashReason,
} from '../../../backend.ts'
import { MAX_POSTING_BYTES, type Posting, type PostingLimit, toCountedBytes } from '../../../model/posting.ts'
import { notInTrashError } from '../commit/refused-steps.ts'
import type { SequenceNumbers } from '../commit/sequence-numbers.ts'
import { toDependent } from '../dependency-nodes.ts'
import { decodeTrashMark, ownBoard } from '../store/board-kind.ts'
import { assertIntact, FenceBase } from '../store/fence-base.ts'
import type { BoardGate, GateSnapshot } from '../store/gate.ts'
import { compareDigits, isJob, type Layout } from '../store/layout.ts'
import { missingAsUndefined, translateErrors, type ZooKeeperReader } from '../store/reader.ts'
import { encodeCancellation, encodeGate, encodeLock, type GateRecord } from '../store/records.ts'
import { type SessionClaimGrant, toJobName } from '../writer.ts'
import type { Locks } from './locks.ts'
import type { Steps } from './single-writes.ts'
import type { BoardSnapshot } from './snapshot.ts'

export interface WithoutMultiWriterOptions {
  readonly zookeeper: ZooKeeperDriver
  readonly layout: Layout
  readonly encoding: Encoding
  readonly steps: Steps
  readonly locks: Locks
  readonly mirror: BoardSnapshot
  readonly reader: ZooKeeperReader
  readonly gate: BoardGate
  readonly numbers: SequenceNumbers
  /** Receives the server's time, in milliseconds since 1970, from answers. */
  readonly onServerTime: (time: number) => void
  /** Returns the time of the servers' clock, in milliseconds since 1970. */
  readonly now: () => number
}

/** What a server accepts by default. */
const POSTING_LIMIT = { limit: 1_048_575 }

export class WithoutMultiWriter {
  readonly #options: WithoutMultiWriterOptions
  readonly #fences: FenceBase

  constructor(options: WithoutMultiWriterOptions) {
    this.#options = options
    this.#fences = new FenceBase({
      path: options.layout.gate,
      now: options.now,
      raise: (seen, base) => this.#raiseFence(seen, base),
    })
  }

  /** Posts a job, in two round trips: the answer to a create contains only the path. */
  async post({ posting }: PostRequest): Promise<Posted> {
    const { zookeeper, layout, mirror, numbers, onServerTime } = this.#options
    const what = `post of ${toJobName(posting)}`
    assertSupported(what, posting)
    const bytes = this.#encodePosting(posting, { limit: MAX_POSTING_BYTES })
    const { newest } = mirror
    const own = numbers.next()
    const session = await this.#requireSession(what)
    const path = own ?? layout.newPosting
    const id = await zookeeper.create(path, bytes, { session, ...(own ? {} : { sequential: true }) }).then(
      (made) => layout.toJobId(made.path),
      (error: unknown) => this.#recoverPosted(posting, { what, newest, error }),
    )
    const posted = { created: true, revision: 0, bytes: toCountedBytes(bytes, this.#options.encoding) } as const
    const stat = await translateErrors(what, () => mirror.noteCreated(id)).catch((error: unknown) => {
      throw error instanceof NotConnected ? outcomeUnknownError(what, error) : error
    })
    if (!stat) {
      const trashed = (await translateErrors(what, () => zookeeper.exists(layout.trash(id)))) !== undefined
      return { ...posted, order: 0n, trashed }
    }
    onServerTime(stat.ctime)
    mirror.report('posted', id)
    if (stat.version > 0) mirror.report('updated', id)
    return { ...posted, id, order: stat.czxid }
  }

  /** Claims a job, in four round trips. */
  claim(choice: ClaimRequest): Promise<SessionClaimGrant> {
    const { id, posting } = choice
    const what = `claim of ${toJobName(posting)}`
    return this.#options.locks.runExclusive(id, async () => {
      assertSupported(what, posting)
      if (this.#options.gate.seen?.paused) throw new Unclaimable(`${what}: the board is paused`)
      // Other boards of the path take slots and tokens; without a transaction a claim of this one cannot.
      if (this.#options.gate.seen?.limits && posting.limits !== 'none')
        throw new Unclaimable(
          `${what}: limits are set on the board, which this driver cannot keep; claim it with our own client`,
        )
      const session = await this.#requireSession(what)
      using _work = this.#options.mirror.beginWork(id)
      await this.#lock(what, { ...choice, session })
      return this.#claimWithLock(what, { ...choice, session })
    })
  }

  settle(settlement: Settlement, session: bigint): Promise<void> {
    const { id, kind, posting, cancelRequested } = settlement
    const { locks, mirror, layout } = this.#options
    const what = `${kind} of ${toJobName(posting)}`
    return locks.runExclusive(id, async () => {
      using _work = mirror.beginWork(id)
      try {
        await this.#decideSettlement(settlement, session)
      } catch (error) {
        const lost = notSettledError(what, error)
        if (lost instanceof ClaimLost) await locks.releaseIfOwned(id, session)
        throw lost
      }
      if (kind === 'consume') mirror.report('gone', id)
      else if (kind === 'trash') mirror.noteMarked(id)
      else mirror.report('updated', id)
      if (kind !== 'abandon' && cancelRequested) await this.#removeQuietly(layout.cancel(id))
      if ((await locks.release(id, session)) && kind === 'abandon') mirror.report('released', id)
    })
  }

  discard(discarded: DiscardRequest): Promise<void> {
    const { id, posting, revision, cancelRequested } = discarded
    const { locks, mirror, steps, layout } = this.#options
    const what = `removal of ${toJobName(posting)}`
    return locks.runExclusive(id, async () => {
      const session = await this.#requireSession(what)
      using _work = mirror.beginWork(id)
      await this.#lock(what, { ...discarded, session })
      try {
        await steps.rewrite(id, this.#encodeTrashEntry(discarded), { revision, session })
        mirror.noteMarked(id)
        if (cancelRequested) await this.#removeQuietly(layout.cancel(id))
      } catch (error) {
        mirror.report('updated', id)
        throw notClaimedError(what, error)
      } finally {
        await locks.release(id, session)
      }
    })
  }

  async cancel({ id, job, who, reason }: CancelRequest): Promise<void> {
    const { zookeeper, layout, encoding, mirror, reader } = this.#options
    const what = `cancellation of ${job}`
    const isThere = async () => (await translateErrors(what, () => reader.read([id])))[0] !== undefined
    const gone = () => new NotFound(`${what}: it has left the board`)
    if (!(await isThere())) throw gone()
    const request = encodeCancellation({ who, reason }, encoding)
    await zookeeper.create(layout.cancel(id), request).catch((error: unknown) => {
      if (!(error instanceof NodeExists)) throw notDoneError(what, error)
    })
    if (!(await isThere())) {
      await this.#removeQuietly(layout.cancel(id))
      throw gone()
    }
    mirror.report('cancelled', id)
  }

  async setGate({ paused }: GateRequest): Promise<void> {
    const { gate, layout } = this.#options
    const what = paused ? 'pause of the board' : 'resumption of the board'
    while (true) {
      const seen = await translateErrors(what, () => gate.read())
      assertIntact(seen, layout.gate)
      if (await this.#writeGate(what, seen, { paused, fenceBase: seen.fenceBase, limits: seen.limits })) return
    }
  }

  /** Writes the gate. @returns undefined if the gate has changed since it was read */
  async #writeGate(what: string, { version }: GateSnapshot, record: GateRecord): Promise<GateSnapshot | undefined> {
    const { zookeeper, layout, gate } = this.#options
    try {
      const written = await versionedSetData(zookeeper, layout.gate, encodeGate(record), { version })
      return gate.noteWritten({ ...record, version: written.version })
    } catch (error) {
      // Another client has written it since.
      if (error instanceof BadVersion || error instanceof NoNode) return undefined
      throw notDoneError(what, error)
    }
  }

  /**
   * Purges a trash entry or a marked posting. Another board may move the job from the posting to the entry meanwhile,
   * once.
   */
  async purge({ id, revision, posting }: TrashedEntry): Promise<void> {
    const { layout, steps, mirror } = this.#options
    const what = `purge of ${toJobName(posting)}`
    try {
      if (await steps.discard(layout.trash(id), { revision })) return
      const marked = await this.#markedRevision(id)
      if (marked !== undefined && (await steps.discard(layout.posting(id), { revision: marked }))) return
      if (await steps.discard(layout.trash(id), { revision })) return
    } catch (error) {
      throw error instanceof BadVersion ? notInTrashError(what, error) : notDoneError(what, error)
    } finally {
      mirror.refreshSoon()
    }
    throw new NotFound(`${what}: it is not in the trash any more`)
  }

  async #raiseFence(seen: GateSnapshot, fenceBase: bigint): Promise<GateSnapshot> {
    const what = 'raising the fence'
    const written = await this.#writeGate(what, seen, { ...seen, fenceBase })
    return written ?? translateErrors(what, () => this.#options.gate.read())
  }

  // --- Steps --------------------------------------------------------------------------------------------------------

  async #claimWithLock(
    what: string,
    { id, revision, posting, session }: ClaimRequest & { readonly session: bigint },
  ): Promise<SessionClaimGrant> {
    const { zookeeper, layout, steps, gate, mirror, onServerTime } = this.#options
    let written = false
    try {
      const { version, mzxid, mtime } = await steps.rewrite(id, this.#encodePosting(posting), { revision, session })
      written = true
      onServerTime(mtime)
      // Read after the write, so every pause or cancel request from before the write is seen.
      const [seen, cancelled] = await Promise.all([gate.read(), zookeeper.exists(layout.cancel(id), { session })])
      const { paused, fenceBase } = await this.#ensureFence(seen, { session, zxid: mzxid })
      if (paused) throw new Unclaimable(`${what}: the board is paused`)
      if (cancelled) mirror.report('cancelled', id)
      mirror.report('claimed', id)
      return { session, revision: version, fence: fenceBase + mzxid, mark: mzxid }
    } catch (error) {
      if (written) await this.#undoClaim(id, { posting, revision: revision + 1, session })
      await this.#options.locks.release(id, session)
      mirror.report('updated', id)
      throw notClaimedError(what, error)
    }
  }

  /**
   * Returns the gate with the base that a claim of this session may use. If the session is over the claim is lost, and
   * the gate that was read may be newer than the claim that follows: then the base is 0, so systems that compare fences
   * refuse this claim.
   */
  async #ensureFence(
    seen: GateSnapshot,
    at: { readonly session: bigint; readonly zxid: bigint },
  ): Promise<GateSnapshot> {
    const isOver = () => this.#options.zookeeper.session?.id !== at.session
    if (seen.paused) return seen
    try {
      const examined = await this.#fences.ensureValid(seen, at)
      return isOver() ? { ...examined, fenceBase: 0n } : examined
    } catch (error) {
      if (!isOver()) throw error
      return { ...seen, fenceBase: 0n }
    }
  }

  /** Removes the run that was not granted from the posting. If this fails, the run looks like a death to all others. */
  async #undoClaim(
    id: string,
    { posting, revision, session }: { posting: Posting; revision: number; session: bigint },
  ): Promise<void> {
    const before = { ...posting, runs: posting.runs - 1, attempts: posting.attempts.slice(0, -1) }
    await this.#options.steps
      .rewrite(id, this.#encodePosting(before), { revision, session })
      .catch((error: unknown) => {
        if (!(error instanceof ZooKeeperError)) throw error
      })
  }

  async #lock(what: string, { id, who, session }: { id: string; who: string; session: bigint }): Promise<void> {
    const { steps, mirror, encoding, locks } = this.#options
    try {
      await steps.lock(id, encodeLock(who, encoding), { session })
    } catch (error) {
      // The next attempt of a caller must not choose this job before it is released.
      if (error instanceof NodeExists) mirror.report('claimed', id)
      else await locks.releaseIfOwned(id, session)
      throw notClaimedError(what, error)
    }
  }

  async #decideSettlement(settlement: Settlement, session: bigint): Promise<void> {
    const { steps, onServerTime } = this.#options
    const { id, revision } = settlement
    if (settlement.kind === 'consume') return this.#consume(id, { revision, session })
    const bytes =
      settlement.kind === 'trash' ? this.#encodeTrashEntry(settlement) : this.#encodePosting(settlement.posting)
    onServerTime((await steps.rewrite(id, bytes, { revision, session })).mtime)
  }

  /** Removes a job that is done, and before it frees the jobs that depend on it: a znode with children cannot be deleted. */
  async #consume(id: string, at: { readonly revision: number; readonly session: bigint }): Promise<void> {
    const { steps, layout, zookeeper } = this.#options
    while (true) {
      try {
        return await steps.remove(id, at)
      } catch (error) {
        if (!(error instanceof NotEmpty)) throw error
      }
      const { names } = await zookeeper.getChildren(layout.posting(id))
      for (const name of names) {
        const { id: dependent } = toDependent(name)
        await this.#removeQuietly(layout.waitFor(dependent, id))
        await this.#removeQuietly(layout.wait(dependent))
        await this.#removeQuietly(layout.dependent(id, name))
      }
    }
  }

  /** Deletes a znode and ignores failures: the sweep deletes what remains. */
  async #removeQuietly(path: string): Promise<void> {
    await this.#options.steps.discard(path).catch((error: unknown) => {
      if (!(error instanceof ZooKeeperError)) throw error
    })
  }

  async #markedRevision(id: string): Promise<number | undefined> {
    const { zookeeper, layout } = this.#options
    const there = await missingAsUndefined(zookeeper.getData(layout.posting(id)))
    return there && decodeTrashMark(ownBoard, id, there.data) ? there.stat.version : undefined
  }

  /**
   * Finds a posted job whose answer was lost. A missing job proves nothing: it may have been posted and removed since.
   */
  async #recoverPosted(
    { uuid }: Posting,
    { what, newest, error }: { what: string; newest: string; error: unknown },
  ): Promise<string> {
    const { zookeeper, layout, reader } = this.#options
    if (!(error instanceof ZooKeeperError) || error.outcome !== 'unknown') throw notDoneError(what, error)
    try {
      await zookeeper.sync(layout.path)
      const { names } = await zookeeper.getChildren(layout.path)
      const later = names.filter((name) => isJob(name) && compareDigits(name, newest) > 0)
      const found = (await reader.read(later)).find((read) => read && 'posting' in read && read.posting.uuid === uuid)
      if (found) return found.id
    } catch (cause) {
      if (!(cause instanceof ZooKeeperError)) throw cause
    }
    throw outcomeUnknownError(what, error)
  }

  async #requireSession(what: string): Promise<bigint> {
    const { zookeeper, layout } = this.#options
    if (!zookeeper.session) await translateErrors(what, () => zookeeper.sync(layout.path))
    if (zookeeper.session) return zookeeper.session.id
    throw new NotConnected(`${what}: nothing was done: there is no session`)
  }

  #encodePosting(posting: Posting, limit: PostingLimit = POSTING_LIMIT): Uint8Array {
    return ownBoard.encodePosting(posting, limit)
  }

  #encodeTrashEntry(entry: TrashReason & { posting: Posting; who: string; at?: Date }): Uint8Array {
    return ownBoard.encodeTrash({ ...entry, at: entry.at ?? new Date() }, POSTING_LIMIT)
  }
}

/** Refuses keys and resources, which claims cannot hold without transactions. @throws UnsupportedCapability */
function assertSupported(what: string, { key, resources }: Posting): void {
  const capability = resources === undefined ? key !== undefined && 'keys' : 'resources'
  if (!capability) return
  const message = `${what}: the native client does not support ${capability}, because it has no transactions; open the board without client=native`
  throw new UnsupportedCapability(message, { capability })
}

function notClaimedError(what: string, cause: unknown): unknown {
  if (cause instanceof NoNode) return new NotFound(`${what}: it has left the board`, { cause })
  const raced = cause instanceof BadVersion || cause instanceof NodeExists
  return raced ? new Unclaimable(`${what}: it was claimed or changed by another`, { cause }) : notDoneError(what, cause)
}

function notSettledError(what: string, cause: unknown): unknown {
  const over = cause instanceof SessionExpired && cause.outcome !== 'unknown'
  if (over) return new ClaimLost(`${what}: the session that claimed it is over; stop and write nothing`, { cause })
  const gone = cause instanceof BadVersion || cause instanceof NoNode
  return gone
    ? new ClaimLost(`${what}: the claim is gone; stop and write nothing`, { cause })
    : notDoneError(what, cause)
}

function notDoneError(what: string, cause: unknown): unknown {
  if (!(cause instanceof ZooKeeperError)) return cause
  if (cause instanceof RequestTooLarge) return new PayloadTooLarge(`${what}: ${cause.message}`, { cause })
  if (cause.outcome === 'unknown') return outcomeUnknownError(what, cause)
  const away = cause.outcome === 'not-sent' || cause instanceof SessionExpired
  return away ? new NotConnected(`${what}: nothing was done: ${cause.message}`, { cause }) : cause
}

function outcomeUnknownError(what: string, cause: Error): OutcomeUnknown {
  return new OutcomeUnknown(
    `${what}: the connection broke before the answer, and it is not known whether it was done`,
    {
      cause,
    },
  )
}
