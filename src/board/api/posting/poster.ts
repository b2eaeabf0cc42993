/** Posts jobs: it makes the posting, and finds the existing job where a key is taken. */
import { Duplicate, InvalidArgument, InvalidPosting, InvalidState, MissingDependencies } from '../../../core/errors.ts'
import { defined } from '../../../core/options.ts'
import { attempt } from '../../../core/result.ts'
import type { TraceContext } from '../../../core/tracing.ts'
import { type AnyFlow, checkStore, missingInputs } from '../../../flow/index.ts'
import { assertSupported } from '../../claims/supported.ts'
import type { Backend, DependencyGone, KeyTaken, Posted, PostRequest, StoredJob } from '../../contract/index.ts'
import { ExpectedPost } from '../../jobs/expected-post.ts'
import { readJob } from '../../jobs/read-jobs.ts'
import { withFlowPosting } from '../../model/declared.ts'
import type { Dependency } from '../../model/dependencies.ts'
import { type JobEntry, newEntry } from '../../model/entry.ts'
import { toOnTakenKey } from '../../model/key.ts'
import { parsePostBatch } from '../../model/post-batch.ts'
import { makePosting, type PostOptions, type Reservation, type SqlClient } from '../../model/posting/post-options.ts'
import { type Posting, toFormat } from '../../model/posting/posting.ts'
import type { PostSettings } from '../../settings/post-settings.ts'
import { givenClaimKeys, givenKeys } from '../../settings/rules.ts'
import type { LiveView } from '../../view/live-view.ts'
import type { DependencyResolver } from '../dependency-resolver.ts'
import type { Lookup } from '../lookup.ts'
import type { PostRecorder } from './post-recorder.ts'
import { PostedJob } from './posted-job.ts'
import { type CheckedPost, type TakenJob, TakenKeys } from './taken-key.ts'

/** A job to post with others: its flow, the flow's store, and the options of `post`. */
export type PostItem = Omit<PostOptions, 'client'> & { readonly flow: AnyFlow | string; readonly store?: object }

/** The properties of a posting that the options of its poster do not contain. */
interface PostContext {
  readonly reservation?: Reservation | undefined
  /** The context of the span that posts. */
  readonly trace?: TraceContext | undefined
  /** The store as the schema of the flow returns it; absent without a schema. */
  readonly checked?: object
}

const NO_CONTEXT: PostContext = {}

/** Posts the jobs of one call. */
export interface ManyPoster {
  post(flow: AnyFlow | string, store: object, options: PostOptions): Promise<PostedJob>
  postTogether(items: readonly PostItem[]): Promise<PostedJob[]>
}

export class Poster {
  readonly #who: string
  readonly #backend: Backend
  readonly #view: LiveView
  readonly #lookup: Pick<Lookup, 'refresh' | 'locate'>
  readonly #dependencies: DependencyResolver
  readonly #keyTaken: (entry: JobEntry, posting: Posting) => void
  readonly #takenKeys: TakenKeys
  readonly #heldMember: (batch: string) => string | undefined
  readonly #signal: AbortSignal
  readonly #recorder: PostRecorder | undefined
  readonly #settings: PostSettings

  /** @param options.keyTaken is called with the job that has the key, when a post creates nothing because of it */
  constructor(options: {
    who: string
    backend: Backend
    view: LiveView
    lookup: Pick<Lookup, 'refresh' | 'locate'>
    dependencies: DependencyResolver
    keyTaken: (entry: JobEntry, posting: Posting) => void
    /** Returns the uuid of a job of the batch that this board has claimed, if there is one. */
    heldMember: (batch: string) => string | undefined
    /** Ends a doomed job. Resolves when the job has ended, or could not be ended now. */
    endDoomed: (id: string) => Promise<void>
    /** The signal that ends the background work, because the board is closed. */
    signal: AbortSignal
    /** Records the posts; undefined without telemetry. */
    recorder: PostRecorder | undefined
    settings: PostSettings
  }) {
    this.#settings = options.settings
    this.#recorder = options.recorder
    this.#who = options.who
    this.#signal = options.signal
    this.#keyTaken = options.keyTaken
    this.#heldMember = options.heldMember
    this.#backend = options.backend
    this.#view = options.view
    this.#lookup = options.lookup
    this.#dependencies = options.dependencies
    this.#takenKeys = new TakenKeys(options)
  }

