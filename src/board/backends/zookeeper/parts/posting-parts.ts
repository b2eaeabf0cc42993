/** The parts of transactions that create a posting (post, write, restoration): the posting with its number, its key, its dependencies. */

import { PayloadTooLarge } from '../../../../core/errors.ts'
import {
  BadVersion,
  NodeExists,
  NoNode,
  op,
  type ReadData,
  type ReadResult,
  type ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type { Posted } from '../../../contract/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { Dependency } from '../../../model/dependencies.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { MAX_POSTING_BYTES, type PostingLimit, toCountedBytes } from '../../../model/posting/posting-codec.ts'
import type { TransactionCommitter } from '../commit/committer.ts'
import { type Again, TRY_AGAIN, type TransactionPart } from '../commit/parts.ts'
import type { SequenceNumbers } from '../commit/sequence-numbers.ts'
import type { Precheck, RefusalMeaning, RefusedStep, StepSubject, TransactionStep } from '../commit/transaction.ts'
import { claimSteps, createStep, keyStep, permitSteps } from '../commit/transactions.ts'
import type { BoardKind } from '../store/board-kind.ts'
import { encodeKey } from '../store/encoding.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import type { LostPosts } from '../store/lost-posts.ts'
import { translateErrors } from '../store/reader.ts'
import type { DependencyParts } from './dependency-parts.ts'

/** The settings on which the maximum size of a request depends, for errors. */
export const SIZE_SETTING = "maxRequestBytes; the servers' jute.maxbuffer"

export interface PostingPartsOptions {
  readonly layout: ZooKeeperLayout
  readonly kind: BoardKind
  readonly committer: Pick<TransactionCommitter, 'maxBytes' | 'sizeOf'>
  readonly numbers: SequenceNumbers
  readonly dependencies: Pick<DependencyParts, 'postPart'>
  readonly lostPosts: LostPosts
}

/** A posting to create. */
export interface PostingToCreate<T> {
  readonly posting: Posting
  readonly bytes: Uint8Array
  readonly after: readonly Dependency[]
  /** The revision at which the transaction takes the key over; undefined for a key that it creates. */
  readonly takeOver: number | undefined
  /** Returns the answer if the key is taken. */
  readonly onKeyTaken: () => T | Promise<T>
  /** Returns the answer if jobs on which the job would depend have left the board. */
  readonly onGone: (gone: readonly string[]) => T
}

/** The parts that create a posting. */
export interface CreatedPosting<T> {
  /** The path, if this client has numbered it. */
  readonly path: string | undefined
  readonly steps: readonly TransactionStep[]
  readonly parts: readonly TransactionPart<T>[]
}

/** A posted job, as far as it is known before the answer. */
export interface SentPost {
  readonly uuid: string
  readonly path: string | undefined
  /** The counted size of the posting. */
  readonly bytes: number
}

export class PostingParts {
  readonly #options: PostingPartsOptions

  constructor(options: PostingPartsOptions) {
    this.#options = options
  }

  /** Encodes the posting of a job that is posted. @throws PayloadTooLarge; InvalidArgument for details that the encoding cannot hold */
  encodePosted(posting: Posting): Uint8Array {
    const bytes = this.#options.kind.encodePosting(posting, this.#postLimit)
    this.assertClaimable(posting, bytes)
    return bytes
  }

  /** Encodes a posting with attempts or a failure, which may make it larger than a new posting. @throws PayloadTooLarge */
  encode(posting: Posting): Uint8Array {
    return this.#options.kind.encodePosting(posting, this.limit)
  }

  /** The maximum size of a posting in a request. */
  get limit(): PostingLimit {
    return { limit: this.#options.committer.maxBytes, setting: SIZE_SETTING }
  }

  /** Returns the step that creates the posting of a job that nothing names, and its path if this client numbers it. */
  createStep(bytes: Uint8Array): { readonly path: string | undefined; readonly step: TransactionStep } {
    const path = this.#options.numbers.next()
    return { path, step: createStep(this.#options.layout, { bytes, path }) }
  }

  /** Returns whether a step that creates a posting was refused because another program has taken its number, which is not used again. */
  noteRefused(error: ZooKeeperError, step: RefusedStep): boolean {
    if (!(error instanceof NodeExists)) return false
    this.#options.numbers.noteRefused(error, step)
    return true
  }

  /** Returns the parts that create a posting. */
  create<T>(request: PostingToCreate<T | Again>): CreatedPosting<T | Again> {
    const { layout, numbers, dependencies } = this.#options
    const { posting, bytes, after } = request
    // Dependencies and windows of keys name the job, so its number has to be known.
    const path = after.length === 0 && posting.keyFor === undefined ? numbers.next() : numbers.own()
    const step = createStep(layout, { bytes, path })
    const created = this.#numbered(step)
    if (posting.key === undefined && after.length === 0) return { path, parts: [created], steps: [step] }
    const key = posting.key === undefined ? undefined : this.#keyPart(posting.key, path, request)
    const waits =
      after.length === 0 || path === undefined
        ? undefined
        : dependencies.postPart(layout.toJobId(path), after, request.onGone)
    const parts = [created, key, waits].filter((part) => part !== undefined)
    return { path, parts, steps: parts.flatMap(({ steps = [] }) => steps) }
  }

  /** Returns the step that creates the callback of a batch, in the transaction of the last count. */
  toCallbackStep(posting: Posting): TransactionStep {
    const { layout, numbers } = this.#options
    return createStep(layout, { bytes: this.encode(posting), path: numbers.next() })
  }

  /** Returns the result of a post. */
  toPosted({ path, bytes }: Pick<SentPost, 'path' | 'bytes'>, created: string | undefined, zxid: bigint): Posted {
    const { layout, numbers } = this.#options
    const found = created ?? path
    if (created !== undefined) numbers.note(created)
    return {
      ...{ created: true, revision: 0, order: zxid, bytes },
      ...(found === undefined ? {} : { id: layout.toJobId(found) }),
    }
  }

  /** Finds a posted job whose answer was lost: other clients may have claimed, consumed or trashed it since. */
  async recoverPosted({ uuid, bytes, path }: SentPost, zxid: bigint): Promise<Posted> {
    const { layout, lostPosts } = this.#options
    const id = path === undefined ? {} : { id: layout.toJobId(path) }
    const found = await translateErrors('reading a job that was just posted', () =>
      lostPosts.find({ zxid, uuid, ...id }),
    )
    return { created: true, revision: 0, order: zxid, bytes, ...found }
  }

  /** Returns the size of an encoded posting as it is counted against memory limits. */
  toCounted(bytes: Uint8Array): number {
    return toCountedBytes(bytes, this.#options.kind.encoding)
  }

  /**
   * Refuses a posting whose claim would be too large: every resource adds some steps, each with the board's ACL.
   * @throws PayloadTooLarge
   */
  assertClaimable(posting: Posting, bytes: Uint8Array = this.encode(posting)): void {
    if (!posting.resources) return
    const { layout, committer, kind } = this.#options
    const id = layout.toJobId(layout.newPosting)
    const at = { revision: 0, bytes, lock: new Uint8Array(), kind, parts: permitSteps(layout, id, posting) }
    const size = committer.sizeOf(claimSteps(layout, id, at))
    const most = withoutReserve(committer.maxBytes)
    if (size <= most) return
    throw new PayloadTooLarge(
      `${toJobName(posting)}: its claim, with all of its resources, would have ${size} bytes; this board accepts ${most} (${SIZE_SETTING}); ` +
        'name fewer resources, or put large data elsewhere',
    )
  }

  /** Returns the key of a posting as a transaction writes it. @param window.id the id of its job */
  toKeyRecord(
    { uuid }: Pick<Posting, 'uuid'>,
    window: { readonly id: string; readonly ms: number } | undefined,
  ): Uint8Array {
    return encodeKey({ uuid, ...(window ? { window } : {}) }, this.#options.kind.encoding)
  }

  /** Returns the part of a step that creates a posting: a number that another program has taken is not used again. */
  #numbered(step: TransactionStep): TransactionPart<Again> {
    return {
      steps: [step],
      onRefused: (error) => (this.noteRefused(error, step) ? TRY_AGAIN : undefined),
    }
  }

  #keyPart<T>(
    name: string,
    path: string | undefined,
    { posting, takeOver, onKeyTaken }: PostingToCreate<T>,
  ): TransactionPart<T> {
    const { layout } = this.#options
    const { keyFor: ms } = posting
    const window = ms === undefined || path === undefined ? undefined : { id: layout.toJobId(path), ms }
    const key = { name, bytes: this.toKeyRecord(posting, window) }
    const taken: RefusalMeaning<T> = { answer: onKeyTaken }
    const precheck: Precheck<T> = {
      op: op.getData(layout.key(name)),
      // A key at the revision to take over is free.
      judge: ({ error, stat }: ReadResult<ReadData>) => (error || stat.version === takeOver ? undefined : taken),
    }
    return {
      steps: [keyStep(layout, takeOver === undefined ? key : { ...key, takenOverAt: takeOver })],
      touches: [touchedKey(name)],
      prechecks: [precheck],
      onRefused: (error) => (isKeyTaken(error) ? taken : undefined),
    }
  }

  /** The maximum size of a job that is posted: a request has room for it twice, since attempts and reasons are added later. */
  get #postLimit(): PostingLimit {
    const { maxBytes } = this.#options.committer
    const half = Math.floor((maxBytes - Math.min(32 * 1_024, maxBytes / 16)) / 2)
    return half < MAX_POSTING_BYTES ? { limit: half, setting: SIZE_SETTING } : { limit: MAX_POSTING_BYTES }
  }
}

/** Returns the name of a key, as transactions touch it. */
export function touchedKey(name: string): { readonly name: string; readonly mode: 'alone' } {
  return { name: `key ${name}`, mode: 'alone' }
}

/** Returns the name of a job, as transactions touch it. */
export function touchedJob(id: string): { readonly name: string; readonly mode: 'alone' } {
  return { name: id, mode: 'alone' }
}

/** Returns whether the step that takes a key was refused because of another job. */
export function isKeyTaken(error: ZooKeeperError): boolean {
  return error instanceof NodeExists || error instanceof BadVersion || error instanceof NoNode
}

/** Returns the maximum size minus a reserve for attempts, which are added later, and for sizes that are estimated too low. */
export function withoutReserve(maxBytes: number): number {
  return maxBytes - Math.min(64 * 1_024, maxBytes / 16)
}

/** Returns the name of a job for errors. */
export function toJobName(posting: Posting): string {
  return `job ${posting.uuid} (${posting.name})`
}

/** Returns the error for a refused claim, discard or replacement. */
export function toClaimError(what: string, cause: ZooKeeperError, step: RefusedStep): Error {
  if (isAbout(step, 'posting') && cause instanceof NoNode) return refusalError(what, { why: 'gone' }, cause)
  const isRaced = cause instanceof BadVersion || cause instanceof NodeExists
  return isRaced ? refusalError(what, { why: 'changed' }, cause) : cause
}

/** Returns whether the refused step is about this subject. */
export function isAbout(step: RefusedStep, subject: StepSubject): boolean {
  return step !== undefined && step !== 'guard' && step.subject === subject
}

/**
 * Returns the error for a refused settle. Only the posting and the lock prove that a claim is lost; a refusal for
 * another reason does not change the claim.
 */
export function toSettleError(what: string, cause: ZooKeeperError, step: RefusedStep): Error {
  const isGone = cause instanceof BadVersion || cause instanceof NoNode
  const isLost = isGone && (isAbout(step, 'posting') || isAbout(step, 'lock'))
  return isLost ? refusalError(what, { why: 'lost' }, cause) : cause
}
