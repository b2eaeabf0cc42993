/**
 * Keeps one connection alive and detects when it is dead, with one timer, whatever the number of requests.
 *
 * Every sent request keeps the session alive at the server; every received byte proves that the server is alive. A ping
 * is sent when nothing else was sent for a third of the session's timeout. If nothing is received for two thirds of it,
 * the connection is dead: the last third is for attaching to another server.
 */
import { monotonic, startTimer } from '../../core/time.ts'

export interface HeartbeatActions {
  ping(): void
  /** Reports that nothing was received for that many milliseconds. */
  onSilence(ms: number): void
}

export class Heartbeat {
  readonly #pingAfter: number
  readonly #silentAfter: number
  readonly #actions: HeartbeatActions
  #running = false
  #lastSent = 0
  #lastReceived = 0
  #timer: NodeJS.Timeout | undefined
  #secondLook: NodeJS.Immediate | undefined

  constructor(sessionTimeout: number, actions: HeartbeatActions) {
    this.#pingAfter = sessionTimeout / 3
    this.#silentAfter = (sessionTimeout * 2) / 3
    this.#actions = actions
  }

  start(): void {
    this.#lastSent = monotonic()
    this.#lastReceived = this.#lastSent
    this.#running = true
    this.#wait()
  }

  stop(): void {
    this.#running = false
    clearTimeout(this.#timer)
    clearImmediate(this.#secondLook)
  }

  sent(): void {
    this.#lastSent = monotonic()
  }

  received(): void {
    this.#lastReceived = monotonic()
  }

  #wait(): void {
    if (!this.#running) return
    const next = Math.min(this.#lastSent + this.#pingAfter, this.#lastReceived + this.#silentAfter)
    this.#timer = startTimer(() => this.#beat(), Math.max(1, next - monotonic()))
  }

  #beat(): void {
    const now = monotonic()
    if (now - this.#lastReceived >= this.#silentAfter) {
      // This process may have been suspended, with answers waiting in the socket: read first, then decide.
      this.#secondLook = setImmediate(() => this.#checkSilence())
      return
    }
    if (now - this.#lastSent >= this.#pingAfter) this.#actions.ping()
    this.#wait()
  }

  #checkSilence(): void {
    const silence = monotonic() - this.#lastReceived
    if (silence >= this.#silentAfter) this.#actions.onSilence(silence)
    else this.#wait()
  }
}