  /**
   * Posts a job in one transaction. Where the key is taken, this takes three more round trips, and on ZooKeeper it opens the view.
   *
   * A key is removed in the same transaction as its job. A key is orphaned if two looks find it unchanged and its job gone: the post takes
   * it over. One look alone proves nothing: the key may have been removed since, and another job may have been posted with it, whose key
   * has the same revision.
   */
  post(flow: AnyFlow | string, store: object, options: PostOptions, reservation?: Reservation): Promise<PostedJob> {
    if (!this.#recorder) return this.#post(flow, store, options, reservation ? { reservation } : NO_CONTEXT)
    return this.#recorder.one(flow, (trace) => this.#post(flow, store, options, { reservation, trace }))
  }

  /** Calls `post` with what posts the jobs of one call: they have one span together. */
  async many<T>(post: (poster: ManyPoster) => Promise<T>): Promise<T> {
    const recorder = this.#recorder
    const plain: ManyPoster = {
      post: (flow, store, options) => this.#post(flow, store, options, NO_CONTEXT),
      postTogether: (items) => this.#postTogether(items, NO_CONTEXT),
    }
    if (!recorder) return post(plain)
    return recorder.many((trace, count) =>
      post({
        post: async (flow, store, options) => {
          const job = await this.#post(flow, store, options, { trace })
          count(job)
          return job
        },
        postTogether: async (items) => {
          const jobs = await this.#postTogether(items, { trace })
          jobs.forEach(count)
          return jobs
        },
      }),
    )
  }

  #post(flow: AnyFlow | string, store: object, options: PostOptions, context: PostContext): Promise<PostedJob> {
    return attempt(() => {
      assertFlow(flow)
      if (typeof flow === 'string' || !flow.schema) return this.#postStore(flow, store, options, context)
      return checkPayload(flow, store).then((checked) => this.#postStore(flow, store, options, { ...context, checked }))
    })
  }

  /** Posts a job whose store fits the schema of its flow. */
  #postStore(flow: AnyFlow | string, store: object, options: PostOptions, context: PostContext): Promise<PostedJob> {
    const made = this.#toCheckedPost(flow, store, options, context)
    const waits = this.#settings.whenKnown()
    // A post in a transaction of the caller must not be sent after the caller has ended the transaction: it uses what is known.
    if (waits === undefined || options.client !== undefined) {
      waits?.catch(() => undefined)
      return this.#postMade(made, options, context)
    }
    // The caller may change its objects meanwhile. The posting has a copy of the store by now.
    const copy = { ...options, ...copyLists(options) }
    return waits.then(() => this.#postMade(made, copy, context))
  }

  #postMade(made: CheckedPost, options: PostOptions, context: PostContext): Promise<PostedJob> {
    const checked = this.#withSettings(made, options)
    const { posting, onApplied } = checked
    if (onApplied === 'replace' && (context.reservation || options.client)) {
      const what = context.reservation ? 'postAndClaim' : 'post with client'
      throw new InvalidArgument(`${what}: key.on must not be 'replace'; omit it`)
    }
    const isPlain = posting.key === undefined && posting.batch === undefined && posting.after === undefined
    if (isPlain && options.after === undefined && options.client === undefined) return this.#postPlain(posting)
    const { uuid, name } = posting
    return this.#dependencies.register<PostedJob>([{ uuid, name, after: options.after }], ([after = []]) =>
      this.#postAfter(after, checked, options),
    )
  }

  /** Posts a plain job: without a key, dependencies or a batch, a post cannot be refused. */
  #postPlain(posting: Posting): Promise<PostedJob> {
    const request: PostRequest = { posting }
    const { epoch } = this.#view
    return this.#backend.jobs.post(request).then((posted) => {
      if (!posted.created) throw new InvalidState(`job ${posting.uuid} (${posting.name}): refused without a reason`)
      return new PostedJob(this.#toEntry(request, posted, { epoch }), { posting })
    })
  }

  /** Posts the job. If a job on which it would depend has ended, posts nothing and returns the id of that job. */
  async #postAfter(
    after: readonly Dependency[],
    checked: CheckedPost,
    { client, batch }: PostOptions,
  ): Promise<PostedJob | DependencyGone> {
    const { posting } = checked
    const request = this.#toPostRequest(posting, { after, batch })
    if (client !== undefined) return this.#postInTransaction(client, request, checked)
    let before: KeyTaken | undefined
    const { epoch } = this.#view
    let posted = await this.#backend.jobs.post(request)
    while (!posted.created) {
      if ('gone' in posted) return posted
      const { found, job } = await this.#findTaker(posted, checked)
      if (job) return job
      const isOrphaned = before?.uuid === posted.uuid && before?.revision === posted.revision
      // A job that has become unreadable is still on the board.
      if (isOrphaned && (found || (await this.#mayHideJobs()))) throw this.#unreadableKeyError(posting)
      before = found?.stored ? undefined : posted
      posted = await this.#backend.jobs.post(isOrphaned ? { ...request, takeOver: posted.revision } : request)
    }
    return new PostedJob(this.#toEntry(request, posted, { epoch }), { posting })
  }

  /** Finds the job that has the key. Returns no `job` if it was not found, or has changed meanwhile: then the caller posts again. */
  async #findTaker(
    taken: KeyTaken,
    checked: CheckedPost,
  ): Promise<{ readonly job?: PostedJob; readonly found?: { readonly stored: StoredJob | undefined } }> {
    const { uuid, inWindowOf } = taken
    if (uuid === undefined) return {}
    if (inWindowOf !== undefined)
      return { job: toPostedJob(await this.#takenKeys.readEnded(uuid, inWindowOf, checked)) }
    const entry = await this.#lookup.locate(uuid)
    if (!entry) return {}
    const stored = await readJob(entry, this.#backend)
    const resolved = stored && (await this.#takenKeys.resolve({ entry, stored }, checked, taken))
    if (!resolved) return { found: { stored } }
    if (!resolved.taken.replaced) this.#keyTaken(entry, checked.posting)
    return { job: toPostedJob(resolved), found: { stored } }
  }

  /**
   * Posts all jobs in one transaction, or none.
   *
   * @throws as {@link post}; Duplicate when a key is taken, PayloadTooLarge
   */
  async #postTogether(items: readonly PostItem[], context: PostContext): Promise<PostedJob[]> {
    const checked = await Promise.all(
      items.map(({ flow, store = {}, ...options }) => this.#checkPost(flow, store, options, context)),
    )
    const postings = checked.map(({ posting }) => posting)
    const replacing = checked.findIndex(({ onApplied }) => onApplied === 'replace')
    if (replacing >= 0)
      throw new InvalidArgument(
        `postMany: item ${replacing}: key.on must not be 'replace' with atomic; omit one of them`,
      )
    if (postings.length === 0) return []
    const dependents = postings.map(({ uuid, name }, index) => ({ uuid, name, after: items[index]?.after }))
    return this.#dependencies.register<PostedJob[]>(dependents, (after) =>
      this.#writeTogether(
        postings.map((posting, index) =>
          this.#toPostRequest(posting, { after: after[index], batch: items[index]?.batch }),
        ),
      ),
    )
  }

  /** Posts all jobs in one transaction. If jobs on which they would depend have ended, posts nothing and returns the ids of those jobs. */
  async #writeTogether(posts: readonly PostRequest[]): Promise<PostedJob[] | { readonly gone: readonly string[] }> {
    const { epoch } = this.#view
    const { uri } = this.#backend
    const written = await this.#backend.records.write({ changes: [], posts })
    if (written?.done === false) {
      if ('gone' in written.conflict) return { gone: written.conflict.gone }
      const key = 'key' in written.conflict ? written.conflict.key : ''
      const [index = -1, again] = posts.flatMap(({ posting }, at) => (posting.key === key ? [at] : []))
      if (again !== undefined)
        throw new Duplicate(`postMany: items ${index} and ${again} have the same key; nothing was posted`)
      throw new Duplicate(
        `postMany: the key of item ${index} is taken by a job on the board, or its window is not over; nothing was posted`,
      )
    }
    return posts.map((request, index) => {
      const posted = written?.posted[index]
      if (!posted?.created) throw new InvalidState(`postMany: ${uri} did not answer for item ${index}`)
      return new PostedJob(this.#toEntry(request, posted, { epoch }), { posting: request.posting })
    })
  }

  #toPostRequest(
    posting: Posting,
    { after = [], batch }: { readonly after: readonly Dependency[] | undefined; readonly batch: PostOptions['batch'] },
  ): PostRequest {
    const parsed = parsePostBatch(batch)
    const member = parsed && (parsed.by ?? this.#heldMember(parsed.uuid))
    return { posting, ...(after.length > 0 ? { after } : {}), ...(member === undefined ? {} : { member }) }
  }

  /** Makes the posting of a job. @throws InvalidPosting, InvalidArgument, MissingDependencies, UnsupportedCapability */
  async toPosting(flow: AnyFlow | string, store: object, options: PostOptions): Promise<Posting> {
    return (await this.#checkPost(flow, store, options, NO_CONTEXT)).posting
  }

  /** @throws as {@link toPosting} */
  async #checkPost(
    flow: AnyFlow | string,
    store: object,
    options: PostOptions,
    context: PostContext,
  ): Promise<CheckedPost> {
    assertFlow(flow)
    const isPlain = typeof flow === 'string' || !flow.schema
    const whole = isPlain ? context : { ...context, checked: await checkPayload(flow, store) }
    const made = this.#toCheckedPost(flow, store, options, whole)
    await this.#settings.whenKnown()
    return this.#withSettings(made, options)
  }

  /** @throws as {@link toPosting} */
  #toCheckedPost(
    flow: AnyFlow | string,
    store: object,
    options: PostOptions,
    { reservation, trace, checked = store }: PostContext,
  ): CheckedPost {
    const fields = toNameAndDetails(flow, store, options)
    const merged = typeof flow === 'string' ? options : withFlowPosting(flow, checked, options)
    const explicit = this.#backend.shared ? undefined : givenClaimKeys(options)
    const posting = makePosting({ ...merged, ...fields, postedBy: this.#who, trace, explicit }, reservation)
    assertSupported(this.#backend, posting)
    return { posting, onApplied: toOnTakenKey(merged.key) }
  }

  /** Returns the post with the settings of its flow. */
  #withSettings(made: CheckedPost, given: PostOptions): CheckedPost {
    const { rules } = this.#settings
    if (rules.isEmpty) return made
    const posting = rules.withPosted(made.posting, givenKeys(given))
    return posting === made.posting ? made : { ...made, posting: { ...posting, format: toFormat(posting) } }
  }

  /**
   * Posts in a transaction of the caller. If the transaction is rolled back, the job is never on the board: then `wait` throws NotFound,
   * and `state` stays UNCLAIMED. This takes one round trip of the client; two where its driver does not know whether a transaction is open.
   */
  async #postInTransaction(
    client: SqlClient,
    request: PostRequest,
    checked: CheckedPost,
  ): Promise<PostedJob | DependencyGone> {
    const { posting } = request
    const posted = await this.#backend.callerTransactions.post(client, request)
    if (posted.created) {
      const { id = '', transaction } = posted
      const entry = this.#view.byId(id)
      const onPosted = () => this.#view.addEarlierPost(this.#toStored(request, posted))
      const expected = new ExpectedPost({
        ...{ entry, backend: this.#backend, transaction, onPosted, signal: this.#signal },
        job: `job ${posting.uuid} (${posting.name})`,
      })
      return new PostedJob(entry, { posting, expected })
    }
    if ('gone' in posted) return posted
    const { job } = await this.#findTaker(posted, checked)
    if (job) return job
    throw new Duplicate(
      `job ${posting.uuid} (${posting.name}): its key is taken by a job that this board does not see yet; try again`,
    )
  }

  async #mayHideJobs(): Promise<boolean> {
    using _view = this.#view.hold()
    await this.#lookup.refresh()
    return this.#view.hidesJobs
  }

  /** Returns the error for a key that is not taken over: its job may be of a newer release, and must not lose its key. */
  #unreadableKeyError({ uuid, name }: Posting): Duplicate {
    return new Duplicate(
      `job ${uuid} (${name}): its key is taken by a job that has left the board or is unreadable here; ` +
        'upgrade jobboard, or remove the unreadable postings',
    )
  }

  #toEntry(request: PostRequest, posted: Posted & { created: true }, since: { readonly epoch: number }): JobEntry {
    const { id, trashed } = posted
    const stored = this.#toStored(request, posted)
    if (id !== undefined) {
      this.#dependencies.notePosted({ id, uuid: request.posting.uuid })
      return this.#view.addOwnPost(stored, since)
    }
    const gone = newEntry(undefined, { follower: this.#view.follower })
    gone.stored = stored
    gone.ended = trashed ? 'TRASHED' : 'COMPLETE'
    return gone
  }

  #toStored(
    { posting, after = [] }: PostRequest,
    { id = '', revision, order, bytes }: Posted & { created: true },
  ): StoredJob {
    const now = this.#backend.clock.now()
    const stored = { id, posting, revision, order, postedAt: now, writtenAt: now, bytes }
    return after.length > 0 ? { ...stored, waits: true } : stored
  }
}

/** Returns copies of the options that are read again after a posting was made. */
function copyLists({ after, batch }: PostOptions): Pick<PostOptions, 'after' | 'batch'> {
  return defined({ after: Array.isArray(after) ? after.map(copyFields) : after, batch: copyFields(batch) })
}

/** Returns a copy of a plain object, and anything else as it is: jobs and batches are objects of a class. */
function copyFields<T>(value: T): T {
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  return isPlain ? { ...value } : value
}

function toPostedJob({ entry, posting, taken }: TakenJob): PostedJob {
  return new PostedJob(entry, { posting, taken })
}

/** @throws InvalidArgument */
function assertFlow(flow: unknown): void {
  if (typeof flow === 'string' || Object(flow).kind === 'flow') return
  throw new InvalidArgument(
    "post: flow must be a flow or the name of one, followed by the store, as in post('resize', { path })",
  )
}

/** Returns the name and the details of the posting. @throws MissingDependencies when the store lacks an input of the flow */
function toNameAndDetails(
  flow: AnyFlow | string,
  store: object,
  options: PostOptions,
): { name: string; details: Posting['details'] } {
  const reference = typeof flow === 'string' ? { flow } : { flow: flow.name, version: flow.version }
  if (reference.flow === '') throw new InvalidPosting('the name of the flow must not be empty')
  const { details = {} } = options
  // A text or a list would be spread to fields named 0, 1 and so on.
  if (!isFields(details)) throw new InvalidPosting('details must be an object with the additional fields')
  // A schema may add inputs to the store.
  if (typeof flow !== 'string' && !flow.schema) {
    const missing = missingInputs(flow, store)
    if (missing.length > 0)
      throw new MissingDependencies(`flow ${reference.flow} requires ${missing.join(', ')}: add it to the store`)
  }
  return { name: options.name ?? reference.flow, details: { ...details, ...reference, store } }
}

function isFields(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Returns the store as the flow's schema returns it.
 *
 * @throws InvalidPosting if it is invalid, MissingDependencies if an input is missing
 */
async function checkPayload(flow: AnyFlow, store: object): Promise<object> {
  try {
    return await checkStore(flow, store)
  } catch (error) {
    throw error instanceof InvalidArgument ? new InvalidPosting(error.message, { cause: error }) : error
  }
}
