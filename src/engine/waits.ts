/** Retries that wait before their next attempt. */
import type { AtomNode } from '../flow/index.ts'

/** What a timer of Node can wait (about 24 days); who is woken too early looks at the time and waits again. */
const LONGEST_TIMER = 2 ** 31 - 1

export class Waits {
  readonly #timers = new Map<AtomNode, NodeJS.Timeout>()
  readonly #over: (node: AtomNode) => void

  /** @param over called with each whose wait is over */
  constructor(over: (node: AtomNode) => void) {
    this.#over = over
  }

  get size(): number {
    return this.#timers.size
  }

  get nodes(): readonly AtomNode[] {
    return [...this.#timers.keys()]
  }

  has(node: AtomNode): boolean {
    return this.#timers.has(node)
  }

  begin(node: AtomNode, ms: number): void {
    this.#timers.set(
      node,
      setTimeout(() => this.end(node), Math.min(ms, LONGEST_TIMER)),
    )
  }

  /** Ends a wait before its time. */
  end(node: AtomNode): void {
    clearTimeout(this.#timers.get(node))
    if (this.#timers.delete(node)) this.#over(node)
  }

  /** Forgets them all. */
  clear(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }
}
