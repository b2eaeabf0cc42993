/** One direction of a proxied connection: hands on what it is given, in order, the way the network is said to be. */

import type { Socket } from 'node:net'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'

/** How what gets through arrives. */
export interface Manner {
  /** So many milliseconds after what came before it. */
  readonly delay?: number
  /** Not before this has resolved; what comes meanwhile is kept. */
  readonly until?: Promise<unknown>
  /** In pieces of so many bytes, each by itself. */
  readonly pieces?: () => number
}

export class Lane {
  readonly #to: Socket
  readonly #manner: () => Manner
  readonly #queue: Buffer[] = []
  #running = false

  constructor(to: Socket, manner: () => Manner) {
    this.#to = to
    this.#manner = manner
  }

  push(chunk: Buffer): void {
    const { delay, pieces, until } = this.#manner()
    if (!this.#running && !until && delay === undefined && pieces === undefined) this.#to.write(chunk)
    else {
      this.#queue.push(chunk)
      if (!this.#running) void this.#run()
    }
  }

  async #run(): Promise<void> {
    this.#running = true
    for (let chunk = this.#queue.shift(); chunk; chunk = this.#queue.shift()) {
      for (let rest = chunk; rest.length > 0; ) {
        const { delay, pieces, until } = this.#manner()
        const size = Math.max(1, pieces?.() ?? rest.length)
        await (until ?? (delay === undefined ? turn() : sleep(delay)))
        if (this.#to.destroyed) return
        this.#to.write(rest.subarray(0, size))
        rest = rest.subarray(size)
      }
    }
    this.#running = false
  }
}
