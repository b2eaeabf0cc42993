/** Cuts the byte stream of a connection into frames: a length of four bytes, then so many bytes. */
import { MalformedBytes } from './jute.ts'

const LENGTH_PREFIX_BYTES = 4

export class FrameReader {
  readonly #maxBytes: number
  #chunks: Buffer[] = []
  /** How much of the first chunk has been read. */
  #at = 0
  #buffered = 0

  /** @param maxBytes a frame that claims to be larger is refused before anything is kept for it */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#buffered += chunk.length
  }

  /**
   * The next whole frame, a view of what was received where it lies in one chunk. Undefined until more arrives.
   *
   * A frame in many chunks is put together only when its last byte is there: memory follows what was received, never
   * what a length claims.
   *
   * @throws MalformedBytes for a length that no frame can have
   */
  next(): Buffer | undefined {
    if (this.#buffered < LENGTH_PREFIX_BYTES) return undefined
    const length = this.#peekLength()
    if (length <= 0 || length > this.#maxBytes) {
      throw new MalformedBytes(`a frame of ${length} bytes, where at most ${this.#maxBytes} are taken`)
    }
    if (this.#buffered < LENGTH_PREFIX_BYTES + length) return undefined
    const chunk = this.#chunkWith(LENGTH_PREFIX_BYTES + length)
    const start = this.#at + LENGTH_PREFIX_BYTES
    this.#at = start + length
    this.#buffered -= LENGTH_PREFIX_BYTES + length
    if (this.#at === chunk.length) {
      this.#chunks.shift()
      this.#at = 0
    }
    return chunk.subarray(start, start + length)
  }

  #peekLength(): number {
    return this.#chunkWith(LENGTH_PREFIX_BYTES).readInt32BE(this.#at)
  }

  /** The first chunk, put together from all of them where it alone has fewer bytes left than that. */
  #chunkWith(bytes: number): Buffer {
    const [first] = this.#chunks
    if (first && first.length - this.#at >= bytes) return first
    const unread = this.#chunks.map((chunk, index) => (index === 0 ? chunk.subarray(this.#at) : chunk))
    const joined = Buffer.concat(unread, this.#buffered)
    this.#chunks = [joined]
    this.#at = 0
    return joined
  }
}
