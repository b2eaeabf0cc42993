/**
 * Changes the board. Concurrent requests are sent together, as one call of a function and one transaction; each element has
 * its own answer. Posts, claims and all other requests use one connection each.
 */

import { BatchCommit, type CommitResult } from '../../../core/async/group-commit.ts'
import { encode } from '../../../core/codec.ts'
import {
  InvalidArgument,
  InvalidState,
  JobboardError,
  NotConnected,
  NotFound,
  Unclaimable,
  WritesRefused,
} from '../../../core/errors.ts'
import { newUuid } from '../../../core/uuid.ts'
import { advisoryKey, decodeText, encodeText } from '../../../postgres/index.ts'
import type {
  CancelRequest,
  ClaimGrant,
  ClaimRequest,
  DiscardRequest,
  GateRequest,
  Posted,
  PostedInTransaction,
  PostRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Replaced,
  ReplaceRequest,
  RestoreOptions,
  RestoreOutcome,
  Settlement,
  TrashedEntry,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { encodeEndedJob } from '../../model/ended-job.ts'
import { limitReachedError } from '../../model/limits.ts'
import { duplicateRestoreError } from '../../model/post-batch.ts'
import {
  encodeLife,
  encodePosting,
  MAX_POSTING_BYTES,
  type Posting,
  type SqlClient,
  toCountedBytes,
} from '../../model/posting.ts'
import { toResourceWants } from '../../model/resources.ts'
import { type BatchRefusal, toBatchRefusalError } from './batch-rows.ts'
import { assertInTransaction, boardIdentity, toPostName } from './caller-transaction.ts'
import { DEPENDENCY_BYTES, toAfterParameters, toDependencyParameters } from './dependency-rows.ts'
import { translateErrors } from './errors.ts'
import type { FunctionCaller, FunctionResult } from './function-caller.ts'
import { toHistoryParameters } from './history-rows.ts'
import { jobId, jobNumber, textDigest } from './records.ts'
import type { ResourceLocks } from './resource-locks.ts'
import type { PostgresSession } from './session.ts'

/** Limits of one transaction, so that the next batch does not wait long. */
const MAX_BATCH = { items: 500, bytes: 2 * 1_024 * 1_024 }
/** The bytes that a lock on a resource counts as in a batch: the server has room for a few thousand locks at once. */
const LOCK_COST_BYTES = 4 * 1_024

export interface BoardWriterOptions {
  readonly schema: string
  readonly board: number
  readonly posts: FunctionCaller
  readonly claims: FunctionCaller
  readonly others: FunctionCaller
  readonly session: () => PostgresSession | undefined
  /** Holds the resources of claims as locks of the database. */
  readonly locks: Pick<ResourceLocks, 'take' | 'release'>
  /** Called when the server no longer knows the session. */
  readonly onSessionOver: (session: PostgresSession) => void
  /** Resolves when the sink has received everything committed before the call. */
  readonly catchUp: () => Promise<void>
  /** Called when a job has left the board; the sink knows it already, unless the job was removed by hand. */
  readonly onGone: (id: string) => void
  /** Called with the doomed jobs: they were cancelled before their first run, because another job ended. */
  readonly onDoomed: (ids: readonly string[]) => void
  /** Returns the status of posted jobs that have left the board before their lost answer was recovered. */
  readonly statusOf: (jobs: readonly number[]) => Promise<ReadonlyMap<number, 'gone' | 'trashed'>>
  /** Returns the value of {@link boardIdentity} in the database of the board. */
  readonly identity: () => Promise<string>
}

interface Encoded<T> {
  readonly request: T
  readonly bytes: Uint8Array
}

export class BoardWriter {
  readonly #options: BoardWriterOptions
  #knownIdentity: string | undefined
  readonly #posts: BatchCommit<Encoded<PostRequest>, Posted>
  readonly #claims: BatchCommit<Encoded<ClaimRequest>, ClaimGrant>
  /** Whether claims of this process may hold slots. */
  #hasTakenSlots = false
  readonly #settles: BatchCommit<Encoded<Settlement>, void>

  constructor(options: BoardWriterOptions) {
    this.#options = options
    this.#posts = new BatchCommit<Encoded<PostRequest>, Posted>({
      commit: (batch) => this.#postAll(batch),
      bytesOf: ({ bytes, request: { after = [] } }) => bytes.length + DEPENDENCY_BYTES * after.length,
      limits: MAX_BATCH,
    })
    this.#claims = new BatchCommit({
      commit: (batch) => this.#claimAll(batch),
      bytesOf: ({ bytes, request }) => bytes.length + LOCK_COST_BYTES * toGrantParameters(request.posting).length,
      limits: MAX_BATCH,
      keyOf: ({ request }) => request.id,
    })
    this.#settles = new BatchCommit<Encoded<Settlement>, void>({
      commit: (batch) => this.#settleAll(batch),
      bytesOf: ({ bytes, request: { history } }) => bytes.length + (history?.job.results?.length ?? 0),
      limits: MAX_BATCH,
      keyOf: ({ request }) => request.id,
    })
  }

  async idle(): Promise<void> {
    await Promise.all([this.#posts.idle, this.#claims.idle, this.#settles.idle])
  }

  async post(request: PostRequest): Promise<Posted> {
    const bytes = encodePosting(request.posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES })
    return this.#afterCatchUp(this.#posts.add({ request, bytes }))
  }

  /** Posts with one statement in a transaction of the caller. The answer is not kept: its recovery is up to the caller. */
  async postInTransaction(client: SqlClient, request: PostRequest): Promise<PostedInTransaction> {
    const { posting } = request
    const { schema, board } = this.#options
    const bytes = encodePosting(posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES })
    await assertInTransaction(client, { what: `post of ${toJobName(posting)}`, schema })
    const receipt = newUuid()
    const values = [receipt, board, ...toPostParameters([{ request, bytes }])]
    const places = values.map((_, index) => `$${index + 1}`)
    places.splice(1, 0, '1')
    // Without this check, a client of another database with the same schema would post the job on another board.
    const isHere = `${boardIdentity(schema)} = $${values.push(await this.#identity())}`
    const text = `SELECT CASE WHEN ${isHere} THEN ${schema}.post(${places.join(', ')})::text END AS answer, pg_current_xact_id()::text AS transaction`
    const { rows } = await translateErrors(`post of ${toJobName(posting)}`, () => client.query(text, values))
    const { answer, transaction } = rows[0] ?? {}
    if (answer === null)
      throw new InvalidArgument(
        `post of ${toJobName(posting)}: client is connected to another database than the board; nothing was posted`,
      )
    const [result] = toPostResults([{ request, bytes }], JSON.parse(String(answer)) as PostAnswer, NO_STATUSES)
    if (!result) throw new InvalidState(`post of ${toJobName(posting)}: the server did not answer`)
    if ('error' in result) throw result.error
    const made = result.value
    if ('gone' in made) await this.#assertGone(made.gone, posting)
    return { ...made, transaction: toPostName({ transaction: String(transaction), receipt }) }
  }

  async #identity(): Promise<string> {
    this.#knownIdentity ??= await this.#options.identity()
    return this.#knownIdentity
  }

  /** Checks that jobs which the caller's transaction does not see are not on the board. @throws InvalidState */
  async #assertGone(ids: readonly string[], posting: Posting): Promise<void> {
    const gone = await this.#options.statusOf(ids.map(jobNumber))
    const id = ids.find((each) => !gone.has(jobNumber(each)))
    if (id === undefined) return
    throw new InvalidState(
      `post of ${toJobName(posting)}: it is to be run after ${id}, which the transaction does not see, because it was posted after the ` +
        'snapshot of the transaction: use the isolation level READ COMMITTED, or post that job first',
    )
  }

  async claim(request: ClaimRequest): Promise<ClaimGrant> {
    try {
      return await this.#afterCatchUp(this.#claims.add({ request, bytes: encodeLife(request.posting, 'msgpack') }))
    } catch (error) {
      if (error instanceof NotFound) this.#options.onGone(request.id)
      throw error
    }
  }

  async settle(request: Settlement): Promise<void> {
    const bytes = request.kind === 'consume' ? NO_BYTES : encodeLife(request.posting, 'msgpack')
    return this.#afterCatchUp(this.#settles.add({ request, bytes }))
  }

  /** Replaces the posting of a job that was never claimed: a claim would have changed its revision. */
  async replace({ id, revision, posting, window }: ReplaceRequest): Promise<Replaced> {
    const what = `replacement of ${toJobName(posting)}`
    const bytes = encodePosting(posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES })
    const { name, priority, onOwnerLost = null, delay = null } = posting
    const key = toKeyDigest(posting)
    const values = [jobNumber(id), revision, bytes, encodeText(name), priority, key, onOwnerLost, delay, window ?? null]
    const answer = await this.#callOnce(what, 'replace_posting', values)
    if (answer === 'gone') throw refusalError(what, { why: 'gone' })
    if (answer === 'changed') throw refusalError(what, { why: 'changed' })
    return { revision: revision + 1, bytes: toCountedBytes(bytes, 'msgpack') }
  }

  /** Ends the claim of another owner. Its session still has the locks of its resources, and frees them when it receives the change. */
  async release({ id, revision, posting }: ReleaseRequest): Promise<ReleaseOutcome> {
    const values = [jobNumber(id), revision, encodeLife(posting, 'msgpack')]
    const answer = await this.#callOnce(`release of ${toJobName(posting)}`, 'release', values)
    return answer as ReleaseOutcome
  }

  async discard({ id, revision, posting, who, reason, failure, history, at }: DiscardRequest): Promise<void> {
    const what = `removal of ${toJobName(posting)}`
    const life = encodeLife(posting, 'msgpack')
    const parameters = [encodeText(who), encodeText(reason), failure ? encode(failure, 'msgpack') : null]
    const added = history ? [encodeEndedJob(history.job), history.keep] : [null, null]
    const answer = await this.#callOnce(what, 'discard', [
      ...[jobNumber(id), revision, life, ...parameters, ...added],
      at?.getTime() ?? null,
    ])
    this.#reportDoomed(answer)
    if (answer === 'gone') throw refusalError(what, { why: 'gone' })
    if (answer === 'changed') throw refusalError(what, { why: 'changed' })
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    if (request.kind === 'gate') {
      const what = request.paused ? 'pause of the board' : 'resumption of the board'
      await this.#callOnce(what, 'set_gate', [request.paused])
      return
    }
    const { id, job, who, reason } = request
    const what = `cancellation of ${job}`
    const answer = await this.#callOnce(what, 'cancel', [jobNumber(id), encodeText(who), encodeText(reason)])
    if (answer === 'gone') throw refusalError(what, { why: 'gone' })
  }

  async restore({ id }: TrashedEntry, posting: Posting, { after = [] }: RestoreOptions = {}): Promise<RestoreOutcome> {
    const what = `restoration of ${toJobName(posting)}`
    const { priority, onOwnerLost = null } = posting
    const life = encodeLife(posting, 'msgpack')
    const answer = await this.#callOnce(what, 'restore', [
      jobNumber(id),
      life,
      priority,
      toKeyDigest(posting),
      onOwnerLost,
      ...toAfterParameters(after),
      posting.keyFor ?? null,
    ])
    if (answer === 'taken') throw refusalError(what, { why: 'key' })
    if (answer === 'duplicate') throw duplicateRestoreError(posting.batch ?? '', posting)
    if (answer === 'gone') throw notInTrashError(what)
    const { gone }: { readonly gone?: readonly number[] } = Object(answer)
    return gone === undefined ? { restored: true } : { restored: false, gone: gone.map(jobId) }
  }

  async purge({ id, posting }: TrashedEntry): Promise<void> {
    const what = `purge of ${toJobName(posting)}`
    if ((await this.#callOnce(what, 'purge', [jobNumber(id)])) === 'gone') throw notInTrashError(what)
  }

  async #callOnce(what: string, name: string, values: readonly unknown[]): Promise<unknown> {
    return (await this.#afterCatchUp(this.#send(this.#options.others, { what, name, values }))).answer
  }

  /** Resolves after the sink has received the earlier changes; meanwhile the next batch is sent. */
  async #afterCatchUp<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } finally {
      await this.#options.catchUp()
    }
  }

  #send(
    requests: FunctionCaller,
    { what, name, values }: { what: string; name: string; values: readonly unknown[] },
  ): Promise<FunctionResult> {
    const { schema, board } = this.#options
    return requests.send({ what, call: `${schema}.${name}`, values: [board, ...values] })
  }

  // --- Posts ------------------------------------------------------------------------------------------------------

  #postAll(batch: readonly Encoded<PostRequest>[]): Promise<CommitResult<Posted>[]> {
    return retryEachAlone(batch, async (some) => {
      const postings = some.map(({ request }) => request.posting)
      const { answer, wasRecovered } = await this.#send(this.#options.posts, {
        what: describeBatch('post', postings),
        name: 'post',
        values: toPostParameters(some),
      })
      const posted = answer as PostAnswer
      const fates = wasRecovered ? await this.#options.statusOf(posted.ids) : NO_STATUSES
      return toPostResults(some, posted, fates)
    })
  }

  // --- Claims -----------------------------------------------------------------------------------------------------

  #claimAll(batch: readonly Encoded<ClaimRequest>[]): Promise<CommitResult<ClaimGrant>[]> {
    return retryEachAlone(batch, async (all) => {
      const { locks } = this.#options
      const locked = await locks.take(all.map(({ request }) => request))
      const asked = all.filter(({ request }) => !locked.has(request))
      const held = new Set(asked.map(({ request }) => request.id))
      try {
        const granted = asked.length > 0 ? await this.#claimLocked(asked) : []
        const results = new Map(asked.map((item, index) => [item.request, granted[index]]))
        for (const [{ id }, result] of results) if (result && 'value' in result) held.delete(id)
        return all.map(({ request }) => {
          const error = locked.get(request)
          return error ? { error } : (results.get(request) ?? { error: new Unclaimable('the claim has no answer') })
        })
      } finally {
        // What was not granted, or may not have been.
        await locks.release([...held])
      }
    })
  }

  async #claimLocked(batch: readonly Encoded<ClaimRequest>[]): Promise<CommitResult<ClaimGrant>[]> {
    const session = this.#options.session()
    const choices = batch.map(({ request }) => request)
    const what = describeBatch(
      'claim',
      choices.map(({ posting }) => posting),
    )
    if (!session) throw new NotConnected(`${what}: no session with the server; nothing was done, try again`)
    const grants = choices.flatMap(({ posting }, index) =>
      toGrantParameters(posting).map((grant) => ({ ...grant, index })),
    )
    const limits = choices.flatMap(({ limits }, index) => (limits?.wants ?? []).map((want) => ({ ...want, index })))
    this.#hasTakenSlots ||= limits.some(({ concurrency }) => concurrency !== undefined)
    const { answer } = await this.#send(this.#options.claims, {
      what,
      name: 'claim',
      values: [
        session.id,
        choices.map(({ id }) => jobNumber(id)),
        choices.map(({ revision }) => revision),
        choices.map(({ who }) => encodeText(who)),
        ...joinBytes(batch),
        grants.map(({ index }) => index + 1),
        grants.map(({ name }) => advisoryKey(name)),
        grants.map(({ name }) => encodeText(name)),
        grants.map(({ exclusive }) => exclusive),
        [...new Set(choices.flatMap(({ limits }) => (limits ? [limits.revision] : [])))],
        limits.map(({ index }) => index + 1),
        limits.map(({ key }) => encodeText(key)),
        limits.map(({ concurrency = null }) => concurrency),
        limits.map(({ rate }) => rate?.cost ?? null),
        limits.map(({ rate }) => rate?.burst ?? null),
        limits.map(({ rate }) => rate?.intervalMs ?? null),
      ],
    })
    const claimed = answer as ClaimAnswer
    if (claimed.over) this.#options.onSessionOver(session)
    return toClaimResults(claimed, choices, { ...this.#options, session })
  }

  // --- Settles ----------------------------------------------------------------------------------------------------

  #settleAll(batch: readonly Encoded<Settlement>[]): Promise<CommitResult<void>[]> {
    return retryEachAlone(batch, async (some) => {
      const session = this.#options.session()
      const ours = some.filter(({ request }) => request.session === session?.label)
      const lost = session && ours.length > 0 ? await this.#settleIn(session, ours) : new Set<Encoded<Settlement>>()
      return some.map((item) => {
        if (ours.includes(item) && !lost.has(item)) return { value: undefined }
        const { kind, posting } = item.request
        return { error: refusalError(`${kind} of ${toJobName(posting)}`, { why: 'lost' }) }
      })
    })
  }

  #reportDoomed(answer: unknown): void {
    const { doomed }: { readonly doomed?: readonly number[] | null } = Object(answer)
    if (doomed) this.#options.onDoomed(doomed.map((number) => jobId(String(number))))
  }

  async #settleIn(
    session: PostgresSession,
    items: readonly Encoded<Settlement>[],
  ): Promise<ReadonlySet<Encoded<Settlement>>> {
    const settlements = items.map(({ request }) => request)
    const postings = settlements.map(({ posting }) => posting)
    // A claim that follows this end at once must not find our locks.
    await this.#options.locks.release(settlements.map(({ id }) => id))
    const { answer } = await this.#send(this.#options.others, {
      what: describeBatch(settlements[0]?.kind ?? 'settle', postings),
      name: 'settle',
      values: [
        session.id,
        settlements.map(({ id }) => jobNumber(id)),
        settlements.map(({ revision }) => revision),
        settlements.map(({ kind }) => kind),
        ...joinBytes(items),
        settlements.map(({ posting: { delay = null } }) => delay),
        settlements.map(({ who }) => encodeText(who)),
        settlements.map((settlement) => (settlement.kind === 'trash' ? encodeText(settlement.reason) : null)),
        settlements.map((settlement) =>
          settlement.kind === 'trash' && settlement.failure ? encode(settlement.failure, 'msgpack') : null,
        ),
        this.#hasTakenSlots || postings.some(({ resources }) => resources !== undefined),
        ...toHistoryParameters(settlements),
      ],
    })
    const { over, lost } = answer as { over?: true; lost?: number[] }
    this.#reportDoomed(answer)
    if (over) this.#options.onSessionOver(session)
    return new Set(items.filter((_, index) => over || lost?.includes(index)))
  }
}

