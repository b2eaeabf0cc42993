/** Comparison and creation of secrets. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Returns a new secret of 256 bits, for URLs and headers. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** Compares in a time that depends on neither text. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other))
}

/** Returns a text that only somebody with the secret can compute. */
export function derive(secret: string, purpose: string): string {
  return createHmac('sha256', secret).update(purpose).digest('base64url')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
