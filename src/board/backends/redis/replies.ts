/** What Redis answers and publishes, read. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { decode } from '../../../core/codec.ts'

export function toList(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer
  throw new TypeError('Redis answered with something else than a list')
}

export function decodeReply<T>(bytes: unknown): T {
  if (bytes instanceof Uint8Array) return decode(bytes, 'msgpack') as T
  throw new TypeError('Redis answered with something else than bytes')
}

export interface Publication {
  readonly version: number
  readonly entries: readonly string[]
}

/** As long as a SHA-1 is in hexadecimal digits. */
const SIGNATURE_BYTES = 40
/** What many thousand changes take; the entries of a longer publication are asked for instead. */
const MAX_PUBLICATION_BYTES = 4 * 1024 * 1024

/**
 * Reads what was published on the channel of a board. Everybody whom Redis lets publish there can put anything into it, so
 * nothing is decoded before its signature is verified: `told` in `scripts/prelude.ts` makes it.
 *
 * @returns undefined for what the scripts of this release did not publish: it says no more than that something may have changed
 */
export function parsePublication(message: Buffer, secret: string): Publication | undefined {
  if (secret === '' || message.length <= SIGNATURE_BYTES || message.length > MAX_PUBLICATION_BYTES) return undefined
  const signature = message.subarray(0, SIGNATURE_BYTES)
  const content = message.subarray(SIGNATURE_BYTES)
  if (!timingSafeEqual(signature, Buffer.from(computeSignature(content, secret)))) return undefined
  return decodePublication(content)
}

/** Undefined for entries of another shape: those of a release that is not known here. */
function decodePublication(content: Buffer): Publication | undefined {
  try {
    const [version, entries] = toList(decodeReply(content))
    if (!Number.isSafeInteger(Number(version)) || !Array.isArray(entries)) return undefined
    if (!entries.every((entry) => typeof entry === 'string')) return undefined
    return { version: Number(version), entries }
  } catch {
    return undefined
  }
}

/** Hashed twice, since the hash of a text that begins with a secret can be continued by whoever does not know it. */
function computeSignature(content: Buffer, secret: string): string {
  return sha1(secret, sha1(secret, content))
}

function sha1(secret: string, content: Buffer | string): string {
  return createHash('sha1').update(secret).update(content).digest('hex')
}
