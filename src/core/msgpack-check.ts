/**
 * Checks msgpack before it is decoded. Other programs write to the servers, too, and a decoder builds whatever the bytes
 * describe: a few hundred bytes with references expand to gigabytes, an extension evaluates code, a key of a megabyte
 * takes seconds. The check reads each byte once, allocates nothing, and accepts only what `encode` writes: plain data.
 */

/** The number of objects and lists that may be nested; `encode` has the same limit. */
export const MAX_NESTING = 100

/** Estimates of the memory that V8 needs for a value, in bytes. */
export const OBJECT_BYTES = 56
export const ENTRY_BYTES = 32
export const LIST_BYTES = 48
export const ITEM_BYTES = 8
export const TEXT_BYTES = 24
export const BOXED_NUMBER_BYTES = 16
const BINARY_BYTES = 200
const DATE_BYTES = 96

/** The most memory that one encoded byte can take: an empty byte value in a list is encoded in two bytes. */
export const MAX_MEMORY_PER_BYTE = (BINARY_BYTES + ITEM_BYTES) / 2

/** The extensions that `encode` writes, or wrote in earlier releases. */
const [UNDEFINED, BIGINT, TIMESTAMP] = [0x00, 0x42, 0xff]

/** The latest time of a Date, in seconds since 1970. */
const MAX_DATE_SECONDS = 8.64e12

/**
 * Estimates how much memory the decoded value takes, in bytes.
 *
 * @param most the largest estimate that is accepted
 * @throws Error for bytes that are not one msgpack value of plain data: torn, followed by others, nested too deeply, with
 * extensions other than undefined, timestamps and integers of up to 64 bits, with keys that are neither text nor number, or
 * larger than `most` in memory
 */
export function checkMsgpack(bytes: Uint8Array, most: number): number {
  const { length } = bytes
  let at = 0
  let memory = 0
  let depth = 0
  // The number of values, keys included, that the open object or list still expects. The lists below hold the same for
  // the ones around it.
  let left = 1
  let isObject = false
  const outerLeft: number[] = []
  const outerIsObject: boolean[] = []

  while (true) {
    if (left === 0) {
      if (depth === 0) break
      depth -= 1
      left = outerLeft[depth] ?? 0
      isObject = outerIsObject[depth] ?? false
      continue
    }
    if (at >= length) throw truncatedError()
    const token = bytes[at] ?? UNUSED_BYTE
    if (isObject && left % 2 === 0 && !isKey(token)) throw new Error('has a key that is neither text nor number')
    left -= 1
    at += 1

    const sizeBytes = SIZE_BYTES[token] ?? 0
    if (at + sizeBytes > length) throw truncatedError()
    const size = sizeBytes === 0 ? (FIXED_SIZE[token] ?? 0) : sizeAt(bytes, at, sizeBytes)
    at += sizeBytes
    switch (KINDS[token]) {
      case SMALL:
        break
      case NUMBER:
        memory += BOXED_NUMBER_BYTES
        at += size
        break
      case TEXT:
        memory += TEXT_BYTES + size
        at += size
        break
      case BINARY:
        memory += BINARY_BYTES + size
        at += size
        break
      case EXTENSION:
        memory += DATE_BYTES
        if (at + 1 + size > length) throw truncatedError()
        assertPlain(bytes, at, size)
        at += 1 + size
        break
      case OBJECT:
      case LIST: {
        outerLeft[depth] = left
        outerIsObject[depth] = isObject
        depth += 1
        isObject = KINDS[token] === OBJECT
        left = isObject ? 2 * size : size
        memory += isObject ? OBJECT_BYTES + ENTRY_BYTES * size : LIST_BYTES + ITEM_BYTES * size
        if (depth > MAX_NESTING) throw new Error(`is nested deeper than ${MAX_NESTING} levels`)
        // Each value takes at least one byte: a larger size means a torn record, and the decoder would allocate it.
        if (left > length - at) throw truncatedError()
        break
      }
      default:
        throw new Error(`has the byte 0x${token.toString(16)} where a value begins`)
    }
    if (at > length) throw truncatedError()
    if (memory > most)
      throw new Error(`takes more than ${most} bytes of memory once it is decoded; store less structure`)
  }
  if (at < length) throw new Error(`has ${length - at} bytes after its end`)
  return memory
}

