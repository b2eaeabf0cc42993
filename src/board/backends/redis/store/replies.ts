/** Reads answers and publications of Redis. */
import { hash, timingSafeEqual } from 'node:crypto'
import { decode } from '../../../../core/codec.ts'
import { decodeText } from './encodings.ts'

export function toList(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer
  throw new TypeError('Redis did not answer with a list')
}

/** Returns the elements of a list as texts; null is `null`. */
export function toTexts(answer: unknown): string[] {
  return toList(answer).map((value) => (value instanceof Uint8Array ? decodeText(value) : String(value)))
}

export function decodeReply<T>(bytes: unknown): T {
  if (bytes instanceof Uint8Array) return decode(bytes, 'msgpack') as T
  throw new TypeError('Redis did not answer with bytes')
}

export interface Publication {
  readonly version: number
  readonly entries: readonly string[]
}

/** The length of a SHA-1 in hexadecimal digits. */
const SIGNATURE_BYTES = 40
/** The size of many thousand changes; a longer publication is not decoded, and its entries are read from the log. */
const MAX_PUBLICATION_BYTES = 4 * 1024 * 1024

/**
 * Parses a message from the channel of a board. Any client that may publish there can send any content, so nothing is
 * decoded before its signature is verified. `publish` in `scripts/shared/board.lua` creates the signature.
 *
 * @returns undefined for a message that the scripts of this release did not publish: it only hints that something may have changed
 */
export function parsePublication(message: Buffer, secret: string): Publication | undefined {
  if (secret === '' || message.length <= SIGNATURE_BYTES || message.length > MAX_PUBLICATION_BYTES) return undefined
  const signature = message.subarray(0, SIGNATURE_BYTES)
  const content = message.subarray(SIGNATURE_BYTES)
  if (!timingSafeEqual(signature, Buffer.from(computeSignature(content, secret)))) return undefined
  return decodePublication(content)
}

/** Decodes a publication; returns undefined for entries of another shape, which an unknown release may publish. */
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

/** Computes a signature. It hashes twice: a single hash of secret and content can be extended without knowing the secret. */
function computeSignature(content: Buffer, secret: string): string {
  return hash('sha1', secret + hash('sha1', Buffer.concat([Buffer.from(secret), content])))
}
