/**
 * Changes the board: what is asked for side by side goes out together, as one call of a function and one transaction, and
 * each element has an answer of its own. Posts, claims and everything else have a connection each.
 */

import { encode } from '../../core/codec.ts'
import {
  ClaimLost,
  Duplicate,
  JobboardError,
  NotConnected,
  NotFound,
  Unclaimable,
  WritesRefused,
} from '../../core/errors.ts'
import { GroupCommit, type Outcome } from '../../core/group-commit.ts'
import { advisoryKey, storable } from '../../postgres/index.ts'
import type {
  CancelRequest,
  Choice,
  Discard,
  GateRequest,
  Granted,
  Posted,
  PostedWithin,
  PostRequest,
  Settlement,
  TrashedEntry,
} from '../backend.ts'
import { countedBytes, encodeLife, encodePosting, type Posting, type SqlClient } from '../posting.ts'
import { resourcesOf } from '../resources.ts'
import { assertInTransaction } from './outbox.ts'
import { digestOf, jobId, jobNumber } from './records.ts'
import type { Answer, Requests } from './requests.ts'
import type { Session } from './session.ts'
import { asking } from './words.ts'

/** As large as a posting may be on ZooKeeper: what works on one board works on the others. */
const LARGEST_POST = 507_903
/** Of one transaction: what waits behind it should not wait for long. */
const MOST = { items: 500, bytes: 2 * 1_024 * 1_024 }
/** A lock on a resource counts as so many bytes: the server has room for some thousands of locks at once. */
const LOCK_BYTES = 4 * 1_024

export interface ChangerOptions {
  readonly schema: string
  readonly board: number
  readonly posts: Requests
  readonly claims: Requests
  readonly others: Requests
  readonly session: () => Session | undefined
  /** The server knows nothing of the session any more. */
  readonly over: (session: Session) => void
  readonly failed: (error: Error) => void
  /** Resolves when everybody here has heard of what was committed before. */
  readonly heard: () => Promise<void>
  /** It has left the board. That was told, unless somebody has taken it away by hand. */
  readonly gone: (id: string) => void
  /** What became of jobs that were posted, and whose answer was lost, and that have left the board since. */
  readonly fates: (jobs: readonly number[]) => Promise<ReadonlyMap<number, 'gone' | 'trashed'>>
}

interface Encoded<T> {
  readonly request: T
  readonly bytes: Uint8Array
}

export class BoardChanger {
  readonly #options: ChangerOptions
  #hasReportedFences = false
  readonly #posts: GroupCommit<Encoded<PostRequest>, Posted>
  readonly #claims: GroupCommit<Encoded<Choice>, Granted>
  readonly #settles: GroupCommit<Encoded<Settlement>, void>