const NO_BYTES = new Uint8Array()
const NO_STATUSES: ReadonlyMap<number, 'gone' | 'trashed'> = new Map()

/** A post with its encoded posting. */
export type EncodedPost = Encoded<PostRequest>

type TakenKey = readonly [uuid: string | null, job: number | null, isInWindow?: true]

/** The answer of the function `post`. */
export interface PostAnswer {
  readonly ids: readonly number[]
  /** The uuid and number of the job that has the key, and whether it is in a window, by the index of the request. */
  readonly taken: Readonly<Record<string, TakenKey>> | null
  /** The numbers of the jobs on which a job would depend and which are not on the board, by the index of the request. */
  readonly gone: Readonly<Record<string, readonly number[]>> | null
  /** The reason why the batch of a job refuses it, by the index of the request. */
  readonly barred: Readonly<Record<string, BatchRefusal>> | null
}

/** Returns what became of each post. @param fates the status of jobs that have left the board since */
export function toPostResults(
  posts: readonly EncodedPost[],
  { ids, taken, gone, barred }: PostAnswer,
  fates: ReadonlyMap<number, 'gone' | 'trashed'>,
): CommitResult<Posted>[] {
  return posts.map(({ bytes, request: { posting } }, index) => {
    const number = ids[index] ?? 0
    const [holder, missing, why] = [taken?.[index], gone?.[index], barred?.[index]]
    if (missing !== undefined) return { value: { created: false, gone: missing.map(jobId) } }
    if (why) return { error: toBatchRefusalError(why, posting) }
    if (holder) return { value: toKeyTaken(holder) }
    return { value: toPosted(number, { bytes: toCountedBytes(bytes, 'msgpack'), fate: fates.get(number) }) }
  })
}