const UNUSED_BYTE = 0xc1
const [SMALL, NUMBER, TEXT, BINARY, EXTENSION, OBJECT, LIST] = [1, 2, 3, 4, 5, 6, 7]

/** The meaning of each first byte: the kind of the value (0 if invalid), the number of bytes that hold its size, or its fixed size. */
const KINDS = new Uint8Array(256)
const SIZE_BYTES = new Uint8Array(256)
const FIXED_SIZE = new Uint8Array(256)

KINDS.fill(SMALL, 0x00, 0x80).fill(SMALL, 0xe0, 0x100)
for (let size = 0; size < 16; size += 1) {
  KINDS[0x80 + size] = OBJECT
  KINDS[0x90 + size] = LIST
  FIXED_SIZE[0x80 + size] = size
  FIXED_SIZE[0x90 + size] = size
}
for (let size = 0; size < 32; size += 1) {
  KINDS[0xa0 + size] = TEXT
  FIXED_SIZE[0xa0 + size] = size
}
for (const word of [0xc0, 0xc2, 0xc3]) KINDS[word] = SMALL
for (const [kind, first] of [
  [BINARY, 0xc4],
  [EXTENSION, 0xc7],
  [TEXT, 0xd9],
] as const) {
  KINDS.fill(kind, first, first + 3)
  SIZE_BYTES.set([1, 2, 4], first)
}
KINDS.fill(LIST, 0xdc, 0xde).fill(OBJECT, 0xde, 0xe0)
SIZE_BYTES.set([2, 4, 2, 4], 0xdc)
KINDS.fill(NUMBER, 0xca, 0xd4)
FIXED_SIZE.set([4, 8, 1, 2, 4, 8, 1, 2, 4, 8], 0xca)
KINDS.fill(EXTENSION, 0xd4, 0xd9)
FIXED_SIZE.set([1, 2, 4, 8, 16], 0xd4)

function sizeAt(bytes: Uint8Array, at: number, sizeBytes: number): number {
  let size = 0
  for (let index = 0; index < sizeBytes; index += 1) size = size * 256 + (bytes[at + index] ?? 0)
  return size
}

/** Returns whether a value can be a key. A bigint of a megabyte takes seconds as a key, and an object as a key has no meaning. */
function isKey(token: number): boolean {
  const kind = KINDS[token]
  return kind === TEXT || kind === NUMBER || kind === SMALL
}

/** @throws Error for an extension that `encode` does not write */
function assertPlain(bytes: Uint8Array, at: number, size: number): void {
  const type = bytes[at]
  if (type === UNDEFINED && size === 1) return
  if (type === TIMESTAMP && isDate(bytes, at + 1, size)) return
  // The largest unsigned integers of 64 bits have a ninth byte, which is zero.
  if (type === BIGINT && size > 0 && (size <= 8 || (size === 9 && bytes[at + 1] === 0))) return
  throw new Error(`has an extension of type ${type} in ${size} bytes, which is not plain data`)
}

/** Returns whether the timestamp is within what a Date can hold. */
function isDate(bytes: Uint8Array, at: number, size: number): boolean {
  if (size !== 12) return size === 4 || size === 8
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, size)
  const [nanoseconds, seconds] = [view.getUint32(0), Number(view.getBigInt64(4))]
  if (nanoseconds >= 1e9 || seconds < -MAX_DATE_SECONDS) return false
  return seconds < MAX_DATE_SECONDS || (seconds === MAX_DATE_SECONDS && nanoseconds === 0)
}

function truncatedError(): Error {
  return new Error('ends before its last value')
}
