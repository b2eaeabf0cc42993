/**
 * Handles a post whose key is taken: finds the job with the key, replaces its posting if the post asks for that, or reports the window of
 * the key.
 *
 * A replacement is one transaction at the revision of the posting that was read. A claim increments the revision, so either the claim gets
 * the new posting as a whole, or the replacement is refused and the post looks again.
 */
import { InvalidState, NotFound, Unclaimable } from '../../../core/errors.ts'
import { defined } from '../../../core/options.ts'
import { MAX_DURATION_MS } from '../../../core/time.ts'
import type { Backend, KeyTaken, StoredJob } from '../../contract/index.ts'
import { isDoomed } from '../../model/dependencies.ts'
import { type JobEntry, newEntry } from '../../model/entry.ts'
import { HOLD_FLOW, toExpirySteps } from '../../model/expiry.ts'
import type { KeyTakenReason, OnTakenKey } from '../../model/key.ts'
import { type Posting, toFormat } from '../../model/posting/posting.ts'
import type { LiveView } from '../../view/live-view.ts'

/** A posting to post, and what the post does if its key is taken. */
export interface CheckedPost {
  readonly posting: Posting
  readonly onApplied: OnTakenKey
}

/** The job that has the key of a post, and what the post has done. */
export interface TakenJob {
  readonly entry: JobEntry
  readonly posting: Posting
  readonly taken: {
    readonly because: KeyTakenReason
    /** Whether the post has replaced the posting of the job. */
    readonly replaced?: true
  }
}

export class TakenKeys {
  readonly #backend: Backend
  readonly #view: Pick<LiveView, 'addOwnWrite' | 'follower'>

  readonly #endDoomed: (id: string) => Promise<void>

  /** @param options.endDoomed ends a job that is doomed, and resolves when it has ended or could not be ended now */
  constructor({
    backend,
    view,
    endDoomed,
  }: {
    readonly backend: Backend
    readonly view: Pick<LiveView, 'addOwnWrite' | 'follower'>
    readonly endDoomed: (id: string) => Promise<void>
  }) {
    this.#backend = backend
    this.#view = view
    this.#endDoomed = endDoomed
  }