interface ClaimAnswer {
  /** Whether the session is over; with it, or with a paused board, nothing is granted. */
  readonly over?: true
  readonly paused?: true
  /** Whether the fences have reached their maximum, so that nothing is granted. */
  readonly outOfFences?: true
  readonly granted?: readonly number[] | null
  readonly fences?: readonly number[] | null
  readonly refused?: readonly (readonly [number, 'gone' | 'changed' | 'waits'])[] | null
  readonly busy?: readonly (readonly [number, 'busy', string])[]
  /** Whether the limits have another revision, so that nothing is granted. */
  readonly limits?: true
  /** The limits that were reached, by the index of the job. */
  readonly limited?: readonly (readonly [number, { readonly reached: string; readonly until: number | null }])[] | null
  /** The new arrival times of keys, by the index of the job. */
  readonly arrivals?: readonly (readonly [number, readonly (readonly [string, number])[]])[] | null
}

function toClaimResults(
  answer: ClaimAnswer,
  choices: readonly ClaimRequest[],
  { session, schema, board }: Pick<BoardWriterOptions, 'schema' | 'board'> & { readonly session: PostgresSession },
): CommitResult<ClaimGrant>[] {
  const { over, paused, outOfFences, granted, fences, refused, busy, limited, arrivals } = answer
  const fenceOf = new Map(granted?.map((at, index) => [at, fences?.[index] ?? 0]))
  const reasons = new Map(refused)
  const resources = new Map(busy?.map(([at, , resource]) => [at, resource]))
  const reached = new Map(limited)
  const arrivalsOf = new Map(arrivals)
  return choices.map(({ posting, revision, limits }, at) => {
    const what = `claim of ${toJobName(posting)}`
    const fence = fenceOf.get(at)
    if (fence !== undefined) {
      const taken = arrivalsOf.get(at)?.map(([key, arrivalMs]) => ({ key: decodeText(key), arrivalMs }))
      const grant = { session: session.label, revision: revision + 1, fence: BigInt(fence) }
      return { value: taken ? { ...grant, arrivals: taken } : grant }
    }
    if (over) return { error: new NotConnected(`${what}: the session with the server is over`) }
    if (paused) return { error: refusalError(what, { why: 'paused' }) }
    if (answer.limits) return { error: refusalError(what, { why: 'limits' }) }
    if (outOfFences)
      return {
        error: new WritesRefused(
          `${what}: the fences of schema ${schema} have reached their maximum, so no job can be claimed: the last value of the sequence ` +
            `${schema}.fences and fence_base of board ${board} in ${schema}.boards add up to 2^53 or nearly that; set the sequence (setval) so ` +
            'that the sum is larger than every granted fence and smaller than 2^53, or move to another schema',
        ),
      }
    if (reasons.get(at) === 'gone') return { error: refusalError(what, { why: 'gone' }) }
    if (reasons.get(at) === 'waits') return { error: refusalError(what, { why: 'waits' }) }
    const limit = reached.get(at)
    if (limit) {
      const want = limits?.wants.find(({ key }) => encodeText(key) === limit.reached)
      return { error: limitReachedError(what, want, limit.until ?? undefined) }
    }
    const resource = resources.get(at)
    if (resource !== undefined) return { error: refusalError(what, { why: 'resource', resource }) }
    return { error: refusalError(what, { why: 'changed' }) }
  })
}

