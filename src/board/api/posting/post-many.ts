/**
 * Posts many jobs with one call.
 *
 * | mode | transactions | an item that cannot be posted |
 * |---|---|---|
 * | default | a few hundred jobs each, formed by the backend from the posts under way | is answered with an error; the others are posted |
 * | `atomic` | one for all jobs | nothing is posted, and the call throws |
 *
 * Enough posts are under way at once to fill the next transaction before the current one is answered. Items are read only when they are
 * needed, so a long source needs no memory.
 */
import { answerInTime, createDeferred, followSignals, rejectOnAbort } from '../../../core/async/abort.ts'
import type { Stoppable } from '../../../core/async/abort-flag.ts'
import { keepNewest } from '../../../core/collections/keep-newest.ts'
import { asError, InvalidArgument } from '../../../core/errors.ts'
import { assertOptions } from '../../../core/options.ts'
import type { Flow } from '../../../flow/index.ts'
import type { PostDependency } from '../../model/dependencies.ts'
import { POST_OPTIONS, type PostOptions } from '../../model/posting/post-options.ts'
import type { PostedJob } from './posted-job.ts'
import type { ManyPoster, PostItem } from './poster.ts'

/** A job to post with others: its flow, a store that fits the inputs of the flow, and the options of `post`. */
export type TypedPostItem<I extends object> = Omit<PostOptions, 'client'> & {
  readonly flow: Flow<I> | string
  readonly store: NoInfer<I>
}

/** The answer to an item: the job, or the error with which nothing was posted. `job.created` is false where the key is taken. */
export type PostManyResult = { readonly job: PostedJob } | { readonly error: Error }

/** The options of a call that posts many jobs. */
export interface PostManyOptions {
  /** Whether all jobs are posted in one transaction, or none; false by default. */
  readonly atomic?: boolean
  /** Stops the call before the next item, also while the source waits for it. Posts that were begun are answered. */
  readonly signal?: AbortSignal
  /**
   * Called with each answer as it comes, and the index of its item from 0. The answers are then not collected: the result is empty. If the
   * callback throws, no more items are read, and the call throws that error when the posts that were begun are answered.
   */
  readonly onResult?: (result: PostManyResult, index: number) => void
}

/** The number of posts under way above which no item is read, and below which items are read again. */
const MAX_UNDER_WAY = 2_000
const RESUME_BELOW = 1_000
/** The most jobs of one transaction. All servers take that many small ones. */
const MAX_ATOMIC_POSTS = 500

const { client: _, ...OPTIONS_WITHOUT_CLIENT } = POST_OPTIONS
const ITEM_OPTIONS = { ...OPTIONS_WITHOUT_CLIENT, flow: true, store: true } as const

/** @throws InvalidArgument; what the items throw; the signal's reason; with `atomic`, as of `post` */
export async function postMany(
  items: Iterable<PostItem> | AsyncIterable<PostItem>,
  options: PostManyOptions,
  poster: ManyPoster,
): Promise<PostManyResult[]> {
  assertOptions(options, { atomic: true, signal: true, onResult: true }, 'postMany')
  if (typeof Object(items)[Symbol.iterator] !== 'function' && typeof Object(items)[Symbol.asyncIterator] !== 'function')
    throw new InvalidArgument('postMany: the first argument must be an array, or another iterable, of { flow, store }')
  const { signal } = options
  const work = () => (options.atomic ? postTogether(items, options, poster) : postEach(items, options, poster))
  return answerInTime({ signal }, { work })
}

async function postEach(
  items: Iterable<PostItem> | AsyncIterable<PostItem>,
  { signal, onResult }: PostManyOptions,
  poster: ManyPoster,
): Promise<PostManyResult[]> {
  const results: PostManyResult[] = []
  const earlier = new EarlierItems()
  let failure: { readonly error: unknown } | undefined
  using stop = followSignals([signal])
  let [underWay, index] = [0, 0]
  let room = createDeferred()
  const answer = (at: number, result: PostManyResult) => {
    underWay -= 1
    if (underWay <= RESUME_BELOW) room.resolve()
    if (!onResult) results[at] = result
    else
      try {
        onResult(result, at)
      } catch (error) {
        // Nobody waits for this answer: the error would end the process.
        failure ??= { error }
        stop.abort(error)
      }
  }
  try {
    for await (const item of untilAborted(items, stop)) {
      const at = index
      index += 1
      underWay += 1
      earlier.post(item, poster).then(
        (job) => answer(at, { job }),
        (error: unknown) => answer(at, { error: asError(error) }),
      )
      if (underWay < MAX_UNDER_WAY) continue
      room = createDeferred()
      await room.promise
    }
  } finally {
    while (underWay > 0) {
      room = createDeferred()
      await room.promise
    }
  }
  // The last answers may have come after the last item.
  if (failure) throw failure.error
  return results
}

