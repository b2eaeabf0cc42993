/** What Redis answers and publishes, read. */
import { decode } from '../../core/codec.ts'

export function listOf(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer
  throw new TypeError('Redis answered with something else than a list')
}

export function decoded<T>(bytes: unknown): T {
  if (bytes instanceof Uint8Array) return decode(bytes, 'msgpack') as T
  throw new TypeError('Redis answered with something else than bytes')
}

/** Undefined for what was published by somebody else. */
export function published(message: Buffer): { version: number; entries: readonly string[] } | undefined {
  try {
    const [version, entries] = decoded<[number | bigint, readonly string[]]>(message)
    return { version: Number(version), entries }
  } catch {
    return undefined
  }
}
