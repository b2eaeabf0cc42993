/** Shows progress: one line that is rewritten on a terminal, a line now and then elsewhere. */
import type { WriteStream } from 'node:tty'

const REWRITE_EVERY = 100
const PRINT_EVERY = 2_000
const ERASE_LINE = '\r\x1b[K'

export class Progress implements Disposable {
  readonly #stream: NodeJS.WriteStream
  readonly #line: () => string
  readonly #rewrites: boolean
  readonly #timer: NodeJS.Timeout
  #last = ''

  /** @param line returns the current line */
  constructor(stream: NodeJS.WriteStream, line: () => string) {
    this.#stream = stream
    this.#line = line
    this.#rewrites = isTerminal(stream)
    this.#timer = setInterval(() => this.#show(), this.#rewrites ? REWRITE_EVERY : PRINT_EVERY)
  }

  /** Prints a line that stays above the rewritten one. */
  say(text: string): void {
    this.#erase()
    this.#stream.write(`${text}\n`)
    if (this.#rewrites) this.#show()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#erase()
  }

  #show(): void {
    const line = this.#line()
    if (this.#rewrites) this.#stream.write(`${ERASE_LINE}${line.slice(0, (this.#stream.columns || 80) - 1)}`)
    else if (line !== this.#last) this.#stream.write(`${line}\n`)
    this.#last = line
  }

  #erase(): void {
    if (this.#rewrites) this.#stream.write(ERASE_LINE)
  }
}

/** Returns emphasized text where the terminal shows it and NO_COLOR allows it (https://no-color.org). */
export function painter(stream: NodeJS.WriteStream): (style: 'bold' | 'red', text: string) => string {
  const codes = { bold: 1, red: 31 }
  const paints = isTerminal(stream) && !process.env['NO_COLOR']
  return (style, text) => (paints ? `\x1b[${codes[style]}m${text}\x1b[0m` : text)
}

function isTerminal(stream: NodeJS.WriteStream): stream is WriteStream {
  return stream.isTTY && process.env['TERM'] !== 'dumb'
}