  /**
   * Returns the job with the key, whose posting is replaced if the post asks for that. Returns undefined if the job has changed or left the
   * board since it was found: then the caller posts again.
   *
   * @throws InvalidState where the post names other dependencies, or another batch, than the job that it would replace
   */
  async resolve(
    found: { entry: JobEntry; stored: StoredJob },
    checked: CheckedPost,
    taken: KeyTaken,
  ): Promise<TakenJob | undefined> {
    if (await this.#hasEnded(found.stored)) return undefined
    if (checked.onApplied === 'replace') return this.#replace(found.entry, checked, taken)
    const { entry, stored } = found
    const isStarted = entry.claimed || stored.posting.runs > 0
    return { entry, posting: stored.posting, taken: { because: isStarted ? 'running' : 'waiting' } }
  }

  /** Returns whether the job was doomed, and has ended now: its key is free. */
  async #hasEnded({ id, posting }: StoredJob): Promise<boolean> {
    if (!isDoomed(posting) || !(await this.#backend.signals.cancellation(id))) return false
    await this.#endDoomed(id)
    const [left] = await this.#backend.jobs.read([id])
    return left === undefined
  }

  async #replace(entry: JobEntry, { posting: wanted }: CheckedPost, taken: KeyTaken): Promise<TakenJob | undefined> {
    const backend = this.#backend
    const { id = '' } = entry
    const [[stored], cancellation] = await Promise.all([
      backend.jobs.read([id]),
      backend.signals.cancellation(id),
      backend.clock.read(),
    ])
    if (!stored || !('posting' in stored)) return undefined
    const { posting: current, revision } = stored
    if (current.runs > 0 || current.reserved || cancellation)
      return { entry, posting: current, taken: { because: 'running' } }
    assertReplaceable(current, wanted)
    const now = backend.clock.now()
    const posting = toReplacement(stored, wanted, { elapsedMs: Math.max(0, now - stored.postedAt) })
    try {
      const window = wanted.keyFor === undefined ? {} : { window: wanted.keyFor }
      const replaced = await backend.keys.replace({ id, revision, keyRevision: taken.revision, posting, ...window })
      // A view may have read a later posting by now.
      if ((entry.stored?.revision ?? 0) < replaced.revision)
        this.#view.addOwnWrite(entry, { ...replaced, posting, writtenAt: now })
      return { entry, posting, taken: { because: 'waiting', replaced: true } }
    } catch (error) {
      if (error instanceof Unclaimable || error instanceof NotFound) return undefined
      throw error
    }
  }

  /** Returns the job that has left the board, as far as the trash and the history know it. Takes one or two round trips. */
  async readEnded(uuid: string, id: string, { posting: wanted }: CheckedPost): Promise<TakenJob> {
    const [trashed, [ended]] = await Promise.all([this.#backend.trash.entry(id), this.#backend.history.find([uuid])])
    const entry = newEntry(id, { follower: this.#view.follower })
    entry.ended = trashed ? 'TRASHED' : (ended?.outcome ?? 'COMPLETE')
    const posting = trashed?.posting ?? {
      ...{ uuid, name: ended?.name ?? wanted.name, details: toFlowDetails(ended?.flow ?? wanted.details.flow) },
      ...{
        priority: wanted.priority,
        ...defined({ queue: wanted.queue }),
        maxAttempts: wanted.maxAttempts,
        format: wanted.format,
      },
      ...(wanted.key === undefined ? {} : { key: wanted.key }),
      ...{ runs: ended?.runs ?? 0, attempts: [] },
    }
    return { entry, posting, taken: { because: 'window' } }
  }
}

function toFlowDetails(flow: string | undefined): Posting['details'] {
  return flow === undefined ? {} : { flow }
}

/**
 * Returns the posting that replaces another one: the new posting, with the uuid, dependencies and batch of the job that is there. The board
 * keeps the time of the first post, so the times that count from the new post are increased by the time between the two;
 * {@link toRestored} takes the difference away.
 */
function toReplacement(
  { posting: current }: StoredJob,
  wanted: Posting,
  { elapsedMs }: { readonly elapsedMs: number },
): Posting {
  const { after: _, batch: __, keyFor, expiresAfter, ...rest } = wanted
  const hasTimes = keyFor !== undefined || expiresAfter !== undefined
  const fields = {
    ...(current.after ? { after: current.after } : {}),
    ...(current.batch === undefined ? {} : { batch: current.batch }),
    ...(keyFor === undefined ? {} : { keyFor: elapsedMs + keyFor }),
    ...(expiresAfter === undefined ? {} : { expiresAfter: toExpirySteps(elapsedMs) + expiresAfter }),
    ...(hasTimes && elapsedMs > 0 ? { replacedAfter: elapsedMs } : {}),
  }
  return {
    ...rest,
    ...fields,
    uuid: current.uuid,
    format: toFormat({ ...wanted, ...fields, after: current.after, batch: current.batch }),
  }
}

/**
 * Returns the posting with which a job from the trash is posted anew: its window and its expiry count from its restoration, as long as its last post
 * asked for.
 */
export function toRestored({ delay: _, replacedAfter, keyFor, expiresAfter, ...rest }: Posting): Posting {
  const elapsed = replacedAfter ?? 0
  // The poster does not claim the job any more, and other owners may need longer to claim it. The job of a hold is of no use to them.
  if (rest.reservedFor !== undefined && rest.runs === 0 && rest.details.flow !== HOLD_FLOW)
    return {
      ...rest,
      ...(keyFor === undefined ? {} : { keyFor }),
      replacedAfter: 0,
      expiresAfter: MAX_DURATION_MS,
      attempts: [],
    }
  return {
    ...rest,
    // Postgres keeps the posting in the trash as it is, and stores what differs from it.
    ...(replacedAfter === undefined ? {} : { replacedAfter: 0 }),
    ...(keyFor === undefined ? {} : { keyFor: shorten(keyFor, elapsed) }),
    ...(expiresAfter === undefined ? {} : { expiresAfter: shorten(expiresAfter, toExpirySteps(elapsed)) }),
    attempts: [],
  }
}

/** Returns the rest of a time, and the whole time if nothing would be left: another program may have written it. */
function shorten(time: number, elapsed: number): number {
  return time > elapsed ? time - elapsed : time
}

/**
 * Refuses a post that names other dependencies, or another batch, than the job that it would replace: the job would not wait for them, or the
 * batch would not count it.
 *
 * @throws InvalidState
 */
function assertReplaceable(current: Posting, { after, batch }: Posting): void {
  const differs =
    (after !== undefined && toSet(after) !== toSet(current.after) && 'after') ||
    (batch !== undefined && batch !== current.batch && 'batch')
  if (!differs) return
  throw new InvalidState(
    `job ${current.uuid} (${current.name}), which waits with this key, has another \`${differs}\`: nothing was changed; ` +
      `omit ${differs}, or cancel that job first`,
  )
}

function toSet(dependencies: Posting['after'] = []): string {
  return dependencies
    .map(({ uuid, on = 'done' }) => `${uuid} ${on}`)
    .sort()
    .join()
}
