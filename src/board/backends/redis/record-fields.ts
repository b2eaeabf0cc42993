/** Reads records, and writes them together with posts. */
import { decode, encodePlain, toFields } from '../../../core/codec.ts'
import type { PostRequest, WriteRequest } from '../../contract/index.ts'
import { rank } from '../../model/claim-order.ts'
import { MAX_POSTING_BYTES } from '../../model/posting.ts'
import { describeWrite, type RecordChange, type RecordName, type StoredRecord } from '../../model/record.ts'
import { type Layout, recordField } from './layout.ts'
import { encodePostingWithin } from './records.ts'
import { toList } from './replies.ts'
import type { RedisSession } from './session.ts'
import { type ScriptStep, toDependencyWords, toKeyField } from './steps.ts'

/** The number of fields that one command of a scan looks at. */
const SCAN_COUNT = '1000'

/** Returns the step that changes records and posts jobs, with the encoded postings. */
export function writeStep({ changes, posts }: WriteRequest): {
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
    bytes: blob.length + 100 * (1 + changes.length + posts.length),
    grows: true,
  }
  return { step, postings }
}

/** Returns the conflict of a refused write. */
export function toConflict(
  [what, index]: readonly unknown[],
  { changes, posts }: WriteRequest,
): RecordName | { readonly key: string } | { readonly gone: readonly string[] } {
  if (what === 'dependency') return { gone: (Array.isArray(index) ? index : [index]).map(String) }
  if (what === 'post') return { key: posts[Number(index)]?.posting.key ?? '' }
  const { kind = '', id = '' }: Partial<RecordChange> = changes[Number(index)] ?? {}
  return { kind, id }
}

/** Reads the records of a board. */
export class RecordReader {
  readonly #session: RedisSession
  readonly #key: string

  constructor({ session, layout }: { readonly session: RedisSession; readonly layout: Layout }) {
    this.#session = session
    this.#key = layout.key('records')
  }

  /** Scans the hash: Redis answers other clients meanwhile. A scan may return a field twice. */
  async list(kind: string): Promise<StoredRecord[]> {
    const found = new Map<string, StoredRecord>()
    let cursor = '0'
    do {
      const args = [this.#key, cursor, 'MATCH', `${kind}/*`, 'COUNT', SCAN_COUNT]
      const [next, fields] = toList(await this.#session.command('hscan', ...args))
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
    return parseRecord(name.kind, await this.#session.command('hget', this.#key, recordField(name)))
  }
}

function toPostWords({ posting, after = [], member = '' }: PostRequest, length: number): string[] {
  const { priority, uuid, delay, keyFor, batch = '' } = posting
  return [
    String(rank(priority)),
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
  const revision = Number(Buffer.from(value.subarray(0, cut)).toString())
  if (cut < 1 || !Number.isSafeInteger(revision)) return undefined
  try {
    const { id, value: bytes } = toFields(decode(value.subarray(cut + 1), 'msgpack')) ?? {}
    return typeof id === 'string' && bytes instanceof Uint8Array ? { kind, id, revision, bytes } : undefined
  } catch {
    return undefined
  }
}