function toPosted(number: number, { bytes, fate }: { bytes: number; fate: 'gone' | 'trashed' | undefined }): Posted {
  const made = { created: true, revision: 0, order: BigInt(number), bytes } as const
  if (fate) return { ...made, trashed: fate === 'trashed' }
  return { ...made, id: jobId(number) }
}

function toKeyTaken([uuid, job, isInWindow]: TakenKey): Posted {
  const window = isInWindow && job !== null ? { inWindowOf: jobId(job) } : {}
  return { created: false, ...(uuid === null ? {} : { uuid }), revision: job ?? 0, ...window }
}

/** Returns the arguments of the function `post` after the board. */
export function toPostParameters(items: readonly EncodedPost[]): unknown[] {
  const postings = items.map(({ request }) => request.posting)
  return [
    ...joinBytes(items),
    postings.map(({ uuid }) => uuid),
    postings.map(({ name }) => encodeText(name)),
    postings.map(({ priority }) => priority),
    postings.map(toKeyDigest),
    postings.map(({ onOwnerLost = null }) => onOwnerLost),
    postings.map(({ delay = null }) => delay),
    ...toDependencyParameters(items.map(({ request }) => request)),
    postings.map(({ keyFor = null }) => keyFor),
    ...toBatchParameters(items.map(({ request }) => request)),
  ]
}

