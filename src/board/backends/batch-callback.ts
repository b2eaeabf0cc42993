/**
 * Callbacks of batches for servers that cannot decode a posting: the posting without what is different each time, and the gaps where that belongs.
 * The posting is made with random numbers, which are found in its bytes and cut out.
 */
import { encodePlain } from '../../core/codec.ts'
import { type BatchDefinition, toBatchCallback } from '../model/job-batch.ts'
import type { Posting } from '../model/posting/posting.ts'
import { encodePosting, MAX_POSTING_BYTES } from '../model/posting/posting-codec.ts'

export interface CutCallback {
  readonly posting: Posting
  /** The encoded posting (msgpack) without what the end of the batch fills in. */
  readonly bytes: Uint8Array
  /**
   * The gaps in their order: for each a letter and the number of bytes before it. `u` is for the uuid, `g` for the generation, and `t`, `d` and `f`
   * for the numbers of jobs: all, done and failed ones.
   */
  readonly gaps: string
}

/** Returns the callback of a batch for the servers; undefined if there is none. @throws PayloadTooLarge for a callback that could not be posted */
export function cutCallback(definition: BatchDefinition, kind: 'done' | 'failed'): CutCallback | undefined {
  const [generation, total, done] = [Math.random(), Math.random(), Math.random()]
  const failed = kind === 'done' ? 0 : Math.random()
  const posting = toBatchCallback(definition, { generation, total, done, failed, sealed: true })
  if (!posting) return undefined
  const bytes = Buffer.from(encodePosting(posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES }))
  const values = { g: generation, t: total, d: done, ...(failed === 0 ? {} : { f: failed }) }
  const slots = Object.entries(values).map(([letter, value]) => {
    const encoded = encodePlain(value, 'msgpack')
    return { letter, at: bytes.indexOf(encoded), length: encoded.length }
  })
  slots.push({ letter: 'u', at: bytes.indexOf(posting.uuid), length: posting.uuid.length })
  slots.sort((a, b) => a.at - b.at)
  const parts: Uint8Array[] = []
  let [gaps, from, kept] = ['', 0, 0]
  for (const { letter, at, length } of slots) {
    parts.push(bytes.subarray(from, at))
    kept += at - from
    from = at + length
    gaps += `${letter}${kept}`
  }
  return { posting, bytes: Buffer.concat([...parts, bytes.subarray(from)]), gaps }
}
