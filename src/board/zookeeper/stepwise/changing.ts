/**
 * Changes the board with a client that writes one znode at a time. Each operation has one step that decides; whoever dies
 * before it has done nothing, whoever dies behind it has done everything that counts:
 *
 * | operation | steps, the deciding one in capitals                                                                      |
 * |-----------|----------------------------------------------------------------------------------------------------------|
 * | post      | CREATE POSTING                                                                                           |
 * | claim     | create lock, SETDATA POSTING at the revision seen (next run, its attempt), read gate: undone when paused |
 * | consume   | DELETE POSTING at the revision this claim wrote, delete cancel request, delete lock                      |
 * | abandon   | SETDATA POSTING at that revision, delete lock                                                            |
 * | trash     | SETDATA POSTING at that revision: the trash entry, as a mark; delete cancel request, delete lock         |
 * | discard   | create lock, SETDATA POSTING at the revision seen: the mark; delete cancel request, delete lock          |
 * | cancel    | look for posting, CREATE CANCEL REQUEST, look again: taken away when the posting is gone                 |
 * | gate      | SETDATA GATE at the revision seen; so is the fence base, by the claim that finds it too low              |
 * | purge     | DELETE TRASH ENTRY, or the posting that bears the mark                                                   |
 *
 * The lock is what all boards agree on: those that have multi make it with the rest of a claim or not at all. What a lock
 * lies beside whose owner died tells what it did: the old posting, a posting with one more run (a death like any other), a
 * mark, or nothing, and then it is nobody's job. It goes with its session.
 */
import type { Encoding } from '../../../core/codec.ts'
import {
  ClaimLost,
  NotConnected,
  NotFound,
  OutcomeUnknown,
  PayloadTooLarge,
  Unclaimable,
  UnsupportedCapability,
} from '../../../core/errors.ts'
import {
  BadVersion,
  NodeExists,
  NoNode,
  RequestTooLarge,
  SessionExpired,
  versionedSetData,
  type ZooKeeperDriver,
  ZooKeeperError,
} from '../../../zookeeper/index.ts'
import type {
  BackendCapabilities,
  CancelRequest,
  Choice,
  Discard,
  GateRequest,
  Posted,
  PostRequest,
  Settlement,
  TrashedEntry,
  Verdict,
} from '../../backend.ts'
import { countedBytes, type Posting } from '../../posting.ts'
import { FRAME, type GrantedIn, LARGEST_POST, named } from '../changing.ts'
import { assertIntact, FenceBase } from '../fence-base.ts'
import type { Gate, SeenGate } from '../gate.ts'
import { compareDigits, isJob, type Layout } from '../layout.ts'
import { asking, type BoardReader, unlessGone } from '../reading.ts'
import { decodeMark, encodeCancellation, encodeGate, encodeLock, encodeTrash, type GateRecord } from '../records.ts'
import { notInTrash } from '../refused-steps.ts'
import type { SequenceNumbers } from '../sequence-numbers.ts'
import { writePosting } from '../shared-posting.ts'
import type { Locks } from './locks.ts'
import type { Mirror } from './mirror.ts'
import type { Steps } from './steps.ts'

export interface StepwiseOptions {
  readonly zookeeper: ZooKeeperDriver
  readonly layout: Layout
  readonly encoding: Encoding
  readonly steps: Steps
  readonly locks: Locks
  readonly mirror: Mirror
  readonly reader: BoardReader
  readonly gate: Gate
  readonly numbers: SequenceNumbers
  /** Told of the server's time, in milliseconds since 1970. */
  readonly clock: (time: number) => void
  /** The servers' clock, in milliseconds since 1970. */
  readonly now: () => number
}

export class StepwiseChanger {
  readonly #options: StepwiseOptions
  readonly #fences: FenceBase