/**
 * Yields the items until the flag is aborted, also while the source waits for the next one.
 *
 * @throws the flag's reason; what the source throws
 */
async function* untilAborted<T>(
  items: Iterable<T> | AsyncIterable<T>,
  stop: Stoppable,
): AsyncGenerator<T, void, undefined> {
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  let isOpen = true
  const read = async () => {
    try {
      const next = await source.next()
      if (next.done) isOpen = false
      return next
    } catch (error) {
      isOpen = false
      throw error
    }
  }
  try {
    while (true) {
      stop.throwIfAborted()
      const next = await rejectOnAbort(read(), stop)
      if (next.done) return
      const item = await next.value
      stop.throwIfAborted()
      yield item
    }
  } finally {
    // A source that waits for its next item is closed after that: nobody waits for it.
    if (isOpen) await rejectOnAbort(Promise.resolve(source.return?.()), stop).catch(() => undefined)
  }
}

async function postTogether(
  items: Iterable<PostItem> | AsyncIterable<PostItem>,
  { signal, onResult }: PostManyOptions,
  poster: ManyPoster,
): Promise<PostManyResult[]> {
  const posts: PostItem[] = []
  using stop = followSignals([signal])
  for await (const item of untilAborted(items, stop)) {
    if (posts.length === MAX_ATOMIC_POSTS)
      throw new InvalidArgument(
        `postMany: one transaction takes at most ${MAX_ATOMIC_POSTS} jobs; omit atomic, or post fewer`,
      )
    posts.push(checkItem(item))
  }
  const results = (await poster.postTogether(posts)).map((job) => ({ job }))
  if (!onResult) return results
  for (const [index, result] of results.entries()) onResult(result, index)
  return []
}

/** The number of earlier items that a later one names without a round trip for each. */
const MAX_EARLIER_ITEMS = 10_000

/** The newest items with a uuid of the caller: a later item that depends on one of them waits until it is posted. */
class EarlierItems {
  readonly #posts = new Map<string, Promise<PostedJob>>()

  async post(item: PostItem, poster: ManyPoster): Promise<PostedJob> {
    const { flow, store = {}, ...options } = checkItem(item)
    const { uuid, after } = options
    if (uuid === undefined) return poster.post(flow, store, { ...options, ...(await this.#resolve(after)) })
    const posting = this.#resolve(after).then((found) => poster.post(flow, store, { ...options, ...found }))
    // An item that failed is not known to later ones: their own post says that it is not on the board.
    posting.catch(() => this.#posts.delete(uuid))
    this.#posts.set(uuid, posting)
    keepNewest(this.#posts, MAX_EARLIER_ITEMS)
    return posting
  }

  /** Returns the dependencies with the jobs of earlier items in place of their uuids. */
  async #resolve(after: PostItem['after']): Promise<Pick<PostItem, 'after'>> {
    if (!Array.isArray(after)) return after === undefined ? {} : { after }
    const resolve = async (each: PostDependency): Promise<PostDependency> => {
      const { uuid, on } =
        typeof each === 'string' ? { uuid: each } : { on: undefined, ...each, uuid: Object(each).uuid }
      const job = await this.#posts.get(uuid)?.catch(() => undefined)
      return job ? { uuid: job.ref, ...(on === undefined ? {} : { on }) } : each
    }
    return { after: await Promise.all(after.map(resolve)) }
  }
}

/** @throws InvalidArgument */
function checkItem(item: PostItem): PostItem {
  assertOptions(item, ITEM_OPTIONS, 'postMany: an item')
  return item
}
