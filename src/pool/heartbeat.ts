/**
 * The pool's end of the lifeline of a child. Each beat says for how many milliseconds the child may live without a further one, and the child
 * answers it from a thread of its own, also while it computes.
 *
 * | who is silent | means | what follows |
 * |---|---|---|
 * | the pool | its process is stopped, or its event loop blocked | the child kills itself before another owner can begin its work |
 * | the child | its process is stopped | the pool kills it |
 */
import type { Duplex } from 'node:stream'
import { monotonic } from '../core/time.ts'

/** The maximum number of bytes between two beats: more than all answers of a minute. */
const MAX_ANSWER_BYTES = 4_096

export interface HeartbeatOptions {
  /** The time without a beat of the pool after which the child kills itself; 0 for never. */
  readonly silenceMs: number
  /** Returns for how many milliseconds, at least, the pool still has the right to the work of the child. */
  readonly workLeftMs: () => number
  /** The number of beats without an answer after which the child counts as stopped. */
  readonly maxUnansweredBeats: number
}

export class Heartbeat implements Disposable {
  readonly #options: HeartbeatOptions
  #lifeline: Duplex | undefined
  #unansweredBeats = 0
  /** The bytes that were read since the last beat. */
  #answered = 0
  #lastBeatMs = monotonic()
  /** The time for which the child may live after the last beat, in milliseconds. */
  #allowedMs = Number.POSITIVE_INFINITY
  #wasSilent = false
  #workLeftMs: () => number

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#workLeftMs = options.workLeftMs
  }

  /** Whether the pool was silent for so long that the child has killed itself, or is about to. */
  get wasSilent(): boolean {
    return this.#wasSilent
  }

  /** The time for which the child was allowed to live after the last beat, in milliseconds. */
  get allowedMs(): number {
    return this.#allowedMs
  }

  /** Attaches the lifeline of a process that has just been started. */
  attach(lifeline: Duplex): void {
    this.#lifeline = lifeline
    this.#lastBeatMs = monotonic()
    this.#allowedMs = this.#options.silenceMs
    lifeline.on('data', (bytes: Buffer) => {
      this.#unansweredBeats = 0
      this.#answered += bytes.length
      // A child that writes without a pause is read again at the next beat.
      if (this.#answered > MAX_ANSWER_BYTES) lifeline.pause()
    })
    lifeline.on('error', () => undefined)
  }

  /**
   * Forgets the silence of earlier work, and sends a beat if the right to the new work ends sooner than the last beat allows.
   *
   * @param workLeftMs returns for how many milliseconds, at least, the pool has the right to this work
   */
  startWork(workLeftMs: () => number = this.#options.workLeftMs): void {
    this.#wasSilent = false
    this.#workLeftMs = workLeftMs
    const { silenceMs } = this.#options
    if (silenceMs === 0 || !this.#lifeline?.writable) return
    // The last beat was for an idle child, and may allow it more than the right to this work lasts.
    const allowedMs = this.#lastBeatMs + this.#allowedMs - monotonic()
    if (workLeftMs() < allowedMs) this.#send(this.#lifeline, { isBusy: true })
  }

  /**
   * Sends a beat.
   *
   * @param options.isBusy whether the child works. An idle child has no work, and may live for the whole `silenceMs`
   * @returns whether the child still answers
   */
  beat({ isBusy }: { readonly isBusy: boolean }): boolean {
    if (!this.#lifeline?.writable) return true
    this.noteSilence()
    this.#answered = 0
    this.#lifeline.resume()
    if (this.#unansweredBeats >= this.#options.maxUnansweredBeats) return false
    // A stopped process reads nothing: without this check its beats would fill the memory of the pool.
    const isSent = this.#lifeline.writableLength > 0 || this.#send(this.#lifeline, { isBusy })
    if (isSent) this.#unansweredBeats += 1
    return true
  }

  /** Notes whether this process was stopped, or its event loop blocked, for longer than the child waits for a beat. */
  noteSilence(): void {
    if (this.#options.silenceMs > 0 && monotonic() - this.#lastBeatMs > this.#allowedMs) this.#wasSilent = true
  }

  [Symbol.dispose](): void {
    this.#lifeline?.destroy()
  }

  /** Returns whether there was a beat to send. */
  #send(lifeline: Duplex, { isBusy }: { readonly isBusy: boolean }): boolean {
    const { silenceMs } = this.#options
    const leftMs = isBusy ? Math.min(silenceMs, this.#workLeftMs()) : silenceMs
    // Without the right to the work there is no beat: the owner of the pool kills the child, or it ends itself.
    if (leftMs <= 0 && silenceMs > 0) return false
    this.#lastBeatMs = monotonic()
    this.#allowedMs = leftMs
    lifeline.write(`${Math.floor(leftMs)}\n`)
    return true
  }
}
