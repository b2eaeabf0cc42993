/**
 * Postings on a board that is shared with TaskFlow: its JSON.
 *
 * What this library has to say of a job (its runs, its attempts, a rest) it writes into fields of its own, which TaskFlow
 * passes over. All else stays as the poster wrote it: fields that nobody here knows, and numbers that JavaScript cannot
 * hold, such as 2.0 or an id of 20 digits, which a Python service would miss when the job comes back to it.
 */
import type { Encoding } from '../../../../core/codec.ts'
import { InvalidArgument } from '../../../../core/errors.ts'
import { encodePosting, type Posting, readSizedPosting, type SizedPosting } from '../../../model/posting.ts'

/** The text of fields that have to be written as they were read. It travels along wherever a posting is copied. */
const VERBATIM_FIELDS = Symbol('fields as they were written')

type VerbatimPosting = Posting & { readonly [VERBATIM_FIELDS]?: ReadonlyMap<string, string> }

/** What changes from claim to claim is never written as it was read. */
const CHANGING_FIELDS: ReadonlySet<string> = new Set(['runs', 'attempts', 'delay'] satisfies (keyof Posting)[])

/** @throws PayloadTooLarge; InvalidArgument where the details hold what JSON does not, such as a Date */
export function encodeSharedPosting(posting: Posting, options: { encoding: Encoding; limit: number }): Uint8Array {
  if (options.encoding !== 'json') return encodePosting(posting, options)
  const kept = (posting as VerbatimPosting)[VERBATIM_FIELDS]
  if (!kept?.has('details')) assertJson(posting.details, `job ${posting.uuid} (${posting.name}): details`)
  const bytes = encodePosting(posting, options)
  if (!kept) return bytes
  const written = [...sliceFields(decodeText(bytes))].map(([field, text]) => {
    return `${JSON.stringify(field)}:${kept.get(field) ?? text}`
  })
  return Buffer.from(`{${written.join(',')}}`)
}

/** @throws InvalidPosting whatever the bytes are */
export function decodeSharedPosting(bytes: Uint8Array, encoding: Encoding): Posting {
  return decodeSizedPosting(bytes, encoding).posting
}

/** Reads a posting, and how large it counts. @throws InvalidPosting whatever the bytes are */
export function decodeSizedPosting(bytes: Uint8Array, encoding: Encoding): SizedPosting {
  const sized = readSizedPosting(bytes, encoding)
  if (encoding !== 'json') return sized
  const kept = [...sliceFields(decodeText(bytes))].filter(
    ([field, text]) => !CHANGING_FIELDS.has(field) && !isExactJson(text),
  )
  if (kept.length > 0) Object.assign(sized.posting, { [VERBATIM_FIELDS]: new Map(kept) })
  return sized
}

/** Texts, brackets and separators, and everything else: numbers, true, false, null. */
const JSON_TOKEN_PATTERN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/g

/** What stands behind each field of a JSON object, as it is written there. For text that `JSON.parse` takes. */
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

/** Whether reading this JSON and writing it again changes no number in it. */
function isExactJson(text: string): boolean {
  for (const [token] of text.matchAll(JSON_TOKEN_PATTERN)) {
    if (/^[-\d]/.test(token) && String(Number(token)) !== token) return false
  }
  return true
}

/** What would come back as something else, or not at all, is refused while nothing is posted. */
function assertJson(value: unknown, where: string): void {
  const wrong = findNonJson(value)
  if (wrong !== undefined) {
    throw new InvalidArgument(
      `${where} is ${wrong}; this board is shared with TaskFlow and holds JSON: post it as text`,
    )
  }
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value)) assertJson(item, `${where}.${key}`)
}

function findNonJson(value: unknown): string | undefined {
  if (value instanceof Date) return 'a Date'
  if (value instanceof Uint8Array) return 'bytes'
  if (typeof value === 'bigint') return 'a bigint'
  return typeof value === 'number' && !Number.isFinite(value) ? 'no finite number' : undefined
}

export function decodeText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
