/** Retries that wait before their next attempt. */
import type { AlarmClock } from '../core/alarm-clock.ts'
import type { AtomNode } from '../flow/index.ts'

export class RetryTimers {
  readonly #clock: AlarmClock
  readonly #alarms = new Map<AtomNode, Disposable>()
  readonly #onOver: (node: AtomNode) => void

  /** @param options.over called with each retry whose wait is over; it checks the time, and may have to wait again */
  constructor({ clock, over }: { clock: AlarmClock; over: (node: AtomNode) => void }) {
    this.#clock = clock
    this.#onOver = over
  }

  get size(): number {
    return this.#alarms.size
  }

  get nodes(): readonly AtomNode[] {
    return [...this.#alarms.keys()]
  }

  has(node: AtomNode): boolean {
    return this.#alarms.has(node)
  }

  begin(node: AtomNode, ms: number): void {
    this.#alarms.set(node, this.#clock.alarm(ms, { kind: 'pause', ring: () => this.end(node) }))
  }

  /** Ends a wait before its time. */
  end(node: AtomNode): void {
    this.#alarms.get(node)?.[Symbol.dispose]()
    if (this.#alarms.delete(node)) this.#onOver(node)
  }

  /** Forgets them all. */
  clear(): void {
    for (const alarm of this.#alarms.values()) alarm[Symbol.dispose]()
    this.#alarms.clear()
  }
}
