/** Ctrl-C, and other signals that end a process. */
import { constants } from 'node:os'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** npm and tsx forward a signal that the terminal has sent to all processes: signals within this time are one press. */
const ONE_PRESS = 500

export class Interrupt implements Disposable {
  readonly #first = new AbortController()
  readonly #second = new AbortController()
  readonly #listener = (signal: (typeof SIGNALS)[number]) => this.#received(signal)
  #presses = 0
  #exitCode = 0
  readonly #lastPress = new Map<string, number>()

  constructor() {
    for (const signal of SIGNALS) process.on(signal, this.#listener)
  }

  /** Fires at the first press: finish. */
  get signal(): AbortSignal {
    return this.#first.signal
  }

  /** Fires at the second press: end at once. The third ends the process. */
  get urgent(): AbortSignal {
    return this.#second.signal
  }

  /** The exit code that shells expect of a process that a signal has ended. */
  get exitCode(): number {
    return this.#exitCode
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#listener)
  }

  #received(signal: (typeof SIGNALS)[number]): void {
    const now = performance.now()
    if (now - (this.#lastPress.get(signal) ?? Number.NEGATIVE_INFINITY) < ONE_PRESS) return
    this.#lastPress.set(signal, now)
    this.#presses += 1
    this.#exitCode ||= 128 + constants.signals[signal]
    if (this.#presses === 1) this.#first.abort(new Error('interrupted'))
    else if (this.#presses === 2) this.#second.abort(new Error('interrupted twice'))
    else process.exit(this.#exitCode)
  }
}

/** Resolves when the signal fires. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}