  constructor(options: StepwiseOptions) {
    this.#options = options
    this.#fences = new FenceBase({
      path: options.layout.gate,
      now: options.now,
      raise: (seen, base) => this.#raiseFence(seen, base),
    })
  }

  /** Two round trips: the answer to a create tells no more than its path. */
  async post({ posting }: PostRequest): Promise<Posted> {
    const { zookeeper, layout, mirror, numbers, clock } = this.#options
    const what = `post of ${named(posting)}`
    assertPossible(what, posting)
    const bytes = this.#encoded(posting, { limit: LARGEST_POST })
    const { newest } = mirror
    const own = numbers.next()
    const session = await this.#session(what)
    const path = own ?? layout.newPosting
    const id = await zookeeper.create(path, bytes, { session, ...(own ? {} : { sequential: true }) }).then(
      (made) => layout.idOf(made.path),
      (error: unknown) => this.#findPosted(posting, { what, newest, error }),
    )
    const posted = { created: true, revision: 0, bytes: countedBytes(bytes, this.#options.encoding) } as const
    const stat = await asking(what, () => mirror.made(id)).catch((error: unknown) => {
      throw error instanceof NotConnected ? outcomeUnknown(what, error) : error
    })
    if (!stat) {
      const trashed = (await asking(what, () => zookeeper.exists(layout.trash(id)))) !== undefined
      return { ...posted, order: 0n, trashed }
    }
    clock(stat.ctime)
    mirror.tell('posted', id)
    if (stat.version > 0) mirror.tell('updated', id)
    return { ...posted, id, order: stat.czxid }
  }

  /** Four round trips. */
  claim(choice: Choice): Promise<GrantedIn> {
    const { id, posting } = choice
    const what = `claim of ${named(posting)}`
    return this.#options.locks.inTurn(id, async () => {
      assertPossible(what, posting)
      if (this.#options.gate.seen?.paused) throw new Unclaimable(`${what}: the board is paused`)
      const session = await this.#session(what)
      using _work = this.#options.mirror.work(id)
      await this.#lock(what, { ...choice, session })
      return this.#claimLocked(what, { ...choice, session })
    })
  }

  settle(settlement: Settlement, session: bigint): Promise<void> {
    const { id, kind, posting, cancelRequested } = settlement
    const { locks, mirror, layout } = this.#options
    const what = `${kind} of ${named(posting)}`
    return locks.inTurn(id, async () => {
      using _work = mirror.work(id)
      try {
        await this.#decide(settlement, session)
      } catch (error) {
        const lost = notSettled(what, error)
        if (lost instanceof ClaimLost) await locks.releaseIfOurs(id, session)
        throw lost
      }
      if (kind === 'consume') mirror.tell('gone', id)
      else if (kind === 'trash') mirror.mark(id)
      else mirror.tell('updated', id)
      if (kind !== 'abandon' && cancelRequested) await this.#forget(layout.cancel(id))
      if ((await locks.release(id, session)) && kind === 'abandon') mirror.tell('released', id)
    })
  }

  discard(discarded: Discard): Promise<void> {
    const { id, posting, revision, cancelRequested } = discarded
    const { locks, mirror, steps, layout } = this.#options
    const what = `removal of ${named(posting)}`
    return locks.inTurn(id, async () => {
      const session = await this.#session(what)
      using _work = mirror.work(id)
      await this.#lock(what, { ...discarded, session })
      try {
        await steps.rewrite(id, this.#trashEntry(discarded), { revision, session })
        mirror.mark(id)
        if (cancelRequested) await this.#forget(layout.cancel(id))
      } catch (error) {
        mirror.tell('updated', id)
        throw notClaimed(what, error)
      } finally {
        await locks.release(id, session)
      }
    })
  }

  async cancel({ id, job, who, reason }: CancelRequest): Promise<void> {
    const { zookeeper, layout, encoding, mirror, reader } = this.#options
    const what = `cancellation of ${job}`
    const isThere = async () => (await asking(what, () => reader.read([id])))[0] !== undefined
    const gone = () => new NotFound(`${what}: it has left the board`)
    if (!(await isThere())) throw gone()
    const request = encodeCancellation({ who, reason }, encoding)
    await zookeeper.create(layout.cancel(id), request).catch((error: unknown) => {
      if (!(error instanceof NodeExists)) throw notDone(what, error)
    })
    if (!(await isThere())) {
      await this.#forget(layout.cancel(id))
      throw gone()
    }
    mirror.tell('cancelled', id)
  }

  async setGate({ paused }: GateRequest): Promise<void> {
    const { gate, layout } = this.#options
    const what = paused ? 'pause of the board' : 'resumption of the board'
    while (true) {
      const seen = await asking(what, () => gate.read())
      assertIntact(seen, layout.gate)
      if (await this.#writeGate(what, seen, { paused, fenceBase: seen.fenceBase })) return
    }
  }

  /** Undefined where it is not as it was seen any more. */
  async #writeGate(what: string, { version }: SeenGate, record: GateRecord): Promise<SeenGate | undefined> {
    const { zookeeper, layout, gate } = this.#options
    try {
      const written = await versionedSetData(zookeeper, layout.gate, encodeGate(record), { version })
      return gate.wrote({ ...record, version: written.version })
    } catch (error) {
      // Somebody else has set it since.
      if (error instanceof BadVersion || error instanceof NoNode) return undefined
      throw notDone(what, error)
    }
  }

  /** Another board may move it from the one place to the other meanwhile, once. */
  async purge({ id, revision, posting }: TrashedEntry): Promise<void> {
    const { layout, steps, mirror } = this.#options
    const what = `purge of ${named(posting)}`
    try {
      if (await steps.discard(layout.trash(id), { revision })) return
      const marked = await this.#markedRevision(id)
      if (marked !== undefined && (await steps.discard(layout.posting(id), { revision: marked }))) return
      if (await steps.discard(layout.trash(id), { revision })) return
    } catch (error) {
      throw error instanceof BadVersion ? notInTrash(what, error) : notDone(what, error)
    } finally {
      mirror.hint()
    }
    throw new NotFound(`${what}: it is not in the trash any more`)
  }

  async #raiseFence(seen: SeenGate, fenceBase: bigint): Promise<SeenGate> {
    const what = 'raising the fence'
    const written = await this.#writeGate(what, seen, { ...seen, fenceBase })
    return written ?? asking(what, () => this.#options.gate.read())
  }

  // --- Steps --------------------------------------------------------------------------------------------------------

  async #claimLocked(
    what: string,
    { id, revision, posting, session }: Choice & { readonly session: bigint },
  ): Promise<GrantedIn> {
    const { zookeeper, layout, steps, gate, mirror, clock } = this.#options
    let written = false
    try {
      const { version, mzxid, mtime } = await steps.rewrite(id, this.#encoded(posting), { revision, session })
      written = true
      clock(mtime)
      // Behind the write, so whatever was asked for before it is seen.
      const [seen, cancelled] = await Promise.all([gate.read(), zookeeper.exists(layout.cancel(id), { session })])
      const { paused, fenceBase } = await this.#fenced(seen, { session, zxid: mzxid })
      if (paused) throw new Unclaimable(`${what}: the board is paused`)
      if (cancelled) mirror.tell('cancelled', id)
      mirror.tell('claimed', id)
      return { session, revision: version, fence: fenceBase + mzxid, mark: mzxid }
    } catch (error) {
      if (written) await this.#takeBack(id, { posting, revision: revision + 1, session })
      await this.#options.locks.release(id, session)
      mirror.tell('updated', id)
      throw notClaimed(what, error)
    }
  }

  /**
   * The gate with the base that a claim of this session may use. When the session is over the claim is lost, and what the
   * gate says may be younger than the claim that follows: then the base is 0, and whoever compares fences refuses this one.
   */
  async #fenced(seen: SeenGate, at: { readonly session: bigint; readonly zxid: bigint }): Promise<SeenGate> {
    const isOver = () => this.#options.zookeeper.session?.id !== at.session
    if (seen.paused) return seen
    try {
      const examined = await this.#fences.examined(seen, at)
      return isOver() ? { ...examined, fenceBase: 0n } : examined
    } catch (error) {
      if (!isOver()) throw error
      return { ...seen, fenceBase: 0n }
    }
  }

  /** The run was granted to nobody. Who cannot say so any more leaves a death behind, as far as anybody can tell. */
  async #takeBack(
    id: string,
    { posting, revision, session }: { posting: Posting; revision: number; session: bigint },
  ): Promise<void> {
    const before = { ...posting, runs: posting.runs - 1, attempts: posting.attempts.slice(0, -1) }
    await this.#options.steps.rewrite(id, this.#encoded(before), { revision, session }).catch((error: unknown) => {
      if (!(error instanceof ZooKeeperError)) throw error
    })
  }

  async #lock(what: string, { id, who, session }: { id: string; who: string; session: bigint }): Promise<void> {
    const { steps, mirror, encoding, locks } = this.#options
    try {
      await steps.lock(id, encodeLock(who, encoding), { session })
    } catch (error) {
      // Whoever tries again must not choose it before it is released.
      if (error instanceof NodeExists) mirror.tell('claimed', id)
      else await locks.releaseIfOurs(id, session)
      throw notClaimed(what, error)
    }
  }

  async #decide(settlement: Settlement, session: bigint): Promise<void> {
    const { steps, clock } = this.#options
    const { id, revision } = settlement
    if (settlement.kind === 'consume') return steps.remove(id, { revision, session })
    const bytes = settlement.kind === 'trash' ? this.#trashEntry(settlement) : this.#encoded(settlement.posting)
    clock((await steps.rewrite(id, bytes, { revision, session })).mtime)
  }

  /** What is left of it is swept. */
  async #forget(path: string): Promise<void> {
    await this.#options.steps.discard(path).catch((error: unknown) => {
      if (!(error instanceof ZooKeeperError)) throw error
    })
  }

  async #markedRevision(id: string): Promise<number | undefined> {
    const { zookeeper, layout, encoding } = this.#options
    const there = await unlessGone(zookeeper.getData(layout.posting(id)))
    return there && decodeMark(id, there.data, encoding) ? there.stat.version : undefined
  }

  /** Where the answer to a post was lost. That it is not there proves nothing: it may have been done and be gone. */
  async #findPosted(
    { uuid }: Posting,
    { what, newest, error }: { what: string; newest: string; error: unknown },
  ): Promise<string> {
    const { zookeeper, layout, reader } = this.#options
    if (!(error instanceof ZooKeeperError) || error.outcome !== 'unknown') throw notDone(what, error)
    try {
      await zookeeper.sync(layout.path)
      const { names } = await zookeeper.getChildren(layout.path)
      const later = names.filter((name) => isJob(name) && compareDigits(name, newest) > 0)
      const found = (await reader.read(later)).find((read) => read && 'posting' in read && read.posting.uuid === uuid)
      if (found) return found.id
    } catch (cause) {
      if (!(cause instanceof ZooKeeperError)) throw cause
    }
    throw outcomeUnknown(what, error)
  }

  async #session(what: string): Promise<bigint> {
    const { zookeeper, layout } = this.#options
    if (!zookeeper.session) await asking(what, () => zookeeper.sync(layout.path))
    if (zookeeper.session) return zookeeper.session.id
    throw new NotConnected(`${what}: nothing was done: there is no session`)
  }

  #encoded(posting: Posting, options: { limit: number } = { limit: FRAME }): Uint8Array {
    return writePosting(posting, { encoding: this.#options.encoding, ...options })
  }

  #trashEntry(entry: Verdict & { posting: Posting; who: string }): Uint8Array {
    return encodeTrash({ ...entry, at: new Date() }, { encoding: this.#options.encoding, limit: FRAME })
  }
}

/** What a claim would have to hold or let go of together with the job. */
export function lacking(posting: Pick<Posting, 'key' | 'resources'>): keyof BackendCapabilities | undefined {
  if (posting.resources !== undefined) return 'resources'
  return posting.key === undefined ? undefined : 'keys'
}

function assertPossible(what: string, posting: Posting): void {
  const capability = lacking(posting)
  if (capability === undefined) return
  const message = `${what}: the native client has no ${capability}, for it has no transactions; open the board without client=native`
  throw new UnsupportedCapability(message, { capability })
}

function notClaimed(what: string, cause: unknown): unknown {
  if (cause instanceof NoNode) return new NotFound(`${what}: it has left the board`, { cause })
  const raced = cause instanceof BadVersion || cause instanceof NodeExists
  return raced ? new Unclaimable(`${what}: it was claimed or changed by another`, { cause }) : notDone(what, cause)
}

function notSettled(what: string, cause: unknown): unknown {
  const over = cause instanceof SessionExpired && cause.outcome !== 'unknown'
  if (over) return new ClaimLost(`${what}: the session that claimed it is over; stop and write nothing`, { cause })
  const gone = cause instanceof BadVersion || cause instanceof NoNode
  return gone ? new ClaimLost(`${what}: the claim is gone; stop and write nothing`, { cause }) : notDone(what, cause)
}

function notDone(what: string, cause: unknown): unknown {
  if (!(cause instanceof ZooKeeperError)) return cause
  if (cause instanceof RequestTooLarge) return new PayloadTooLarge(`${what}: ${cause.message}`, { cause })
  if (cause.outcome === 'unknown') return outcomeUnknown(what, cause)
  const away = cause.outcome === 'not-sent' || cause instanceof SessionExpired
  return away ? new NotConnected(`${what}: nothing was done: ${cause.message}`, { cause }) : cause
}

function outcomeUnknown(what: string, cause: Error): OutcomeUnknown {
  return new OutcomeUnknown(`${what}: the connection broke before the answer, and nobody can tell if it was done`, {
    cause,
  })
}
