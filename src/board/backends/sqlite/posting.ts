/** Posts jobs, replaces the posting of a job that waits, and writes records together with posts. */

import { Unclaimable } from '../../../core/errors.ts'
import { encodeText } from '../../../core/texts.ts'
import type { Posted, PostRequest, Replaced, ReplaceRequest, Written } from '../../contract/index.ts'
import { rank } from '../../model/claim-order.ts'
import { duplicateMemberError } from '../../model/post-batch.ts'
import { encodePosting, MAX_POSTING_BYTES, toCountedBytes } from '../../model/posting.ts'
import { changesLimits, type RecordChange } from '../../model/record.ts'
import type { Batches } from './batches.ts'
import type { BoardPlace, Changes } from './changes.ts'
import type { Dependencies } from './dependencies.ts'
import type { Jobs } from './jobs.ts'
import type { Keys } from './keys.ts'
import type { Limits } from './limits.ts'
import type { Records } from './records.ts'
import { LARGE_BODY_BYTES, NEVER } from './rows.ts'

/** A posting with its bytes: it is encoded before its transaction begins. */
export interface EncodedPost {
  readonly request: PostRequest
  readonly bytes: Uint8Array
}

/** @throws PayloadTooLarge, InvalidArgument */
export function encodePost(request: PostRequest): EncodedPost {
  return { request, bytes: encodePosting(request.posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES }) }
}

export interface PostingOptions {
  readonly place: BoardPlace
  readonly changes: Changes
  readonly jobs: Jobs
  readonly keys: Keys
  readonly dependencies: Dependencies
  readonly batches: Batches
  readonly limits: Limits
  readonly records: Records
}

export class PostingSteps {
  readonly #options: PostingOptions

  constructor(options: PostingOptions) {
    this.#options = options
  }

  /** @throws NotFound, InvalidState, Duplicate if the batch of the posting refuses it */
  post(post: EncodedPost): Posted {
    const { dependencies, batches, keys } = this.#options
    const { posting, after = [], member } = post.request
    const gone = after.length > 0 ? dependencies.findGone(after) : []
    if (gone.length > 0) return { created: false, gone }
    const batch = batches.numberFor(posting, member)
    const holder = keys.holderOf(posting.key)
    if (holder) return { created: false, ...holder }
    return this.#add(post, batch)
  }

  #add({ request, bytes }: EncodedPost, batch: number | null): Posted {
    const { batches, jobs } = this.#options
    const { posting, after } = request
    if (batch !== null) batches.countPost(batch)
    return { created: true, ...jobs.add({ posting, bytes, after, batch }) }
  }

  /** Changes records and posts jobs, or does nothing of it. @throws as {@link post} */
  write(changes: readonly RecordChange[], posts: readonly EncodedPost[]): Written {
    const { records, keys, dependencies, batches, limits } = this.#options
    const record = records.findConflict(changes)
    if (record) return { done: false, conflict: record }
    const names = new Set<string>()
    for (const { key } of posts.map(({ request }) => request.posting)) {
      if (key === undefined) continue
      if (names.has(key) || keys.holderOf(key)) return { done: false, conflict: { key } }
      names.add(key)
    }
    const gone = dependencies.findGone(posts.flatMap(({ request: { after = [] } }) => after))
    if (gone.length > 0) return { done: false, conflict: { gone } }
    const counted = this.#batchesFor(posts, batches)
    if (changesLimits(changes)) limits.noteChange()
    const revisions = changes.map((change) => records.apply(change))
    return { done: true, revisions, posted: posts.map((post, index) => this.#add(post, counted[index] ?? null)) }
  }

  /** Returns the number of the batch of each post. @throws Duplicate also if two of the posts are the same job of a batch */
  #batchesFor(posts: readonly EncodedPost[], batches: Batches): (number | null)[] {
    const members = new Set<string>()
    return posts.map(({ request: { posting, member } }) => {
      const number = batches.numberFor(posting, member)
      if (number === null) return null
      const name = `${number}/${posting.uuid}`
      if (members.has(name)) throw duplicateMemberError(posting.batch ?? '', posting)
      members.add(name)
      return number
    })
  }

  /** @throws NotFound; Unclaimable if it was claimed, changed or cancelled meanwhile */
  replace({ id, revision, posting, window }: ReplaceRequest, bytes: Uint8Array): Replaced {
    const { place, changes, jobs, keys } = this.#options
    const row = jobs.requireUnclaimed(id, revision)
    if (row['cancelled_by'] !== null) throw new Unclaimable(`${id} was cancelled`)
    const [job, at] = [Number(row['id']), place.now()]
    const due = posting.delay === undefined ? 0 : at + posting.delay
    const waits = row['due_when_ready'] !== null
    const isLarge = bytes.length >= LARGE_BODY_BYTES
    const placed = { rank: rank(posting.priority), due: waits ? NEVER : due }
    place.db.run(
      `UPDATE jobs SET body = ?, life = NULL, uuid = ?, rank = ?, revision = revision + 1, written_at = ?, due_at = ?,
        due_when_ready = ? WHERE id = ?`,
      ...[isLarge ? null : bytes, encodeText(posting.uuid), placed.rank, at, placed.due, waits ? due : null, job],
    )
    place.db.run('DELETE FROM bodies WHERE job = ?', job)
    if (isLarge) place.db.run('INSERT INTO bodies (job, body) VALUES (?, ?)', job, bytes)
    if (posting.key !== undefined) keys.take(posting.key, { job, uuid: posting.uuid, window })
    changes.addPlaced('replaced', job, placed)
    return { revision: revision + 1, bytes: toCountedBytes(bytes, 'msgpack') }
  }
}
