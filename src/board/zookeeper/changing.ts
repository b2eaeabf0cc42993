/**
 * Changes the board: each of `Backend`'s steps as one transaction, with what its refusal means. What the transactions are
 * made of is in `transactions.ts`, what becomes of them in `committer.ts`.
 */
import type { Encoding } from '../../core/codec.ts'
import { ClaimLost, Duplicate, NotConnected, NotFound, PayloadTooLarge, Unclaimable } from '../../core/errors.ts'
import {
  BadVersion,
  NodeExists,
  NoNode,
  op,
  type ReadData,
  type Reading,
  type ZooKeeperError,
} from '../../zookeeper/index.ts'
import type {
  CancelRequest,
  Choice,
  Discard,
  GateRequest,
  Posted,
  PostRequest,
  Settlement,
  TrashedEntry,
  Verdict,
} from '../backend.ts'
import { countedBytes, type Posting } from '../posting.ts'
import { resourcesOf } from '../resources.ts'
import type { Done, Doubt, Touch, Transaction } from './batch.ts'
import type { Committer } from './committer.ts'
import { assertIntact, FenceBase } from './fence-base.ts'
import type { Gate, SeenGate } from './gate.ts'
import type { LateCancellations } from './late-cancellations.ts'
import type { Layout } from './layout.ts'
import type { LostPosts } from './lost-posts.ts'
import type { Overtaking } from './overtaking.ts'
import { asking, type BoardReader, type Marked, type ReadMany } from './reading.ts'
import { encodeCancellation, encodeGate, encodeKey, encodeLock, encodeTrash, type GateRecord } from './records.ts'
import { inTrashAlready, isTaken, notCancelled, notClaimed, notInTrash, notSettled } from './refused-steps.ts'
import type { ResourceFolders } from './resource-folders.ts'
import type { SequenceNumbers } from './sequence-numbers.ts'
import { writePosting } from './shared-posting.ts'
import type { Step } from './transactions.ts'
import * as transactions from './transactions.ts'

/** What a server takes in one frame, as servers ship. */
export const FRAME = 1_048_575
/**
 * The most bytes of a posting when it is posted: half a frame, less what else travels with it. Attempts and a failure
 * join it later, so what can be posted can be claimed and trashed.
 */
export const LARGEST_POST = Math.floor(FRAME / 2) - 16 * 1_024

/** The most bytes of a claim when its job is posted: attempts join it later. */
const LARGEST_CLAIM = FRAME - 64 * 1_024

export interface ChangerOptions {
  readonly layout: Layout
  readonly encoding: Encoding
  readonly committer: Committer
  readonly reader: BoardReader
  readonly readMany: ReadMany
  readonly gate: Gate
  /** The session there is now, with the newest transaction that is known; undefined without a connection. */
  readonly session: () => { readonly id: bigint; readonly newestZxid: bigint } | undefined
  /** The servers' clock, in milliseconds since 1970. */
  readonly now: () => number
  readonly overtaking: Overtaking
  readonly folders: ResourceFolders
  readonly numbers: SequenceNumbers
  readonly lostPosts: LostPosts
  readonly lateCancellations: LateCancellations
}

/** A claim as it was granted, in the session of the transaction. */
export interface GrantedIn {
  readonly session: bigint
  readonly revision: number
  readonly fence: bigint
  readonly mark: bigint
}

export class BoardChanger {
  readonly #options: ChangerOptions
  readonly #fences: FenceBase

