/**
 * One lifecycle for everything that is opened and closed: start once, stop at any time and as often as one likes.
 *
 *     new → starting → running → stopping → stopped
 *             └── failed start ──────────────┘
 *
 * A stop that comes while the start is under way aborts the start's signal, waits for it to end, and then stops.
 * River's `rivershared/startstop` taught us that every background service wants exactly this and gets it wrong alone.
 */
import { InvalidState } from '../errors.ts'
import { createDeferred, createSharedController } from './abort.ts'

export type LifecycleState = 'new' | 'starting' | 'running' | 'stopping' | 'stopped'

export class Lifecycle {
  readonly #name: string
  readonly #stop = createSharedController()
  readonly #stopped = createDeferred()
  #state: LifecycleState = 'new'
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined

  /** @param name of the thing, for errors */
  constructor(name: string) {
    this.#name = name
  }

  get state(): LifecycleState {
    return this.#state
  }

  /** Fires when a stop begins. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Resolves when all is stopped. */
  get stopped(): Promise<void> {
    return this.#stopped.promise
  }

  /** @throws InvalidState unless it runs */
  assertRunning(): void {
    if (this.#state !== 'running') throw new InvalidState(`${this.#name} is ${this.#state}, not running`)
  }

  /** Runs `work` once; if it fails, `undo` frees what it had taken and the error is thrown. */
  start(work: (signal: AbortSignal) => Promise<void>, undo: () => Promise<void>): Promise<void> {
    if (this.#state !== 'new') throw new InvalidState(`${this.#name} was started before (it is ${this.#state})`)
    this.#state = 'starting'
    this.#starting = this.#run(work, undo)
    return this.#starting
  }

  async #run(work: (signal: AbortSignal) => Promise<void>, undo: () => Promise<void>): Promise<void> {
    try {
      await work(this.#stop.signal)
      this.#stop.signal.throwIfAborted()
      this.#state = 'running'
    } catch (error) {
      await undo()
      this.#end()
      throw error
    }
  }

  /** Runs `work` once, however often it is called; every call resolves when it is done. */
  stop(work: () => Promise<void>): Promise<void> {
    this.#stopping ??= this.#halt(work)
    return this.#stopping
  }

  async #halt(work: () => Promise<void>): Promise<void> {
    this.#stop.abort(new InvalidState(`${this.#name} is stopping`))
    await this.#starting?.catch(() => undefined)
    if (this.#state === 'stopped') return
    this.#state = 'stopping'
    try {
      await work()
    } finally {
      this.#end()
    }
  }

  #end(): void {
    this.#state = 'stopped'
    this.#stop.abort(new InvalidState(`${this.#name} is stopped`))
    this.#stopped.resolve()
  }
}