  constructor(options: ChangerOptions) {
    this.#options = options
    const bytesOf = ({ bytes }: { readonly bytes: Uint8Array }) => bytes.length
    this.#posts = new GroupCommit<Encoded<PostRequest>, Posted>({
      commit: (batch) => this.#postAll(batch),
      bytesOf,
      most: MOST,
    })
    this.#claims = new GroupCommit({
      commit: (batch) => this.#claimAll(batch),
      bytesOf: ({ bytes, request }) => bytes.length + LOCK_BYTES * grantsOf(request.posting).length,
      most: MOST,
      keyOf: ({ request }) => request.id,
    })
    this.#settles = new GroupCommit<Encoded<Settlement>, void>({
      commit: (batch) => this.#settleAll(batch),
      bytesOf,
      most: MOST,
      keyOf: ({ request }) => request.id,
    })
  }

  async idle(): Promise<void> {
    await Promise.all([this.#posts.idle, this.#claims.idle, this.#settles.idle])
  }

  async post(request: PostRequest): Promise<Posted> {
    const bytes = encodePosting(request.posting, { encoding: 'msgpack', limit: LARGEST_POST })
    return this.#heard(this.#posts.add({ request, bytes }))
  }

  /** As one statement of a transaction that is not ours: the answer cannot be lost by us, nor kept. */
  async postWithin(client: SqlClient, { posting }: PostRequest): Promise<PostedWithin> {
    const { schema, board } = this.#options
    const bytes = encodePosting(posting, { encoding: 'msgpack', limit: LARGEST_POST })
    await assertInTransaction(client, { what: `post of ${named(posting)}`, schema })
    const values = [board, ...postValues([{ request: { posting }, bytes }])]
    const text = `SELECT ${schema}.post(NULL, NULL, $1, $2, $3, $4, $5, $6, $7, $8, $9)::text AS answer,
      pg_current_xact_id()::text AS transaction`
    const { rows } = await asking(`post of ${named(posting)}`, () => client.query(text, values))
    const { answer, transaction } = rows[0] ?? {}
    const { ids, taken } = JSON.parse(String(answer)) as PostAnswer
    const holder = taken?.[0]
    const made = holder
      ? takenBy(holder)
      : posted(ids[0] ?? 0, { bytes: countedBytes(bytes, 'msgpack'), fate: undefined })
    return { ...made, transaction: String(transaction) }
  }

  async claim(request: Choice): Promise<Granted> {
    try {
      return await this.#heard(this.#claims.add({ request, bytes: encodeLife(request.posting, 'msgpack') }))
    } catch (error) {
      if (error instanceof NotFound) this.#options.gone(request.id)
      throw error
    }
  }

  async settle(request: Settlement): Promise<void> {
    const bytes = request.kind === 'consume' ? NOTHING : encodeLife(request.posting, 'msgpack')
    return this.#heard(this.#settles.add({ request, bytes }))
  }

  async discard({ id, revision, posting, who, reason, failure }: Discard): Promise<void> {
    const what = `removal of ${named(posting)}`
    const life = encodeLife(posting, 'msgpack')
    const told = [storable(who), storable(reason), failure ? encode(failure, 'msgpack') : null]
    const answer = await this.#ask(what, 'discard', [jobNumber(id), revision, life, ...told])
    if (answer === 'gone') throw new NotFound(`${what}: it has left the board`)
    if (answer === 'changed') throw new Unclaimable(`${what}: it was claimed or changed by another`)
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    if (request.kind === 'gate') {
      const what = request.paused ? 'pause of the board' : 'resumption of the board'
      await this.#ask(what, 'set_gate', [request.paused])
      return
    }
    const { id, job, who, reason } = request
    const what = `cancellation of ${job}`
    const answer = await this.#ask(what, 'cancel', [jobNumber(id), storable(who), storable(reason)])
    if (answer === 'gone') throw new NotFound(`${what}: it has left the board`)
  }

  async restore({ id }: TrashedEntry, posting: Posting): Promise<void> {
    const what = `restoration of ${named(posting)}`
    const { priority, onOwnerLost = null } = posting
    const life = encodeLife(posting, 'msgpack')
    const answer = await this.#ask(what, 'restore', [jobNumber(id), life, priority, keyOf(posting), onOwnerLost])
    if (answer === 'taken')
      throw new Duplicate(`${what}: its key is taken on the board; restore it when the key is free`)
    if (answer === 'gone') throw notInTrash(what)
  }

  async purge({ id, posting }: TrashedEntry): Promise<void> {
    const what = `purge of ${named(posting)}`
    if ((await this.#ask(what, 'purge', [jobNumber(id)])) === 'gone') throw notInTrash(what)
  }

  async #ask(what: string, name: string, values: readonly unknown[]): Promise<unknown> {
    return (await this.#heard(this.#send(this.#options.others, { what, name, values }))).answer
  }

  /** While the answer waits for what came before it to be told, the next batch is on its way. */
  async #heard<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } finally {
      await this.#options.heard()
    }
  }

  #send(
    requests: Requests,
    { what, name, values }: { what: string; name: string; values: readonly unknown[] },
  ): Promise<Answer> {
    const { schema, board } = this.#options
    return requests.send({ what, call: `${schema}.${name}`, values: [board, ...values] })
  }

  // --- Posts ------------------------------------------------------------------------------------------------------

  #postAll(batch: readonly Encoded<PostRequest>[]): Promise<Outcome<Posted>[]> {
    return eachOnItsOwn(batch, async (some) => {
      const postings = some.map(({ request }) => request.posting)
      const { answer, found } = await this.#send(this.#options.posts, {
        what: whatOf('post', postings),
        name: 'post',
        values: postValues(some),
      })
      const { ids, taken } = answer as PostAnswer
      const fates = found ? await this.#options.fates(ids) : NO_FATES
      return some.map(({ bytes }, index) => {
        const number = ids[index] ?? 0
        const holder = taken?.[index]
        const fate = fates.get(number)
        return { value: holder ? takenBy(holder) : posted(number, { bytes: countedBytes(bytes, 'msgpack'), fate }) }
      })
    })
  }

  // --- Claims -----------------------------------------------------------------------------------------------------

  #claimAll(batch: readonly Encoded<Choice>[]): Promise<Outcome<Granted>[]> {
    return eachOnItsOwn(batch, async (some) => {
      const session = this.#options.session()
      const what = whatOf(
        'claim',
        some.map(({ request }) => request.posting),
      )
      if (!session) throw new NotConnected(`${what}: there is no session with the server`)
      const choices = some.map(({ request }) => request)
      const grants = choices.flatMap(({ posting }, index) => grantsOf(posting).map((grant) => ({ ...grant, index })))
      const { answer } = await this.#send(this.#options.claims, {
        what,
        name: 'claim',
        values: [
          session.id,
          choices.map(({ id }) => jobNumber(id)),
          choices.map(({ revision }) => revision),
          choices.map(({ who }) => storable(who)),
          ...joined(some),
          grants.map(({ index }) => index + 1),
          grants.map(({ name }) => advisoryKey(name)),
          grants.map(({ name }) => storable(name)),
          grants.map(({ exclusive }) => exclusive),
        ],
      })
      const claimed = answer as ClaimAnswer
      if (claimed.over) this.#options.over(session)
      if (claimed.outOfFences) this.#reportEndOfFences()
      return grantedBy(claimed, choices, session)
    })
  }

  /** Once: jobs are claimed again and again. */
  #reportEndOfFences(): void {
    if (this.#hasReportedFences) return
    this.#hasReportedFences = true
    const { schema, board, failed } = this.#options
    failed(
      new JobboardError(
        `fences of schema ${schema} are at their end, so nothing can be claimed: the last value of the sequence ${schema}.fences and ` +
          `fence_base of board ${board} in ${schema}.boards add up to 2^53 or nearly that; set the sequence (setval) so that the sum is ` +
          'larger than every fence that was handed out and smaller than 2^53, or move to another schema',
      ),
    )
  }

  // --- Settles ----------------------------------------------------------------------------------------------------

  #settleAll(batch: readonly Encoded<Settlement>[]): Promise<Outcome<void>[]> {
    return eachOnItsOwn(batch, async (some) => {
      const session = this.#options.session()
      const ours = some.filter(({ request }) => request.session === session?.label)
      const lost = session && ours.length > 0 ? await this.#settleIn(session, ours) : new Set<Encoded<Settlement>>()
      return some.map((item) => {
        if (ours.includes(item) && !lost.has(item)) return { value: undefined }
        const { kind, posting } = item.request
        return { error: new ClaimLost(`${kind} of ${named(posting)}: the claim is gone; stop and write nothing`) }
      })
    })
  }

  async #settleIn(session: Session, items: readonly Encoded<Settlement>[]): Promise<ReadonlySet<Encoded<Settlement>>> {
    const settlements = items.map(({ request }) => request)
    const postings = settlements.map(({ posting }) => posting)
    const { answer } = await this.#send(this.#options.others, {
      what: whatOf(settlements[0]?.kind ?? 'settle', postings),
      name: 'settle',
      values: [
        session.id,
        settlements.map(({ id }) => jobNumber(id)),
        settlements.map(({ revision }) => revision),
        settlements.map(({ kind }) => kind),
        ...joined(items),
        settlements.map(({ posting: { delay = null } }) => delay),
        settlements.map(({ who }) => storable(who)),
        settlements.map((settlement) => (settlement.kind === 'trash' ? storable(settlement.reason) : null)),
        settlements.map((settlement) =>
          settlement.kind === 'trash' && settlement.failure ? encode(settlement.failure, 'msgpack') : null,
        ),
        postings.some(({ resources }) => resources !== undefined),
      ],
    })
    const { over, lost } = answer as { over?: true; lost?: number[] }
    if (over) this.#options.over(session)
    return new Set(items.filter((_, index) => over || lost?.includes(index)))
  }
}

