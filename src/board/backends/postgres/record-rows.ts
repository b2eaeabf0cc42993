/** Reads records, and writes them together with posts. */
import { InvalidState } from '../../../core/errors.ts'
import { decodeText, encodeText, type SqlDriver } from '../../../postgres/index.ts'
import type { Posted, PostRequest, WriteRequest, Written } from '../../contract/index.ts'
import { encodePosting, MAX_POSTING_BYTES } from '../../model/posting.ts'
import { describeWrite, type RecordChange, type RecordName, type StoredRecord } from '../../model/record.ts'
import { type BatchRefusal, toBatchRefusalError } from './batch-rows.ts'
import { translateErrors } from './errors.ts'
import type { FunctionCaller } from './function-caller.ts'
import { jobId, textDigest } from './records.ts'
import { type EncodedPost, type PostAnswer, toPostParameters, toPostResults } from './writer.ts'

export interface RecordRowsOptions {
  readonly driver: SqlDriver
  readonly requests: FunctionCaller
  readonly schema: string
  readonly board: number
  /** Resolves when the sink has received everything committed before the call. */
  readonly catchUp: () => Promise<void>
  readonly statusOf: (jobs: readonly number[]) => Promise<ReadonlyMap<number, 'gone' | 'trashed'>>
}

type WriteAnswer =
  | { readonly revisions: readonly (number | null)[]; readonly posted: PostAnswer | null }
  | { readonly record: number }
  | { readonly post: number }
  | { readonly gone: readonly number[] }
  | { readonly batch: readonly [index: number, why: BatchRefusal] }

export class RecordRows {
  readonly #options: RecordRowsOptions

  constructor(options: RecordRowsOptions) {
    this.#options = options
  }

  async list(kind: string): Promise<StoredRecord[]> {
    const rows = await this.#query('board = $1 AND kind = $2', [kind])
    return rows.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async get({ kind, id }: RecordName): Promise<StoredRecord | undefined> {
    const [found] = await this.#query('board = $1 AND kind = $2 AND digest = $3', [kind, textDigest(id)])
    return found
  }

  async write({ changes, posts }: WriteRequest): Promise<Written> {
    const { requests, schema, board, catchUp } = this.#options
    const encoded = posts.map(encodePost)
    const what = describeWrite({ changes, posts })
    const values = [board, ...toChangeParameters(changes), ...toOptionalPosts(encoded)]
    try {
      const { answer, wasRecovered } = await requests.send({ what, call: `${schema}.write_records`, values })
      return await this.#toWritten(answer as WriteAnswer, { changes, posts: encoded, wasRecovered })
    } finally {
      await catchUp()
    }
  }

  async #toWritten(
    answer: WriteAnswer,
    asked: { changes: readonly RecordChange[]; posts: readonly EncodedPost[]; wasRecovered: boolean },
  ): Promise<Written> {
    const { changes, posts, wasRecovered } = asked
    if ('record' in answer) {
      const { kind = '', id = '' } = changes[answer.record] ?? {}
      return { done: false, conflict: { kind, id } }
    }
    if ('post' in answer) return { done: false, conflict: { key: posts[answer.post]?.request.posting.key ?? '' } }
    if ('gone' in answer) return { done: false, conflict: { gone: answer.gone.map(jobId) } }
    if ('batch' in answer) throw toRefusal(posts, answer.batch)
    const ids = answer.posted?.ids ?? []
    const fates = wasRecovered ? await this.#options.statusOf(ids) : new Map()
    const results = answer.posted ? toPostResults(posts, answer.posted, fates) : []
    const posted = results.flatMap((result): Posted[] => ('value' in result ? [result.value] : []))
    return { done: true, revisions: answer.revisions.map((revision) => revision ?? undefined), posted }
  }

  async #query(where: string, values: readonly unknown[]): Promise<StoredRecord[]> {
    const { driver, schema, board } = this.#options
    const text = `SELECT kind, id, value, revision FROM ${schema}.records WHERE ${where}`
    const { rows } = await translateErrors('reading records', () => driver.query(text, [board, ...values]))
    return rows.map(({ kind, id, value, revision }) => ({
      kind: String(kind),
      id: decodeText(String(id)),
      revision: Number(revision),
      bytes: value as Uint8Array,
    }))
  }
}

/** Returns the record of a notification: `kind id`. */
export function parseRecordNotification(payload: string): RecordName[] {
  const cut = payload.indexOf(' ')
  return cut < 0 ? [] : [{ kind: payload.slice(0, cut), id: decodeText(payload.slice(cut + 1)) }]
}

function toChangeParameters(changes: readonly RecordChange[]): unknown[] {
  return [
    changes.map(({ kind }) => kind),
    changes.map(({ id }) => textDigest(id)),
    changes.map(({ id }) => encodeText(id)),
    changes.map(({ revision = null }) => revision),
    Buffer.concat(changes.flatMap(({ bytes }) => bytes ?? [])),
    changes.map(({ bytes }) => bytes?.length ?? null),
  ]
}

function toRefusal(posts: readonly EncodedPost[], [index, why]: readonly [number, BatchRefusal]): Error {
  const refused = posts[index]
  if (refused) return toBatchRefusalError(why, refused.request.posting)
  return new InvalidState('the server has refused a post that was not sent')
}

function encodePost(request: PostRequest): EncodedPost {
  return { request, bytes: encodePosting(request.posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES }) }
}

function toOptionalPosts(posts: readonly EncodedPost[]): unknown[] {
  const parameters = toPostParameters(posts)
  return posts.length === 0 ? parameters.map(() => null) : parameters
}
