/**
 * The output of a child, line by line. A child that writes without a pause is slowed down: its output is read at a limited rate,
 * because the pool's process would have no time for anything else.
 */
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'

/** The number of lines that are kept for the failure of a child that dies. */
const MAX_LAST_LINES = 50
const MAX_LINE_CHARS = 4_096
/** The limits for one period: what is read, and how many lines are passed on. The other lines are counted. */
const PERIOD_MS = 100
const BYTES_PER_PERIOD = 256 * 1_024
const LINES_PER_PERIOD = 100

export interface OutputOptions {
  readonly onLine: (line: string) => void
  /** Called with the number of lines that were not passed on. */
  readonly onDropped: (lines: number) => void
}

export class ChildOutput implements Disposable {
  readonly #options: OutputOptions
  readonly #lastLines: string[] = []
  readonly #paused = new Set<Readable>()
  #bytes = 0
  #lines = 0
  #dropped = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: OutputOptions) {
    this.#options = options
  }

  /** The last lines of all streams, for the failure of a child that dies. */
  get lastLines(): readonly string[] {
    return this.#lastLines
  }

  /** Drops the kept lines: the lines of earlier work must not be in the failure of later work, which may be another user's. */
  clear(): void {
    this.#lastLines.length = 0
  }

  /** Reads a stream until it ends. */
  read(stream: Readable): void {
    const decoder = new StringDecoder('utf8')
    let partial = ''
    const takeLines = (text: string) => {
      const lines = (partial + text).split(/\r?\n/)
      partial = (lines.pop() ?? '').slice(0, MAX_LINE_CHARS)
      for (const line of lines) this.#take(line)
    }
    stream.on('data', (bytes: Buffer) => {
      takeLines(decoder.write(bytes))
      this.#limit(stream, bytes.length)
    })
    stream.on('end', () => {
      takeLines(decoder.end())
      if (partial !== '') this.#take(partial)
    })
    stream.on('error', () => undefined)
  }

  [Symbol.dispose](): void {
    this.#endPeriod()
    clearTimeout(this.#timer)
  }

  #take(text: string): void {
    const line = stripVTControlCharacters(text).slice(0, MAX_LINE_CHARS)
    this.#lastLines.push(line)
    if (this.#lastLines.length > MAX_LAST_LINES) this.#lastLines.shift()
    this.#startPeriod()
    this.#lines += 1
    if (this.#lines <= LINES_PER_PERIOD) this.#options.onLine(line)
    else this.#dropped += 1
  }

  #limit(stream: Readable, bytes: number): void {
    this.#startPeriod()
    this.#bytes += bytes
    if (this.#bytes <= BYTES_PER_PERIOD) return
    stream.pause()
    this.#paused.add(stream)
  }

  #startPeriod(): void {
    this.#timer ??= setTimeout(() => this.#endPeriod(), PERIOD_MS)
  }

  #endPeriod(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#dropped > 0) this.#options.onDropped(this.#dropped)
    this.#bytes = this.#lines = this.#dropped = 0
    for (const stream of this.#paused) stream.resume()
    this.#paused.clear()
  }
}