const NOTHING = new Uint8Array()
const NO_FATES: ReadonlyMap<number, 'gone' | 'trashed'> = new Map()

interface PostAnswer {
  readonly ids: readonly number[]
  /** By place: uuid and number of the job that has the key. */
  readonly taken: Readonly<Record<string, readonly [string | null, number | null]>> | null
}

interface ClaimAnswer {
  /** The session is over, or the board paused: nothing is granted. */
  readonly over?: true
  readonly paused?: true
  /** There is no fence for another claim: nothing is granted. */
  readonly outOfFences?: true
  readonly granted?: readonly number[] | null
  readonly fences?: readonly number[] | null
  readonly refused?: readonly (readonly [number, 'gone' | 'changed'])[] | null
  readonly busy?: readonly (readonly [number, 'busy', string])[]
}

function grantedBy(answer: ClaimAnswer, choices: readonly Choice[], session: Session): Outcome<Granted>[] {
  const { over, paused, outOfFences, granted, fences, refused, busy } = answer
  const fenceOf = new Map(granted?.map((at, index) => [at, fences?.[index] ?? 0]))
  const reasons = new Map(refused)
  const resources = new Map(busy?.map(([at, , resource]) => [at, resource]))
  return choices.map(({ posting, revision }, at) => {
    const what = `claim of ${named(posting)}`
    const fence = fenceOf.get(at)
    if (fence !== undefined) return { value: { session: session.label, revision: revision + 1, fence: BigInt(fence) } }
    if (over) return { error: new NotConnected(`${what}: the session with the server is over`) }
    if (paused) return { error: new Unclaimable(`${what}: the board is paused`) }
    if (outOfFences)
      return {
        error: new WritesRefused(
          `${what}: the fences of the board are at their end; nothing was changed, see its error event`,
        ),
      }
    if (reasons.get(at) === 'gone') return { error: new NotFound(`${what}: it has left the board`) }
    const resource = resources.get(at)
    if (resource !== undefined) return { error: new Unclaimable(`${what}: another job holds resource ${resource}`) }
    return { error: new Unclaimable(`${what}: it was claimed or changed by another`) }
  })
}

