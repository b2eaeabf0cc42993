/**
 * Converts names to keys of Postgres' advisory locks, as Pulp does: programs that lock the same names lock the same keys.
 *
 * Locks by one number of 64 bits and locks by two of 32 bits are two separate spaces. Names from users are in the first,
 * jobboard's own locks in the second, so they cannot conflict.
 */
import { blake2s } from '@noble/hashes/blake2.js'

/** The lock under which schemas are changed: an arbitrary number that no other program is likely to lock. */
export const MIGRATION_LOCK_KEY = 7_306_352_091

/**
 * Returns the key of a name: its BLAKE2s digest of 8 bytes, read as a signed big-endian number.
 *
 * @example advisoryKey('salt') // -2989518092393889746n
 */
export function advisoryKey(name: string): bigint {
  return Buffer.from(blake2s(Buffer.from(name), { dkLen: 8 })).readBigInt64BE()
}

/** Returns the first number of a lock by two numbers; the second is the number of the locked thing. */
export function advisoryClass(name: string): number {
  return Number(BigInt.asIntN(32, advisoryKey(name)))
}