/** Returns the batches of jobs, and the jobs on whose behalf they are posted; nothing where no job is in a batch. */
function toBatchParameters(posts: readonly PostRequest[]): [(string | null)[], (string | null)[]] {
  const isCounted = posts.some(({ posting }) => posting.batch !== undefined)
  if (!isCounted) return [[], []]
  return [
    posts.map(({ posting: { batch } }) => (batch === undefined ? null : encodeText(batch))),
    posts.map(({ member = null }) => member),
  ]
}

/** Joins the bytes of all items, and returns the length of each: an array of texts would be twice as long. */
function joinBytes(items: readonly { readonly bytes: Uint8Array }[]): [Buffer, number[]] {
  return [Buffer.concat(items.map(({ bytes }) => bytes)), items.map(({ bytes }) => bytes.length)]
}

function toGrantParameters(posting: Posting): { readonly name: string; readonly exclusive: boolean }[] {
  const { exclusive, shared } = toResourceWants(posting)
  return [
    ...exclusive.map((name) => ({ name, exclusive: true })),
    ...shared.map((name) => ({ name, exclusive: false })),
  ]
}

function toKeyDigest({ key }: Posting): Buffer | null {
  return key === undefined ? null : textDigest(key)
}

/** Sends a batch. If the server refuses it as a whole, sends each item alone, so that each has its own answer. */
async function retryEachAlone<T, R>(
  batch: readonly T[],
  work: (some: readonly T[]) => Promise<CommitResult<R>[]>,
): Promise<CommitResult<R>[]> {
  try {
    return await work(batch)
  } catch (error) {
    const refused = error instanceof JobboardError && error.code === 'JOBBOARD_POSTGRES'
    if (!refused || batch.length === 1) return batch.map(() => ({ error }))
  }
  const outcomes: CommitResult<R>[] = []
  for (const item of batch) outcomes.push(...(await work([item]).catch((error) => [{ error }])))
  return outcomes
}

/** Returns the name of a job for messages. */
function toJobName({ uuid, name }: Posting): string {
  return `job ${uuid} (${name})`
}

function describeBatch(verb: string, postings: readonly Posting[]): string {
  const [first] = postings
  const others = postings.length > 1 ? ` and ${postings.length - 1} more` : ''
  return `${verb} of ${first ? toJobName(first) : 'nothing'}${others}`
}

function notInTrashError(what: string): Error {
  return refusalError(what, { why: 'not in trash' })
}