function posted(number: number, { bytes, fate }: { bytes: number; fate: 'gone' | 'trashed' | undefined }): Posted {
  const made = { created: true, revision: 0, order: BigInt(number), bytes } as const
  if (fate) return { ...made, trashed: fate === 'trashed' }
  return { ...made, id: jobId(number) }
}

function takenBy([uuid, job]: readonly [string | null, number | null]): Posted {
  return { created: false, ...(uuid === null ? {} : { uuid }), revision: job ?? 0 }
}

function postValues(items: readonly Encoded<PostRequest>[]): unknown[] {
  const postings = items.map(({ request }) => request.posting)
  return [
    ...joined(items),
    postings.map(({ uuid }) => uuid),
    postings.map(({ name }) => storable(name)),
    postings.map(({ priority }) => priority),
    postings.map(keyOf),
    postings.map(({ onOwnerLost = null }) => onOwnerLost),
    postings.map(({ delay = null }) => delay),
  ]
}

/** All bytes one after the other, and how many belong to each: as an array of texts they would be twice as long. */
function joined(items: readonly { readonly bytes: Uint8Array }[]): [Buffer, number[]] {
  return [Buffer.concat(items.map(({ bytes }) => bytes)), items.map(({ bytes }) => bytes.length)]
}

function grantsOf(posting: Posting): { readonly name: string; readonly exclusive: boolean }[] {
  const { exclusive, shared } = resourcesOf(posting)
  return [
    ...exclusive.map((name) => ({ name, exclusive: true })),
    ...shared.map((name) => ({ name, exclusive: false })),
  ]
}

function keyOf({ key }: Posting): Buffer | null {
  return key === undefined ? null : digestOf(key)
}

/** What the server refuses of a batch it refuses as a whole: then one after the other, so that each has its own answer. */
async function eachOnItsOwn<T, R>(
  batch: readonly T[],
  work: (some: readonly T[]) => Promise<Outcome<R>[]>,
): Promise<Outcome<R>[]> {
  try {
    return await work(batch)
  } catch (error) {
    const refused = error instanceof JobboardError && error.code === 'JOBBOARD_POSTGRES'
    if (!refused || batch.length === 1) return batch.map(() => ({ error }))
  }
  const outcomes: Outcome<R>[] = []
  for (const item of batch) outcomes.push(...(await work([item]).catch((error) => [{ error }])))
  return outcomes
}

/** For errors. */
function named({ uuid, name }: Posting): string {
  return `job ${uuid} (${name})`
}

function whatOf(verb: string, postings: readonly Posting[]): string {
  const [first] = postings
  const others = postings.length > 1 ? ` and ${postings.length - 1} more` : ''
  return `${verb} of ${first ? named(first) : 'nothing'}${others}`
}

function notInTrash(what: string): NotFound {
  return new NotFound(`${what}: it is not in the trash any more`)
}
