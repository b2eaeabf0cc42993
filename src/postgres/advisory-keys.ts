/**
 * Names as Postgres' advisory locks know them: Pulp's way, so that whoever locks the same names locks the same things.
 *
 * Locks by one number of 64 bits and locks by two of 32 are two spaces: names that users give live in the first, what is
 * ours in the second, where no name can ever stand in its way.
 */
import { blake2s } from '@noble/hashes/blake2.js'

/**
 * BLAKE2s with a digest of 8 bytes, read as a signed big-endian number.
 *
 * @example advisoryKey('salt') // -2989518092393889746n
 */
export function advisoryKey(name: string): bigint {
  return Buffer.from(blake2s(Buffer.from(name), { dkLen: 8 })).readBigInt64BE()
}

/** The first of two numbers: what is locked by a number of its own goes behind it. */
export function advisoryClass(name: string): number {
  return Number(BigInt.asIntN(32, advisoryKey(name)))
}
