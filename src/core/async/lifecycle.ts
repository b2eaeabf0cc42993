/**
 * The lifecycle of everything that is opened and closed: `start` runs once, `stop` may be called at any time and repeatedly.
 *
 *     new → starting → running → stopping → stopped
 *             └── failed start ──────────────┘
 *
 * A stop during the start aborts the start's signal, waits for the start to end, and then stops. The idea is from River's
 * `rivershared/startstop`: every background service needs this, and separate implementations get it wrong.
 */
import { InvalidState } from '../errors.ts'
import { startInterval } from '../time.ts'
import { createDeferred, createSharedController } from './abort.ts'

export type LifecycleState = 'new' | 'starting' | 'running' | 'stopping' | 'stopped'

export class Lifecycle {
  readonly #name: string
  readonly #stop = createSharedController()
  readonly #stopped = createDeferred()
  #state: LifecycleState = 'new'
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined

  /** @param name the name of the thing, for errors */
  constructor(name: string) {
    this.#name = name
  }

  get state(): LifecycleState {
    return this.#state
  }

  /** The signal that fires when a stop begins. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Resolves when the stop is complete. */
  get stopped(): Promise<void> {
    return this.#stopped.promise
  }

  /** @throws InvalidState unless the state is `running` */
  assertRunning(): void {
    if (this.#state !== 'running') throw new InvalidState(`${this.#name} is ${this.#state}, not running`)
  }

  /** Runs `work` once. If it fails, `undo` releases what it had acquired, and the error is thrown. */
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

/** The waits that keep the process alive, and the timer that does so for all of them. */
const waits = new Set<{ readonly held: object | undefined }>()
let waitTimer: NodeJS.Timeout | undefined

/**
 * Keeps Node from ending an idle process, until the result is disposed.
 *
 * A board in memory holds no handle open. A process that waits for it in vain would not hang but exit: Node ends a process
 * whose `await` nothing can resolve, with exit code 13 and no message.
 *
 * @param held the awaited object, if others hold it weakly: it must not be collected while a caller waits for it
 */
export function keepAlive(held?: object): Disposable {
  const wait = { held }
  waits.add(wait)
  // One timer for all: a conductor waits anew for each job.
  waitTimer ??= startInterval(() => waits, Number.POSITIVE_INFINITY)
  return {
    [Symbol.dispose]: () => {
      if (!waits.delete(wait) || waits.size > 0) return
      clearInterval(waitTimer)
      waitTimer = undefined
    },
  }
}
