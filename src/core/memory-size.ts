/** Sizes of memory as people write them. */
import { getHeapStatistics } from 'node:v8'
import { InvalidArgument } from './errors.ts'

/** A size as people write it: bytes, or a number with its unit: `'512MB'`, `'1.5GB'`. A kilobyte has 1,024 bytes. */
export type MemorySize = number | `${number}${'KB' | 'MB' | 'GB'}`

const MB = 1_024 ** 2
const GB = 1_024 ** 3
const UNITS: Readonly<Record<string, number>> = { KB: 1_024, MB, GB }
/** Node does not start with less. */
const MIN_MEMORY = 32 * MB

/**
 * Converts a size to bytes.
 *
 * @param options.what the option's name, for the error
 * @param options.least the smallest size, in bytes; by default the smallest memory of a process, 32 MB
 * @throws InvalidArgument for anything else than such a size
 * @example toBytes('512MB', { what: 'memory' }) // 536870912
 */
export function toBytes(
  size: MemorySize | string,
  { what, least = MIN_MEMORY }: { readonly what: string; readonly least?: number },
): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(KB|MB|GB)$/.exec(String(size)) ?? []
  const bytes = typeof size === 'number' ? size : Number(number) * (UNITS[unit ?? ''] ?? Number.NaN)
  if (Number.isFinite(bytes) && bytes >= least) return Math.round(bytes)
  throw new InvalidArgument(
    `${what} must be a size of at least ${formatExactly(least)}, such as '512MB' or '2GB', got ${String(size)}`,
  )
}

function formatExactly(bytes: number): string {
  return bytes >= MB ? `${bytes / MB}MB` : `${bytes / 1_024}KB`
}

/** Returns the size as people read it: `512 MB`. */
export function formatBytes(bytes: number): string {
  return bytes >= GB ? `${(bytes / GB).toFixed(1)} GB` : `${Math.round(bytes / MB)} MB`
}

/** Returns a part of the memory that this process may use for objects, in bytes. */
export function shareOfHeap(parts: number): number {
  return Math.floor(getHeapStatistics().heap_size_limit / parts)
}