  constructor(options: ChangerOptions) {
    this.#options = options
    this.#fences = new FenceBase({
      path: options.layout.gate,
      now: options.now,
      raise: (seen, base) => this.#raiseFence(seen, base),
    })
  }

  async post({ posting, takeOver }: PostRequest): Promise<Posted> {
    const { layout, reader, committer, numbers } = this.#options
    const what = `post of ${named(posting)}`
    const bytes = this.#encoded(posting, { limit: LARGEST_POST })
    this.#assertClaimable(posting, bytes)
    const counted = countedBytes(bytes, this.#options.encoding)
    let revision = takeOver
    while (true) {
      const path = numbers.next()
      const key = this.#key(posting, revision)
      const posted = await committer
        .commit<Posted | undefined>({
          what,
          steps: transactions.post(layout, { bytes, ...(path === undefined ? {} : { path }) }, key),
          touches: touches({ key: posting.key }),
          done: ({ zxid, results: [created] }) => {
            const id = created && 'path' in created ? { id: layout.idOf(created.path) } : {}
            return { created: true, ...id, revision: 0, order: zxid, bytes: counted }
          },
          recovered: ({ zxid }) => this.#postedIn(zxid, { uuid: posting.uuid, bytes: counted, path }),
          ...(key ? { doubt: this.#doubtOf(key) } : {}),
          // A key that is taken, and a number of our own that somebody else has too, are answers to look at.
          refused: (error, step) => (isTaken(error, step) ? new Taken() : error),
        })
        .catch((error: unknown) => {
          if (error instanceof Taken) return undefined
          throw error
        })
      if (posted) return posted
      if (posting.key === undefined) continue
      const { key: name } = posting
      const holder = await asking(what, () => reader.key(name))
      // Where the revision is the one to be taken over, it is the number that was taken.
      if (holder && holder.revision !== revision) {
        return {
          created: false,
          ...(holder.uuid === undefined ? {} : { uuid: holder.uuid }),
          revision: holder.revision,
        }
      }
      // It has gone since: there is nothing to take over any more.
      if (!holder) revision = undefined
    }
  }

  async claim({ id, who, revision, posting }: Choice): Promise<GrantedIn> {
    const { layout, committer, gate, encoding, overtaking, folders } = this.#options
    const what = `claim of ${named(posting)}`
    using tracked = overtaking.track(id)
    const { exclusive, shared } = resourcesOf(posting)
    if (exclusive.length + shared.length > 0) await asking(what, () => folders.prepare([...exclusive, ...shared]))
    const bytes = this.#encoded(posting)
    const lock = encodeLock(who, encoding)
    while (true) {
      const { session, version, fenceBase } = await this.#openGate(what)
      const granted = ({ session, zxid }: Done) => ({
        ...{ session, revision: revision + 1, fence: fenceBase + zxid, mark: zxid },
      })
      try {
        return await committer.commit<GrantedIn>({
          what,
          steps: transactions.claim(layout, id, { revision, bytes, lock, posting, shared: this.#shared }),
          touches: [...touches({ id }), ...grants(posting)],
          // Another session may be with servers that have lost what this base was seen with.
          session,
          guard: transactions.gateCheck(layout, version),
          overtaken: () => overtaken(what, tracked.overtakenBy),
          mend: (step, error) => this.#missingResource(step, error),
          done: granted,
          recovered: granted,
          refused: (error, step) => (isGateMoved(error, step) ? new Taken() : notClaimed(what, error, step)),
        })
      } catch (error) {
        // Nothing was done: the gate was written meanwhile, or the session ended before the claim was sent.
        if (!(error instanceof Taken || error instanceof ClaimLost)) throw error
        await asking(what, () => gate.read())
      }
    }
  }

  /** The gate as claims of this session may use it. @throws Unclaimable while the board is paused */
  async #openGate(what: string): Promise<SeenGate & { readonly session: bigint }> {
    const { gate, session: current } = this.#options
    let seen = gate.seen ?? (await asking(what, () => gate.read()))
    if (!current()) seen = await asking(what, () => gate.read())
    const session = current()
    if (!session) throw new NotConnected(`${what}: nothing was done: there is no session`)
    const closed = () => new Unclaimable(`${what}: the board is paused`)
    if (seen.paused) throw closed()
    const examined = await this.#fences.examined(seen, { session: session.id, zxid: session.newestZxid })
    if (examined.paused) throw closed()
    return { ...examined, session: session.id }
  }

  async #raiseFence(seen: SeenGate, fenceBase: bigint): Promise<SeenGate> {
    return (await this.#writeGate('raising the fence', seen, { ...seen, fenceBase })) ?? this.#readGate()
  }

  #readGate(): Promise<SeenGate> {
    return asking('reading the gate', () => this.#options.gate.read())
  }

  /** Undefined where it is not as it was seen any more. */
  #writeGate(what: string, { version }: SeenGate, record: GateRecord): Promise<SeenGate | undefined> {
    const { layout, committer, gate } = this.#options
    return committer
      .commit<SeenGate>({
        what,
        steps: transactions.gate(layout, encodeGate(record), { version }),
        touches: [{ name: 'gate', mode: 'alone' }],
        done: ({ results: [set] }) =>
          gate.wrote({ ...record, version: set && 'version' in set ? set.version : version + 1 }),
        // Somebody else may have set it since.
        recovered: () => this.#readGate(),
        refused: (error) => (error instanceof BadVersion || error instanceof NoNode ? new Taken() : error),
      })
      .catch((error: unknown) => {
        if (error instanceof Taken) return undefined
        throw error
      })
  }

  settle(settlement: Settlement, session: bigint): Promise<void> {
    const { kind, posting, id } = settlement
    const what = `${kind} of ${named(posting)}`
    const settling = () =>
      this.#options.committer.commit<void>({
        ...effect(what, this.#settleSteps(settlement)),
        touches: touches({ id, key: posting.key }),
        session,
        refused: (error, step) => notSettled(what, error, step),
      })
    // Of a job that was asked to be cancelled before, the request goes in the same transaction.
    if (settlement.kind === 'abandon' || settlement.cancelRequested) return settling()
    return this.#options.lateCancellations.ending(id, settling)
  }

  discard(discarded: Discard): Promise<void> {
    const { id, posting } = discarded
    const what = `removal of ${named(posting)}`
    const { layout, committer } = this.#options
    const discarding = () =>
      committer.commit<void>({
        ...effect(what, transactions.discard(layout, id, { ...discarded, entry: this.#trashEntry(discarded) })),
        touches: touches({ id, key: posting.key }),
        refused: (error, step) => inTrashAlready(what, id, error, step) ?? notClaimed(what, error, step),
      })
    return discarded.cancelRequested ? discarding() : this.#options.lateCancellations.ending(id, discarding)
  }

  /** Into the trash. Another may be faster: then it is there. */
  async move(marked: Marked): Promise<void> {
    const { layout, committer } = this.#options
    const what = `moving ${marked.id} into the trash`
    await committer
      .commit({
        ...effect(what, transactions.move(layout, marked)),
        touches: touches(marked),
        refused: (error, step) => {
          const gone = error instanceof NoNode || error instanceof BadVersion
          if (gone && step !== 'guard' && step?.about === 'posting') return new Taken()
          return inTrashAlready(what, marked.id, error, step) ?? error
        },
      })
      .catch((error: unknown) => {
        // Of those who move it at once, all but one find the posting gone.
        if (!(error instanceof Taken)) throw error
      })
  }

  async cancel({ id, job, who, reason }: CancelRequest): Promise<void> {
    const { layout, committer, encoding } = this.#options
    const what = `cancellation of ${job}`
    const asked = (error: ZooKeeperError, step: Step | 'guard' | undefined) =>
      error instanceof NodeExists && step !== 'guard' && step?.about === 'cancel'
    await committer
      .commit({
        ...effect(what, transactions.cancel(layout, id, encodeCancellation({ who, reason }, encoding))),
        touches: touches({ id }),
        refused: (error, step) => {
          if (asked(error, step)) return new Taken()
          return notCancelled(what, error, step)
        },
      })
      .catch((error: unknown) => {
        if (!(error instanceof Taken)) throw error
      })
  }

  /**
   * What the gate says of fences is kept: it is written as it was seen, or read and written again.
   *
   * @throws InvalidState for a gate whose base cannot be read
   */
  async setGate({ paused }: GateRequest): Promise<SeenGate> {
    const { gate, layout } = this.#options
    const what = paused ? 'pause of the board' : 'resumption of the board'
    let seen = gate.seen ?? (await asking(what, () => gate.read()))
    while (true) {
      assertIntact(seen, layout.gate)
      const { fenceBase } = seen
      const written = await this.#writeGate(what, seen, { paused, fenceBase })
      if (written) return written
      seen = await asking(what, () => gate.read())
    }
  }

  async restore(entry: TrashedEntry, posting: Posting): Promise<void> {
    const { layout, committer, numbers } = this.#options
    const what = `restoration of ${named(posting)}`
    const bytes = this.#encoded(posting)
    const path = numbers.next()
    const created = { bytes, ...(path === undefined ? {} : { path }) }
    const restoring = committer.commit({
      ...effect(what, transactions.restore(layout, entry, created, this.#key(posting))),
      touches: touches({ id: entry.id, key: posting.key }),
      refused: (error, step) => {
        if (isTaken(error, step) && step !== 'guard' && step?.about === 'posting') return new Taken()
        if (isTaken(error, step))
          return new Duplicate(`${what}: its key is taken on the board; restore it when the key is free`, {
            cause: error,
          })
        return notInTrash(what, error)
      },
    })
    await restoring.catch((error: unknown) => {
      if (!(error instanceof Taken)) throw error
      // A number of our own that another poster has, too: the next one is free.
      return this.restore(entry, posting)
    })
  }

  purge({ id, revision, posting }: TrashedEntry): Promise<void> {
    const what = `purge of ${named(posting)}`
    const { layout, committer } = this.#options
    return committer.commit({
      ...effect(what, transactions.purge(layout, { id, revision })),
      touches: touches({ id }),
      refused: (error) => notInTrash(what, error),
    })
  }

  /** Where the answer to a post was lost: the job may have been claimed, done or trashed by others since. */
  async #postedIn(
    zxid: bigint,
    { uuid, bytes, path }: { uuid: string; bytes: number; path: string | undefined },
  ): Promise<Posted> {
    const { layout, lostPosts } = this.#options
    const id = path === undefined ? {} : { id: layout.idOf(path) }
    const found = await asking('looking for a job just posted', () => lostPosts.find({ zxid, uuid, ...id }))
    return { created: true, revision: 0, order: zxid, bytes, ...found }
  }

  /** Every resource is some steps of the claim, each with the board's ACL: those have to fit, too. @throws PayloadTooLarge */
  #assertClaimable(posting: Posting, bytes: Uint8Array): void {
    if (!posting.resources) return
    const { layout, committer } = this.#options
    const at = { revision: 0, bytes, lock: new Uint8Array(), posting, shared: this.#shared }
    const size = committer.sizeOf(transactions.claim(layout, layout.idOf(layout.newPosting), at))
    if (size <= LARGEST_CLAIM) return
    throw new PayloadTooLarge(
      `${named(posting)}: a claim of it, with all of its resources, would be ${size} bytes, this board takes ${LARGEST_CLAIM}; ` +
        'name fewer resources, or put large data elsewhere',
    )
  }

  /** A key that is there is taken, unless it is as it was when it was judged to be left behind. */
  #doubtOf({ name, takenOverAt }: { readonly name: string; readonly takenOverAt?: number }): Doubt {
    const judge = ({ error, stat }: Reading<ReadData>) => {
      if (error) return undefined
      return stat.version === takenOverAt ? undefined : new Taken()
    }
    return { op: op.getData(this.#options.layout.key(name)), judge }
  }

  /** Its folder was swept away since it was last seen. */
  #missingResource({ resource }: Step, error: ZooKeeperError): (() => Promise<unknown>) | undefined {
    if (resource === undefined || !(error instanceof NoNode)) return undefined
    return () => this.#options.folders.make(resource)
  }

  #key(
    posting: Posting,
    takenOverAt?: number,
  ): { readonly name: string; readonly bytes: Uint8Array; readonly takenOverAt?: number } | undefined {
    if (posting.key === undefined) return undefined
    const bytes = encodeKey(posting.uuid, this.#options.encoding)
    return { name: posting.key, bytes, ...(takenOverAt === undefined ? {} : { takenOverAt }) }
  }

  #settleSteps(settlement: Settlement): readonly Step[] {
    const { layout } = this.#options
    const { id, posting } = settlement
    const at = { ...settlement, shared: this.#shared }
    switch (settlement.kind) {
      case 'consume':
        return transactions.consume(layout, id, at)
      case 'abandon':
        return transactions.abandon(layout, id, { ...at, bytes: this.#encoded(posting) })
      case 'trash':
        return transactions.trash(layout, id, { ...at, entry: this.#trashEntry(settlement) })
    }
  }

  /** With TaskFlow, whose JSON is written only there. */
  get #shared(): boolean {
    return this.#options.encoding === 'json'
  }

  #encoded(posting: Posting, options: { limit: number } = { limit: FRAME }): Uint8Array {
    return writePosting(posting, { encoding: this.#options.encoding, ...options })
  }

  #trashEntry(entry: Verdict & { posting: Posting; who: string }): Uint8Array {
    return encodeTrash({ ...entry, at: new Date() }, { encoding: this.#options.encoding, limit: FRAME })
  }
}

/** Internal: the answer is to be looked at, it is no error yet. */
class Taken extends Error {}

/** Returns why a claim is refused that a change of its job has overtaken; undefined where nothing is known against it. */
function overtaken(what: string, by: 'change' | 'end' | undefined): Error | undefined {
  if (by === undefined) return undefined
  return by === 'end'
    ? new NotFound(`${what}: it has left the board`)
    : new Unclaimable(`${what}: it was claimed or changed by another`)
}

function isGateMoved(error: ZooKeeperError, step: Step | 'guard' | undefined): boolean {
  return step === 'guard' && (error instanceof BadVersion || error instanceof NoNode)
}

/** A transaction of which nothing but its effect is wanted. */
function effect(
  what: string,
  steps: readonly Step[],
): Pick<Transaction<void>, 'what' | 'steps' | 'done' | 'recovered'> {
  return { what, steps, done: () => undefined, recovered: () => undefined }
}

/** For errors. */
export function named(posting: Posting): string {
  return `job ${posting.uuid} (${posting.name})`
}

function touches({ id, key }: { id?: string; key?: string | undefined }): Touch[] {
  return [
    ...(id === undefined ? [] : [{ name: id, mode: 'alone' } as const]),
    ...(key === undefined ? [] : [{ name: `key ${key}`, mode: 'alone' } as const]),
  ]
}

function grants(posting: Posting): Touch[] {
  const { exclusive, shared } = resourcesOf(posting)
  const touch = (mode: Touch['mode']) => (name: string) => ({ name: `resource ${name}`, mode })
  return [...exclusive.map(touch('alone')), ...shared.map(touch('together'))]
}
