/**
 * Writes the ledger to the logbook, one write at a time. What gathers while a write is under way goes out with the next
 * one, whichever atoms it belongs to: atoms that run side by side share their writes.
 */
import { createDeferred, type Deferred } from '../core/async/abort.ts'
import { RESOLVED } from '../core/result.ts'
import type { FlowLog } from '../persistence/index.ts'
import type { Ledger } from './ledger.ts'

export interface TransitionWriterOptions {
  readonly ledger: Ledger
  readonly log: FlowLog
  /** Throws when this run has no right to go on; asked before and after each write. */
  readonly assertMayGoOn: () => void
  /** Called after each write. */
  readonly onRecorded: () => void
}

export class TransitionWriter {
  readonly #options: TransitionWriterOptions
  #busy = false
  /** The error of a failed write. Nothing is written after it: later changes would be out of order. */
  #failure: { readonly error: unknown } | undefined
  #next: Deferred<void> | undefined
  /** The number of writes so far. */
  writes = 0

  constructor(options: TransitionWriterOptions) {
    this.#options = options
  }

  /**
   * Resolves when all that has changed up to now is on record: after one write, or none where nothing has changed.
   *
   * @throws what {@link FlowLog.write} throws, and what `assertMayGoOn` throws; nothing may follow then
   */
  record(): Promise<void> {
    if (!this.#busy) return this.#write()
    this.#next ??= createDeferred()
    return this.#next.promise
  }

  /** Writes what has changed. Not async, because it runs for every step of a flow: see `attempt`. */
  #write(): Promise<void> {
    this.#busy = true
    const fail = (error: unknown): Promise<never> => {
      this.#failure ??= { error }
      this.#end()
      return Promise.reject(error)
    }
    try {
      const sending = this.#send()
      if (sending !== undefined) return sending.then(() => this.#end(), fail)
    } catch (error) {
      return fail(error)
    }
    this.#end()
    return RESOLVED
  }

  /** Sends what has changed; returns undefined where nothing has. */
  #send(): Promise<void> | undefined {
    const { ledger, log, assertMayGoOn, onRecorded } = this.#options
    if (this.#failure) throw this.#failure.error
    assertMayGoOn()
    const transition = ledger.takeTransition()
    if (!transition) {
      onRecorded()
      return undefined
    }
    this.writes += 1
    // A log of a caller without types may return no promise.
    return Promise.resolve(log.write(transition)).then(() => {
      assertMayGoOn()
      onRecorded()
    })
  }

  #end(): void {
    this.#busy = false
    const next = this.#next
    this.#next = undefined
    if (next) this.record().then(next.resolve, next.reject)
  }
}
