/** Cuts the byte stream of a connection into frames: a length of four bytes, then so many bytes. */
import { MalformedBytes } from './jute.ts'

const PREFIX = 4

export class FrameReader {
  readonly #maxBytes: number
  #chunks: Buffer[] = []
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
    if (this.#buffered < PREFIX) return undefined
    const length = this.#peekLength()
    if (length <= 0 || length > this.#maxBytes) {
      throw new MalformedBytes(`a frame of ${length} bytes, where at most ${this.#maxBytes} are taken`)
    }
    if (this.#buffered < PREFIX + length) return undefined
    const joined = this.#joined()
    const rest = joined.subarray(PREFIX + length)
    this.#chunks = rest.length > 0 ? [rest] : []
    this.#buffered = rest.length
    return joined.subarray(PREFIX, PREFIX + length)
  }

  #peekLength(): number {
    const [first] = this.#chunks
    if (first && first.length >= PREFIX) return first.readInt32BE(0)
    return this.#joined().readInt32BE(0)
  }

  #joined(): Buffer {
    const [first, second] = this.#chunks
    if (first && !second) return first
    const joined = Buffer.concat(this.#chunks, this.#buffered)
    this.#chunks = [joined]
    return joined
  }
}
