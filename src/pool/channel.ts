/**
 * The messages between a pool and a child, over a pipe. A message consists of its length, in four bytes, and its value in V8's format.
 *
 * Node's own channel (`process.send`) is not used: a child that writes other bytes to it, or one of Node's internal messages, ends the process of
 * the pool with an uncaught exception, and a message of any size is kept in memory.
 */
import type { Duplex } from 'node:stream'
import { deserialize, serialize } from 'node:v8'
import { asError, MessageTooLarge } from '../core/errors.ts'
import { formatBytes } from '../core/memory-size.ts'

const HEADER_BYTES = 4
/** The maximum number of messages that are read in a period. A child that sends more is slowed down: this process has other work. */
const MESSAGES_PER_PERIOD = 5_000
const PERIOD_MS = 100
/** The number of unsent bytes for a child above which nothing is read from it: the child asks for more than it receives. */
const MAX_UNREAD_BYTES = 32 * 1_024 ** 2

export interface ChannelOptions {
  /** The limit of a message in bytes, in this direction. */
  readonly maxReceived: number
  readonly maxSent?: number
  readonly onMessage: (message: unknown) => void
  /** Called once, when bytes arrive that are not a message. The channel is closed then. */
  readonly onFault: (error: Error) => void
  readonly onClose: () => void
}

/** A side of the channel between a pool and a child. */
export class Channel implements Disposable {
  readonly #stream: Duplex
  readonly #options: ChannelOptions
  #chunks: Buffer[] = []
  #bytes = 0
  #messages = 0
  #timer: NodeJS.Timeout | undefined

  constructor(stream: Duplex, options: ChannelOptions) {
    this.#stream = stream
    this.#options = options
  }

  /** Begins to read. */
  open(): void {
    this.#stream.on('data', (chunk: Buffer) => this.#take(chunk))
    this.#stream.on('error', () => undefined)
    this.#stream.on('drain', () => this.#resume())
    this.#stream.on('close', this.#options.onClose)
  }

  get isOpen(): boolean {
    return this.#stream.writable
  }

  /** Resolves when the message is written. @throws MessageTooLarge; an error for a value that cannot be copied, and after the end */
  async send(message: unknown): Promise<void> {
    const body = serialize(message)
    const { maxSent = Number.POSITIVE_INFINITY } = this.#options
    if (body.length > maxSent)
      throw new MessageTooLarge(
        `a message of ${formatBytes(body.length)} is more than the ${formatBytes(maxSent)} that fit`,
      )
    const header = Buffer.alloc(HEADER_BYTES)
    header.writeUInt32BE(body.length)
    await new Promise<void>((resolve, reject) => {
      this.#stream.cork()
      this.#stream.write(header)
      this.#stream.write(body, (error) => (error ? reject(error) : resolve()))
      this.#stream.uncork()
    })
  }

  /** Reads the rest without a limit per period: the other side has ended, and sends nothing more. */
  readRest(): void {
    this.#messages = Number.NEGATIVE_INFINITY
    this.#resume()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#stream.destroy()
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    try {
      for (let body = this.#next(); body; body = this.#next()) {
        this.#messages += 1
        this.#options.onMessage(deserialize(body))
      }
    } catch (cause) {
      this.#chunks = []
      this.#bytes = 0
      this.#stream.destroy()
      this.#options.onFault(asError(cause))
      return
    }
    this.#limit()
  }

  /** Returns the bytes of the next message, if all of them are here. @throws MessageTooLarge */
  #next(): Buffer | undefined {
    if (this.#bytes < HEADER_BYTES) return undefined
    const [first = Buffer.alloc(0)] = this.#chunks
    if (first.length < HEADER_BYTES) this.#join()
    const size = this.#chunks[0]?.readUInt32BE() ?? 0
    if (size > this.#options.maxReceived)
      throw new MessageTooLarge(
        `a message of ${formatBytes(size)} is more than ${formatBytes(this.#options.maxReceived)}`,
      )
    if (this.#bytes < HEADER_BYTES + size) return undefined
    const all = this.#join()
    this.#bytes -= HEADER_BYTES + size
    this.#chunks = this.#bytes > 0 ? [all.subarray(HEADER_BYTES + size)] : []
    return all.subarray(HEADER_BYTES, HEADER_BYTES + size)
  }

  #join(): Buffer {
    const [only] = this.#chunks
    const all = only !== undefined && this.#chunks.length === 1 ? only : Buffer.concat(this.#chunks)
    this.#chunks = [all]
    return all
  }

  #limit(): void {
    this.#timer ??= setTimeout(() => this.#endPeriod(), PERIOD_MS).unref()
    if (this.#messages > MESSAGES_PER_PERIOD || this.#stream.writableLength > MAX_UNREAD_BYTES) this.#stream.pause()
  }

  #endPeriod(): void {
    this.#timer = undefined
    this.#messages = Math.min(0, this.#messages)
    this.#resume()
  }

  #resume(): void {
    if (this.#messages <= MESSAGES_PER_PERIOD && this.#stream.writableLength <= MAX_UNREAD_BYTES) this.#stream.resume()
  }
}
