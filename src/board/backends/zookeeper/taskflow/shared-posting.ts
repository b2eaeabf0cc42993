/**
 * The JSON of postings on a board that is shared with TaskFlow.
 *
 * This library writes its own data about a job (runs, attempts, a delay) into fields of its own, which TaskFlow
 * ignores. Everything else stays as the poster wrote it: fields that this library does not know, and numbers that
 * JavaScript cannot represent, such as 2.0 or an id of 20 digits, which a Python service would miss when it gets the
 * job back.
 */
import { InvalidArgument, isDate } from '../../../../core/errors.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import {
  encodePosting,
  type PostingLimit,
  readSizedPosting,
  type SizedPosting,
} from '../../../model/posting/posting-codec.ts'

/**
 * A field that is kept and not applied: TaskFlow's services do not record that they have started a job, so a job that they have tried would
 * expire. Posts with it are refused (`claims/supported.ts`), but another program may have written it.
 */
const UNAPPLIED_FIELD = 'expiresAfter'

/** The text of fields that must be written as they were read. It is copied together with the posting. */
const VERBATIM_FIELDS = Symbol('fields as they were written')

type VerbatimPosting = Posting & { readonly [VERBATIM_FIELDS]?: ReadonlyMap<string, string> }

/** Fields that change from claim to claim; they are never written as they were read. */
const CHANGING_FIELDS: ReadonlySet<string> = new Set(['runs', 'attempts', 'delay'] satisfies (keyof Posting)[])

/**
 * Encodes a posting. @throws PayloadTooLarge; InvalidArgument if the details hold a value that JSON cannot hold, such
 * as a Date
 */
export function encodeSharedPosting(posting: Posting, limit: PostingLimit): Uint8Array {
  const kept = (posting as VerbatimPosting)[VERBATIM_FIELDS]
  if (!kept?.has('details')) assertJson(posting.details, `job ${posting.uuid} (${posting.name}): details`)
  const bytes = encodePosting(posting, { ...limit, encoding: 'json' })
  if (!kept) return bytes
  const fields = new Map(sliceFields(decodeText(bytes)))
  const unapplied = kept.get(UNAPPLIED_FIELD)
  if (unapplied !== undefined) fields.set(UNAPPLIED_FIELD, unapplied)
  const written = [...fields].map(([field, text]) => `${JSON.stringify(field)}:${kept.get(field) ?? text}`)
  return Buffer.from(`{${written.join(',')}}`)
}

/**
 * Decodes a posting and returns it with its counted size. @throws InvalidPosting for any bytes that are not a posting
 */
export function decodeSharedPosting(bytes: Uint8Array): SizedPosting {
  const sized = readSizedPosting(bytes, 'json')
  const kept = [...sliceFields(decodeText(bytes))].filter(
    ([field, text]) => field === UNAPPLIED_FIELD || (!CHANGING_FIELDS.has(field) && !isExactJson(text)),
  )
  if (kept.length === 0) return sized
  const { [UNAPPLIED_FIELD]: _, ...posting } = sized.posting
  const verbatim: VerbatimPosting = { ...posting, [VERBATIM_FIELDS]: new Map(kept) }
  return { ...sized, posting: verbatim }
}

/** Matches strings, brackets, separators, and everything else: numbers, true, false, null. */
const JSON_TOKEN_PATTERN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/g

/** Returns the text of the value of each field of a JSON object, as it is written. The text must be valid JSON. */
export function sliceFields(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  let field: string | undefined
  let start = 0
  let depth = 0
  for (const { 0: token, index } of text.matchAll(JSON_TOKEN_PATTERN)) {
    if (token === '}' || token === ']') depth -= 1
    const over = (depth === 1 && token === ',') || (depth === 0 && token === '}')
    if (over && field !== undefined) {
      fields.set(field, text.slice(start, index).trim())
      field = undefined
    } else if (depth === 1 && token === ':') start = index + 1
    else if (depth === 1 && field === undefined && token.startsWith('"')) field = String(JSON.parse(token))
    if (token === '{' || token === '[') depth += 1
  }
  return fields
}

/** Returns whether reading this JSON and writing it again changes no number in it. */
function isExactJson(text: string): boolean {
  for (const [token] of text.matchAll(JSON_TOKEN_PATTERN)) {
    if (/^[-\d]/.test(token) && String(Number(token)) !== token) return false
  }
  return true
}

/** Refuses values that would be read back as another value, or not at all, before anything is posted. */
function assertJson(value: unknown, where: string): void {
  const wrong = findNonJson(value)
  if (wrong !== undefined) {
    throw new InvalidArgument(
      `${where} is ${wrong}, which JSON cannot hold; this board is shared with TaskFlow: post the value as text`,
    )
  }
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value)) assertJson(item, `${where}.${key}`)
}

function findNonJson(value: unknown): string | undefined {
  if (isDate(value)) return 'a Date'
  if (value instanceof Uint8Array) return 'bytes'
  if (typeof value === 'bigint') return 'a bigint'
  return typeof value === 'number' && !Number.isFinite(value) ? 'not a finite number' : undefined
}

export function decodeText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
