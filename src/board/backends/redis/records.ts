/** Reads records, and writes them together with posts. */
import { decode, encodePlain, toFields } from '../../../core/codec.ts'
import type { BackendRecords, Posted, PostRequest, WriteRequest, Written } from '../../contract/index.ts'

import { MAX_POSTING_BYTES, toCountedBytes } from '../../model/posting/posting-codec.ts'
import { describeWrite, type RecordChange, type RecordName, type StoredRecord } from '../../model/record.ts'
import type { RedisBoard } from './commit/board.ts'
import {
  batchRefusalError,
  type ScriptStep,
  SMALL_STEP_BYTES,
  toDependencyWords,
  toGoneIds,
  toKeyField,
} from './commit/steps.ts'
import type { RedisJobs } from './jobs.ts'
import { decodeText, encodePostingWithin } from './store/encodings.ts'
import { recordField, toOrder, toPlaceWord } from './store/layout.ts'
import { toList } from './store/replies.ts'

/** The number of fields that one command of a scan looks at. */
const SCAN_COUNT = '1000'

export class RedisRecords implements BackendRecords {
  readonly #board: RedisBoard
  readonly #jobs: Pick<RedisJobs, 'locate'>

  constructor(board: RedisBoard, jobs: Pick<RedisJobs, 'locate'>) {
    this.#board = board
    this.#jobs = jobs
  }

  async write(request: WriteRequest): Promise<Written> {
    const { step, postings } = writeStep(request)
    const { done, details, isRepeated } = await this.#board.submit(step)
    const refused = done || details[0] !== 'batch' ? undefined : request.posts[Number(details[3])]
    if (refused) throw batchRefusalError(details, refused.posting)
    if (!done) return { done: false, conflict: toConflict(details, request) }
    const [revisions, ids] = details as [readonly string[], readonly string[]]
    const posted = postings.map((bytes, index): Posted => {
      const id = ids[index] ?? ''
      return { created: true, id, revision: 0, order: toOrder(id), bytes: toCountedBytes(bytes, 'msgpack') }
    })
    return {
      done: true,
      revisions: request.changes.map((_, index) => (revisions[index] ? Number(revisions[index]) : undefined)),
      posted: isRepeated ? await Promise.all(posted.map((each) => this.#jobs.locate(each))) : posted,
    }
  }

  /** Scans the hash: Redis answers other clients meanwhile. A scan may return a field twice. */
  async list(kind: string): Promise<StoredRecord[]> {
    const found = new Map<string, StoredRecord>()
    let cursor = '0'
    do {
      const args = [cursor, 'MATCH', `${kind}/*`, 'COUNT', SCAN_COUNT]
      const [next, fields] = toList(await this.#board.command('hscan', 'records', ...args))
      cursor = String(next)
      const values = toList(fields)
      for (let at = 1; at < values.length; at += 2) {
        const record = parseRecord(kind, values[at])
        if (record) found.set(record.id, record)
      }
    } while (cursor !== '0')
    return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async get(name: RecordName): Promise<StoredRecord | undefined> {
    return parseRecord(name.kind, await this.#board.value('records', recordField(name)))
  }

  async watch(kind: string): Promise<void> {
    await this.#board.open.session.watch('records', kind)
  }

  async unwatch(kind: string): Promise<void> {
    await this.#board.opened?.session.unwatch('records', kind)
  }
}

/** Returns the step that changes records and posts jobs, with the encoded postings. */
function writeStep({ changes, posts }: WriteRequest): {
  readonly step: ScriptStep
  readonly postings: readonly Uint8Array[]
} {
  const values = changes.flatMap(({ id, bytes }) => (bytes ? [encodePlain({ id, value: bytes }, 'msgpack')] : []))
  const postings = posts.map(({ posting }) => encodePostingWithin(posting, { limit: MAX_POSTING_BYTES }))
  const blob = Buffer.concat([...values, ...postings])
  const lengths = values.values()
  const step: ScriptStep = {
    arguments: [
      'write',
      changes.map(recordField),
      changes.map(({ revision }) => (revision === undefined ? '' : String(revision))),
      changes.map(({ bytes }) => (bytes ? String(lengths.next().value?.length) : '')),
      posts.flatMap((post, index) => toPostWords(post, postings[index]?.length ?? 0)),
      blob,
    ],
    what: describeWrite({ changes, posts }),
    bytes: blob.length + SMALL_STEP_BYTES * (1 + changes.length + posts.length),
    grows: true,
  }
  return { step, postings }
}

/** Returns the conflict of a refused write. */
function toConflict(
  [what, index]: readonly unknown[],
  { changes, posts }: WriteRequest,
): Extract<Written, { readonly done: false }>['conflict'] {
  if (what === 'dependency') return { gone: toGoneIds(index) }
  if (what === 'post') return { key: posts[Number(index)]?.posting.key ?? '' }
  const { kind = '', id = '' }: Partial<RecordChange> = changes[Number(index)] ?? {}
  return { kind, id }
}

function toPostWords({ posting, after = [], member = '' }: PostRequest, length: number): string[] {
  const { uuid, delay, keyFor, batch = '' } = posting
  return [
    String(toPlaceWord(posting)),
    String(length),
    uuid,
    toKeyField(posting) ?? '',
    delay === undefined ? '' : String(delay),
    ...[batch, member],
    keyFor === undefined ? '' : String(keyFor),
    String(after.length),
    ...toDependencyWords(after),
  ]
}

/** Parses `revision:record`; undefined for anything else. */
function parseRecord(kind: string, value: unknown): StoredRecord | undefined {
  if (!(value instanceof Uint8Array)) return undefined
  const cut = value.indexOf(':'.charCodeAt(0))
  const revision = Number(decodeText(value.subarray(0, cut)))
  if (cut < 1 || !Number.isSafeInteger(revision)) return undefined
  try {
    const { id, value: bytes } = toFields(decode(value.subarray(cut + 1), 'msgpack')) ?? {}
    return typeof id === 'string' && bytes instanceof Uint8Array ? { kind, id, revision, bytes } : undefined
  } catch {
    return undefined
  }
}
