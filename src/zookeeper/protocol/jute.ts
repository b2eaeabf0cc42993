/**
 * ZooKeeper's binary encoding ("jute"): big-endian numbers, length-prefixed bytes and texts, counted vectors, records as
 * their fields back to back. A length of -1 means null, which is not the same as empty.
 */

/** The largest `int`: of versions, counts, and the numbers of requests. */
export const MAX_INT32 = 2 ** 31 - 1

/** An error for bytes that cannot be decoded. Their connection must not be used any further. */
export class MalformedBytes extends Error {
  override readonly name = 'MalformedBytes'
}

const FIRST_CAPACITY_BYTES = 256

/** Appends to a buffer that grows by doubling. */
export class JuteWriter {
  #buffer = Buffer.allocUnsafe(FIRST_CAPACITY_BYTES)
  #length = 0

  get length(): number {
    return this.#length
  }

  int(value: number): this {
    const at = this.#room(4)
    this.#buffer.writeInt32BE(value, at)
    return this
  }

  long(value: bigint): this {
    const at = this.#room(8)
    this.#buffer.writeBigInt64BE(value, at)
    return this
  }

  boolean(value: boolean): this {
    const at = this.#room(1)
    this.#buffer[at] = value ? 1 : 0
    return this
  }

  bytes(value: Uint8Array | null): this {
    if (value === null) return this.int(-1)
    this.int(value.length)
    const at = this.#room(value.length)
    this.#buffer.set(value, at)
    return this
  }

  text(value: string): this {
    const length = Buffer.byteLength(value)
    this.int(length)
    const at = this.#room(length)
    this.#buffer.write(value, at)
    return this
  }

  vector<T>(items: readonly T[], write: (item: T) => void): this {
    this.int(items.length)
    for (const item of items) write(item)
    return this
  }

  /** Returns everything written so far, without a copy: the writer must not be used afterwards. */
  finish(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  #room(bytes: number): number {
    const at = this.#length
    this.#length += bytes
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, this.#buffer.length * 2))
      larger.set(this.#buffer.subarray(0, at))
      this.#buffer = larger
    }
    return at
  }
}

/** Reads bytes whose lengths may be wrong: every step is checked, and no declared length leads to an allocation. */
export class JuteReader {
  readonly #bytes: Buffer
  #offset: number

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#offset = 0
  }

  get remaining(): number {
    return this.#bytes.length - this.#offset
  }

  /** Steps over bytes that are not needed. */
  skip(bytes: number): void {
    this.#step(bytes, 'a field')
  }

  /** Steps over a text or bytes that are not needed. */
  skipText(): void {
    const length = this.#length('a text')
    if (length > 0) this.#step(length, 'a text')
  }

  int(): number {
    return this.#bytes.readInt32BE(this.#step(4, 'an int'))
  }

  long(): bigint {
    return this.#bytes.readBigInt64BE(this.#step(8, 'a long'))
  }

  /** Reads a long that is a time in milliseconds, well within the exact range of a number. */
  millis(): number {
    return Number(this.long())
  }

  boolean(): boolean {
    return this.#bytes[this.#step(1, 'a boolean')] !== 0
  }

  /** Reads bytes as a view, not a copy. */
  bytes(): Buffer | null {
    const length = this.#length('bytes')
    if (length < 0) return null
    const at = this.#step(length, 'bytes')
    return this.#bytes.subarray(at, at + length)
  }

  text(): string {
    const length = this.#length('a text')
    if (length < 0) return ''
    const at = this.#step(length, 'a text')
    return this.#bytes.toString('utf8', at, at + length)
  }

  /** @param atLeast the smallest size of an item: a count that cannot fit is refused before any item is read */
  vector<T>(atLeast: number, read: () => T): T[] {
    const count = this.#length('a vector')
    if (count < 0) return []
    if (count * atLeast > this.remaining)
      throw new MalformedBytes(`a vector of ${count} items in ${this.remaining} bytes`)
    const items: T[] = []
    for (let item = 0; item < count; item++) items.push(read())
    return items
  }

  #length(what: string): number {
    const length = this.int()
    if (length < -1) throw new MalformedBytes(`${what} of length ${length}`)
    return length
  }

  #step(bytes: number, what: string): number {
    if (bytes > this.remaining) throw new MalformedBytes(`${what} of ${bytes} bytes where ${this.remaining} are left`)
    const at = this.#offset
    this.#offset += bytes
    return at
  }
}
