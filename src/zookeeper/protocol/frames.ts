/** Cuts the byte stream of a connection into frames: a length of four bytes, then that many bytes. */
import { MalformedBytes } from './jute.ts'

const LENGTH_PREFIX_BYTES = 4

export class FrameReader {
  readonly #maxBytes: number
  #chunks: Buffer[] = []
  /** Number of bytes of the first chunk that have been read. */
  #at = 0
  #buffered = 0

  /** @param maxBytes a larger frame is refused before memory is allocated for it */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#buffered += chunk.length
  }

  /**
   * Returns the next whole frame, as a view where it lies in one chunk; undefined until more bytes arrive.
   *
   * A frame in many chunks is joined only when its last byte has arrived: memory follows the bytes received, never the
   * declared length.
   *
   * @throws MalformedBytes for an invalid length
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

  /** Returns the first chunk; joins all chunks where the first has fewer unread bytes than that. */
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
