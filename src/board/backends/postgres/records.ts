/** Reads and watches records, and writes them together with posts: see `functions/records.sql`. */
import { InvalidState } from '../../../core/errors.ts'
import { decodeText, encodeText } from '../../../postgres/index.ts'
import type { BackendRecords, Posted, WriteRequest, Written } from '../../contract/index.ts'
import { describeWrite, type RecordChange, type RecordName, type StoredRecord } from '../../model/record.ts'
import {
  type BatchRefusal,
  type EncodedPost,
  encodePost,
  NONE_LEFT,
  type PostAnswer,
  readLeftStatuses,
  toBatchRefusalError,
  toPostParameters,
  toPostResults,
} from './commit/post-calls.ts'
import type { BoardWriter } from './commit/writer.ts'
import { Watches } from './connection/watches.ts'
import type { PostgresBoard } from './store/board.ts'
import { jobId, textDigest } from './store/rows.ts'
import { recordsChannel } from './store/schema.ts'

type WriteAnswer =
  | { readonly revisions: readonly (number | null)[]; readonly posted: PostAnswer | null }
  | { readonly record: number }
  | { readonly post: number }
  | { readonly gone: readonly number[] }
  | { readonly batch: readonly [index: number, why: BatchRefusal] }

interface EncodedWrite {
  readonly changes: readonly RecordChange[]
  readonly posts: readonly EncodedPost[]
}

export class PostgresRecords implements BackendRecords {
  /** The kinds of records whose changes are to be reported. */
  readonly watches: Watches
  readonly #board: PostgresBoard
  readonly #writer: BoardWriter

  constructor(board: PostgresBoard, writer: BoardWriter) {
    this.#board = board
    this.#writer = writer
    this.watches = new Watches(board, {
      channelOf: recordsChannel,
      report: (payload) => (payload === undefined ? board.sink.records() : this.#reportChange(payload)),
    })
  }

  async list(kind: string): Promise<StoredRecord[]> {
    const records = await this.#read('board = $1 AND kind = $2', [kind])
    return records.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async get({ kind, id }: RecordName): Promise<StoredRecord | undefined> {
    const [found] = await this.#read('board = $1 AND kind = $2 AND digest = $3', [kind, textDigest(id)])
    return found
  }

  async write({ changes, posts }: WriteRequest): Promise<Written> {
    this.#board.assertOpen()
    const encoded = posts.map(encodePost)
    const what = describeWrite({ changes, posts })
    return this.#writer.afterCatchUp(this.#write(what, { changes, posts: encoded }))
  }

  watch(kind: string): Promise<void> {
    return this.watches.add(kind)
  }

  unwatch(kind: string): Promise<void> {
    return this.watches.remove(kind)
  }

  async #write(what: string, write: EncodedWrite): Promise<Written> {
    const values = [...toChangeParameters(write.changes), ...toOptionalPosts(write.posts)]
    const { answer, wasRecovered } = await this.#writer.others.send({ what, name: 'write_records', values })
    return this.#toWritten(answer as WriteAnswer, { ...write, wasRecovered })
  }

  async #toWritten(
    answer: WriteAnswer,
    { changes, posts, wasRecovered }: EncodedWrite & { readonly wasRecovered: boolean },
  ): Promise<Written> {
    if ('record' in answer) {
      const { kind = '', id = '' } = changes[answer.record] ?? {}
      return { done: false, conflict: { kind, id } }
    }
    if ('post' in answer) return { done: false, conflict: { key: posts[answer.post]?.request.posting.key ?? '' } }
    if ('gone' in answer) return { done: false, conflict: { gone: answer.gone.map(jobId) } }
    if ('batch' in answer) throw toRefusal(posts, answer.batch)
    const ids = answer.posted?.ids ?? []
    const statuses = wasRecovered ? await readLeftStatuses(this.#board, ids) : NONE_LEFT
    const results = answer.posted ? toPostResults(posts, answer.posted, statuses) : []
    const posted = results.flatMap((result): Posted[] => ('value' in result ? [result.value] : []))
    return { done: true, revisions: answer.revisions.map((revision) => revision ?? undefined), posted }
  }

  async #read(where: string, values: readonly unknown[]): Promise<StoredRecord[]> {
    const text = `SELECT kind, id, value, revision FROM @.records WHERE ${where}`
    const rows = await this.#board.ask('reading records', text, values)
    return rows.map(({ kind, id, value, revision }) => ({
      kind: String(kind),
      id: decodeText(String(id)),
      revision: Number(revision),
      bytes: value as Uint8Array,
    }))
  }

  /** Reports the record of a notification, which is `kind id`, if its kind is watched. */
  #reportChange(payload: string): void {
    const cut = payload.indexOf(' ')
    const kind = payload.slice(0, cut)
    if (cut >= 0 && this.watches.has(kind)) this.#board.sink.records([{ kind, id: decodeText(payload.slice(cut + 1)) }])
  }
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

function toOptionalPosts(posts: readonly EncodedPost[]): unknown[] {
  const parameters = toPostParameters(posts)
  return posts.length === 0 ? parameters.map(() => null) : parameters
}
