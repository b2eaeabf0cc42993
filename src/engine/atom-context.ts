/**
 * The context of an atom while it runs. A signal and a logger cost more than a small task does, and most tasks use neither:
 * both are made on first use. When the atom is over, the context stops following its signals, which live as long as the
 * claim or the process.
 */

import { abortAfter, type FollowingSignal, followSignals, rejectOnAbort } from '../core/async/abort.ts'
import type { Stoppable } from '../core/async/abort-flag.ts'
import { InvalidState, Timeout } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { assertOptions } from '../core/options.ts'
import type { AlarmClock } from '../core/time.ts'
import type { Span, TracedTask } from '../core/tracing.ts'
import type {
  AtomNode,
  Context,
  ContextCheckpoint,
  ContextDependencies,
  ContextLimits,
  ContextTakeOptions,
} from '../flow/index.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { EngineOptions } from './options.ts'

/** The arguments of `ctx.progress`, as the task gave them. */
export interface ProgressReport {
  readonly done: number
  readonly message: string | undefined
}

/** The values that all atoms of a run share. */
export interface RunContext extends Pick<Context, 'fence' | 'run' | 'job' | 'schedule' | 'batch' | 'services'> {
  readonly flow: string
  /** The limits of the board; undefined where there are none. */
  readonly limits: ContextLimits | undefined
  /** Undefined where the job is run after no others. */
  readonly dependencies: ContextDependencies | undefined
  readonly flowVersion: string
  readonly isolator: EngineOptions['isolator']
  readonly clock: AlarmClock
  readonly logger: Logger
  /** The logger from which the loggers of the tasks are made. */
  readonly taskLogger: Logger
  /** The span of the run, if it is traced. */
  readonly span: Span | undefined
  readonly progress: (node: AtomNode, report: ProgressReport) => void
  readonly checkpoints: Checkpoints
  readonly performing: EngineOptions['performing']
}

/** The values that differ between execute and revert. */
export interface AtomContextOptions {
  readonly follows: readonly Stoppable[]
  /** The signal after which the code does not begin any more; undefined for steps that a cancellation does not stop. */
  readonly cancel?: Stoppable
  /** Whether progress is reported. */
  readonly reportsProgress: boolean
  readonly step: TracedTask['step']
}

/** A class, not an object with closures: one is made for every atom that runs. */
export class AtomContext implements Context {
  readonly fence: bigint
  readonly run: number
  readonly job: Context['job']
  readonly schedule: Context['schedule']
  readonly batch: Context['batch']
  readonly services: unknown
  /** The span of this call, if it is traced. */
  readonly span: Span | undefined
  readonly #runContext: RunContext
  readonly #node: AtomNode
  readonly #options: AtomContextOptions
  #signalFollower: FollowingSignal | undefined
  #log: Logger | undefined
  #checkpoint: ContextCheckpoint | undefined
  #timer: Disposable | undefined
  #ended: (() => void) | undefined
  #isOver = false

  constructor(known: RunContext, node: AtomNode, options: AtomContextOptions) {
    this.fence = known.fence
    this.run = known.run
    this.job = known.job
    this.schedule = known.schedule
    this.batch = known.batch
    this.services = known.services
    this.span = known.span?.startTask({ flow: known.flow, task: node.atom.name, step: options.step })
    this.#runContext = known
    this.#node = node
    this.#options = options
  }

  get signal(): AbortSignal {
    return this.#follow().signal
  }

  /** Throws the reason if the flow was cancelled before the code of the task began: a task that only listens to its signal would never notice. */
  throwIfCancelled(): void {
    this.#options.cancel?.throwIfAborted()
  }

  get log(): Logger {
    const { flow, taskLogger } = this.#runContext
    this.#log ??= taskLogger.child({ flow, task: this.#node.atom.name, ...this.span?.logFields })
    return this.#log
  }

  /** A getter, so that it can be taken out of its context as the others can: `(args, { progress }) => …`. */
  get progress(): Context['progress'] {
    return (done, message) => {
      if (this.#isOver || !this.#options.reportsProgress) return
      this.#outside(() => this.#runContext.progress(this.#node, { done, message }))
    }
  }

  /** Made on first use: until then nothing can have been saved, so that `last` is what the former run saved. */
  get checkpoint(): ContextCheckpoint {
    this.#checkpoint ??= {
      last: this.#runContext.checkpoints.read(this.#node),
      save: (value) => {
        const saving = this.#outside(() => this.#save(value))
        // A failed save for which the task does not wait must not end the process: a run that cannot write any more ends anyway.
        saving.catch(() => undefined)
        return saving
      },
    }
    return this.#checkpoint
  }

  get limits(): ContextLimits {
    return { take: (key, options) => this.#outside(() => this.#take(key, options)) }
  }

  get dependencies(): ContextDependencies {
    const { dependencies } = this.#runContext
    const read = async () => (dependencies ? await rejectOnAbort(dependencies.read(), this.#follow()) : [])
    return { read: () => this.#outside(read) }
  }

  /**
   * Starts the time limit of the atom.
   *
   * @param options.isIsolated whether its process is killed after its deadline, so that it cannot ignore its signal
   */
  begin({ isIsolated }: { readonly isIsolated: boolean }): void {
    const { kind, name, deadline } = this.#node.atom
    const limit = deadline === undefined || isIsolated ? undefined : this.#follow()
    this.#ended = this.#runContext.performing?.(name, this.#options.reportsProgress ? 'execute' : 'revert', limit)
    if (deadline === undefined) return
    const late = (time: string) => new Timeout(`${kind} ${name}: not done within ${time}`)
    this.#timer = abortAfter(this.#follow(), deadline, late, this.#runContext.clock)
  }

  end(): void {
    this.#isOver = true
    this.#ended?.()
    this.#timer?.[Symbol.dispose]()
    this.#signalFollower?.[Symbol.dispose]()
  }

  /** Does the work outside of the span of the task: it may start timers and writes that others share. */
  #outside<T>(work: () => T): T {
    return this.span ? this.span.detach(work) : work()
  }

  async #save(value: unknown): Promise<void> {
    const { kind, name } = this.#node.atom
    if (this.#isOver)
      throw new InvalidState(`${kind} ${name} is over: save its checkpoint before it ends, and await that`)
    await this.#runContext.checkpoints.save(this.#node, value)
  }

  async #take(key: string, options: ContextTakeOptions = {}): Promise<void> {
    assertOptions<ContextTakeOptions>(options, { cost: true, signal: true }, 'ctx.limits.take')
    const { signal, ...cost } = options
    using stop = followSignals([this.#follow(), signal])
    stop.throwIfAborted()
    await this.#runContext.limits?.take(key, { ...cost, signal: stop.signal })
  }

  #follow(): FollowingSignal {
    const { follows } = this.#options
    // After the end of the atom, the follower still reports which signal has fired, but must not add listeners.
    this.#signalFollower ??= followSignals(this.#isOver ? follows.filter((signal) => signal.aborted) : follows)
    return this.#signalFollower
  }
}
