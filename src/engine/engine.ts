/**
 * The engine: runs one flow from wherever its logbook says it is to an end.
 *
 * Forwards it executes atoms, each when all before it are done, up to `concurrency` of them at once. When one fails, the
 * retry of its flow is asked; where there is none, everything is reverted: each atom that was begun, after all that came
 * after it. Atoms that never ran are not reverted. A revert that fails ends everything: the flow is a FAILURE, and no
 * further revert makes it worse.
 *
 * **What it costs.** A flow of n tasks in a row that succeeds takes n + 1 writes to the logbook: the first task's start with
 * the flow's, each task's success with the next one's start, the last success with the flow's. Tasks that run side by side
 * share writes. On the way back only tasks that have a `revert` cost a write. Scheduling costs each atom as much as it has
 * neighbours; a retry's attempt as much as was done in the last one; reverting everything as much as there is.
 *
 * **Three signals interrupt a run.** `stop` means that the right to work is lost: the engine rejects at once with the signal's
 * reason, and starts and writes nothing more, whether the running tasks obey their signal or not; `idle` resolves when they
 * are really over. `suspend` lets the running tasks finish: successes are recorded, and a task that throws counts as not
 * done and runs again later. A task that throws TooManyRequests suspends its flow, where the owner can run it again later. `cancel` undoes the flow:
 * no further task starts, and the revert begins. After the success of the last task it has no effect.
 */

import { abortAfter, createDeferred, type FollowingSignal, followSignals, rejectOnAbort } from '../core/async/abort.ts'
import { AbortFlag, type Stoppable } from '../core/async/abort-flag.ts'
import { InvalidState, Timeout } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { failureOf } from '../core/failure.ts'
import { type Logger, silentLog } from '../core/log.ts'
import { defined } from '../core/options.ts'
import { attempt } from '../core/result.ts'
import { checkTransition, ENGINE_TRANSITIONS, type EngineState } from '../core/states.ts'
import { monotonic, startTimer, systemAlarmClock } from '../core/time.ts'
import { type AnyFlow, type AtomNode, compile, type ExecutionGraph, toProgressMessage } from '../flow/index.ts'
import type { ProgressReport } from './atom-context.ts'
import { AtomRunner, type RunContext } from './atom-runner.ts'
import { AtomStates } from './atom-states.ts'
import { Checkpoints, dropStaleCheckpoints } from './checkpoints.ts'
import { ENGINE_EVENTS, type Ending, type EngineEvents, isEndState } from './events.ts'
import { Ledger } from './ledger.ts'
import { assertEngineOptions, DEFAULT_CONCURRENCY, type EngineOptions } from './options.ts'
import { Resolver } from './resolver.ts'
import { assertResumable, findDifferences, pathToRunning, resumeAtoms, type Start, toStart } from './resume.ts'
import { FlowRun } from './run.ts'
import { assertSatisfied, collectResults, type Store } from './scope.ts'
import { type Statistics, Stopwatch } from './statistics.ts'
import { TransitionWriter } from './writer.ts'

/** The least time between two writes that only record progress. */
const PROGRESS_PERIOD_MS = 1_000

/** The parts of an engine that exist while it runs. */
interface ActiveRun {
  readonly run: FlowRun
  readonly suspend: FollowingSignal
  /** Everything that is disposed at the end of the run. */
  readonly held: readonly Disposable[]
}

/** Runs one flow, once: executes what is ready, records each transition before the next step, reverts, retries, resumes.
 *
 * @example
 * const log = await persistence.acquire({ book, flow: { uuid, name: hello.name, version: hello.version }, run, claim })
 * const ending = await new Engine({ flow: hello, store: { name: 'Ada' }, log }).run()
 */
export class Engine {
  readonly #options: EngineOptions
  readonly #flow: AnyFlow
  readonly #graph: ExecutionGraph
  readonly #store: Store
  readonly #logger: Logger
  /** Made for the first listener: most runs have none. */
  #emitter: Emitter<EngineEvents> | undefined
  readonly #stopwatch = new Stopwatch()
  #hasListeners = false
  #activeRun: ActiveRun | undefined
  /** The reason of the first call of `suspend`. */
  #suspended: InvalidState | undefined
  #writer: TransitionWriter | undefined
  #running: Promise<unknown> | undefined
  #lastProgressAt = Number.NEGATIVE_INFINITY
  #progressTimer: NodeJS.Timeout | undefined

  /**
   * @throws InvalidArgument when an option is invalid, or the flow has a pattern or an atom that this release does not know
   */
  constructor(options: EngineOptions) {
    assertEngineOptions(options)
    const { flow, store = {}, logger = silentLog, span } = options
    this.#options = options
    this.#flow = flow
    this.#graph = compile(flow)
    // A copy: later changes of the store, and getters with changing values, would give later tasks other inputs.
    this.#store = { ...store }
    this.#logger = span ? logger.child(span.logFields) : logger
  }

  /** Resolves when nothing of this engine runs any more: no task, no write. Never rejects. */
  get idle(): Promise<void> {
    return this.#running?.then(ignore, ignore) ?? Promise.resolve()
  }

  /** The counts of its actions so far, and the time spent in each state. */
  get statistics(): Statistics {
    return this.#stopwatch.statistics(this.#activeRun?.run, this.#writer?.writes ?? 0)
  }

  /**
   * Calls `listener` at each transition of the flow or of an atom, after it is recorded, and at each progress, until the
   * returned function is called. A listener that is added before the run receives all transitions. Errors of a listener are
   * logged and have no other effect.
   */
  on<E extends keyof EngineEvents>(event: E, listener: (event: EngineEvents[E]) => unknown): () => void {
    this.#emitter ??= this.#createEmitter()
    const off = this.#emitter.on(event, listener)
    // Transitions are kept for listeners only where there are some; progress is emitted without that.
    this.#hasListeners ||= event !== 'progress'
    return off
  }

  #createEmitter(): Emitter<EngineEvents> {
    const { flow, logger = silentLog } = this.#options
    const threw = (error: unknown) => logger.error({ flow: flow.name, failure: failureOf(error) }, 'a listener threw')
    return new Emitter(threw, { events: ENGINE_EVENTS })
  }

  /** Suspends the flow. It may be called at any time: before the run it prevents the run, after the run it does nothing. */
  suspend(): void {
    this.#suspended ??= new InvalidState(`flow ${this.#flow.name} was suspended: stop now, it is resumed later`)
    this.#activeRun?.suspend.abort(this.#suspended)
  }

  /**
   * Runs the flow to an end, once.
   *
   * @throws the reason of `signals.stop`, as soon as it fires
   * @throws MissingDependencies before anything runs, when an atom requires a value that nothing provides
   * @throws ClaimLost when a newer run has acquired the flow
   * @throws StorageFailure when the logbook cannot be written
   * @throws Duplicate or IncompatibleVersion when the logbook's atoms are of other kinds than the flow's
   * @throws InvalidState when it has been called before
   */
  run(): Promise<Ending> {
    return attempt(() => {
      this.#assertFirst()
      const halt = followSignals([this.#options.signals?.stop])
      const driving = this.#drive(halt)
      this.#running = driving
      return rejectOnAbort(driving, halt).finally(() => halt[Symbol.dispose]())
    })
  }

  /**
   * Runs the flow in steps: yields each state of the engine, and continues when the next one is requested. The last state is
   * the end, and the generator returns the {@link Ending}. Leaving the loop suspends the flow and waits for running tasks; an
   * error thrown into the generator ends the flow as FAILURE.
   *
   * @throws as {@link Engine.run}
   * @example for await (const state of engine.runIter()) if (state === 'WAITING' && enough()) engine.suspend()
   */
  async *runIter(): AsyncGenerator<EngineState, Ending, void> {
    this.#assertFirst()
    const over = createDeferred()
    this.#running = over.promise
    using halt = followSignals([this.#options.signals?.stop])
    try {
      return yield* this.#steps(halt)
    } finally {
      over.resolve()
    }
  }

  async *#steps(halt: FollowingSignal): AsyncGenerator<EngineState, Ending, void> {
    const start = toStart(this.#options.log.flow)
    if (start === 'finished') return this.#endedBefore()
    const session = this.#open(start, halt)
    try {
      let state: EngineState = 'RESUMING'
      while (!isEndState(state)) {
        yield* this.#yieldState(session, state)
        this.#stopwatch.begin()
        state = this.#noteStep(state, await session.run.step(state))
      }
      const ending = await session.run.end(state)
      yield state
      return ending
    } catch (error) {
      halt.abort(error)
      throw error
    } finally {
      await this.#close(session)
    }
  }

  /** Yields the state. If the caller then leaves the loop or throws into it, runs on to the end. */
  async *#yieldState({ run }: ActiveRun, state: EngineState): AsyncGenerator<EngineState, void, void> {
    let left = true
    try {
      yield state
      left = false
    } catch (error) {
      left = false
      run.fail()
      await this.#finish(run, state)
      throw error
    } finally {
      if (left) {
        this.suspend()
        await this.#finish(run, state)
      }
    }
  }

  async #finish(run: FlowRun, from: EngineState): Promise<void> {
    let state = from
    while (!isEndState(state)) state = this.#noteStep(state, await run.step(state))
    await run.end(state)
  }

  async #drive(halt: FollowingSignal): Promise<Ending> {
    const start = toStart(this.#options.log.flow)
    if (start === 'finished') return this.#endedBefore()
    const session = this.#open(start, halt)
    try {
      let state: EngineState = 'RESUMING'
      this.#stopwatch.begin()
      while (!isEndState(state)) {
        const next = session.run.step(state)
        // Most steps return at once: an `await` would cost time.
        state = this.#noteStep(state, typeof next === 'string' ? next : await next)
      }
      return await session.run.end(state)
    } catch (error) {
      halt.abort(error)
      throw error
    } finally {
      await this.#close(session)
    }
  }

  /** Checks a step, and notes the time that it took. */
  #noteStep(from: EngineState, to: EngineState): EngineState {
    checkTransition(ENGINE_TRANSITIONS, { what: () => `the engine of flow ${this.#flow.name}`, from, to })
    this.#stopwatch.lap(from)
    return to
  }

  #assertFirst(): void {
    if (this.#running !== undefined)
      throw new InvalidState(`flow ${this.#flow.name}: this engine has run already; make a new one`)
  }

  #endedBefore(): Ending {
    const ledger = new Ledger(this.#options.log.flow, { recordsEvents: false })
    const { failures, revertFailures } = ledger
    return { state: 'SUCCESS', results: collectResults(this.#graph, ledger), failures, revertFailures }
  }

  // --- The parts of a run -----------------------------------------------------------------------------------------

  /** Checks everything that can be checked, and prepares the first write. Writes nothing itself. */
  #open(start: Start, halt: FollowingSignal): ActiveRun {
    const { signals, deadline, log, assertOwner, clock } = this.#options
    const atomStates = this.#prepare(start)
    const suspend = followSignals([signals?.suspend])
    if (this.#suspended) suspend.abort(this.#suspended)
    const held: Disposable[] = [suspend]
    let cancel = signals?.cancel
    if (deadline !== undefined || !(cancel instanceof AbortFlag)) {
      const tooLate = (time: string) => new Timeout(`flow ${this.#flow.name}: not done within ${time}`)
      const either = followSignals([cancel])
      cancel = either
      held.push(either, abortAfter(either, deadline, tooLate, clock))
    }
    const assertMayGoOn = () => {
      assertOwner?.()
      halt.throwIfAborted()
    }
    const writer = new TransitionWriter({
      ledger: atomStates.ledger,
      log,
      assertMayGoOn,
      onRecorded: () => this.#emitEvents(atomStates),
    })
    this.#writer = writer
    const run = this.#createRun(atomStates, { writer, assertMayGoOn, halt, suspend, cancel })
    this.#activeRun = { run, suspend, held }
    return this.#activeRun
  }

  #prepare(start: Start): AtomStates {
    const { log } = this.#options
    const [detail, flow, graph] = [log.flow, this.#flow, this.#graph]
    assertResumable(detail, graph)
    assertSatisfied(flow, { graph, store: this.#store })
    for (const line of findDifferences(detail, { flow, graph })) this.#logger.warn({ flow: flow.name }, line)
    const ledger = new Ledger(detail, { recordsEvents: this.#hasListeners })
    if (start === 'restart') ledger.reset()
    for (const { atom } of graph.atoms) if (!ledger.has(atom.name)) ledger.add(atom)
    if (start === 'restart') dropStaleCheckpoints(ledger, graph.nodes)
    ledger.moveFlow(...pathToRunning(detail, start))
    // An earlier engine may have added atoms: then an atom that was not begun can precede atoms that have to be undone.
    return new AtomStates({ graph, ledger, thorough: start === 'resume' && detail.atoms.length > 0 })
  }

  #createRun(
    atomStates: AtomStates,
    parts: {
      writer: TransitionWriter
      assertMayGoOn: () => void
      halt: FollowingSignal
      suspend: FollowingSignal
      cancel: Stoppable
    },
  ): FlowRun {
    const { onTooManyRequests } = this.#options
    const { context, services, log, deferReverts = true, neverResolve = false, concurrency, span } = this.#options
    const { halt, suspend, cancel } = parts
    const { clock = systemAlarmClock } = this.#options
    const { writer, assertMayGoOn } = parts
    // An accessor here would make a shape for each run, and each use of the object slow.
    const known: RunContext = {
      fence: context?.fence ?? 0n,
      run: log.flow.run,
      job: context?.job,
      schedule: context?.schedule,
      batch: context?.batch,
      limits: context?.limits,
      dependencies: context?.dependencies,
      services,
      flow: this.#flow.name,
      flowVersion: this.#flow.version,
      isolator: this.#options.isolator,
      clock,
      logger: this.#logger,
      // A logger with the fields of the run would name two spans in each line.
      taskLogger: span ? (this.#options.logger ?? silentLog) : this.#logger,
      span,
      performing: this.#options.performing,
      progress: (node, report) => this.#progress(node, report, { atomStates, writer, halt }),
      checkpoints: new Checkpoints({ ledger: atomStates.ledger, writer, halt }),
    }
    const follows = { always: [halt, suspend], executing: cancel }
    const performer = new AtomRunner({ atomStates, store: this.#store, runContext: known, follows, halt })
    return new FlowRun({
      writer,
      assertMayGoOn,
      suspend,
      cancel,
      atomStates,
      performer,
      createResolver: () =>
        new Resolver({
          atomStates,
          deferReverts,
          logger: this.#logger,
          suspend,
          ask: (retry, about) => performer.decide(retry, about),
        }),
      concurrency: concurrency ?? DEFAULT_CONCURRENCY,
      clock,
      neverResolve,
      resume: (resolve) => resumeAtoms({ atomStates, detail: log.flow, deferReverts, neverResolve, resolve }),
      onBroken: (error) => halt.abort(error),
      onTooManyRequests:
        onTooManyRequests &&
        ((error) => {
          onTooManyRequests(error)
          suspend.abort(error)
        }),
    })
  }

  async #close({ run, held }: ActiveRun): Promise<void> {
    clearTimeout(this.#progressTimer)
    await run.whenDrained()
    clearTimeout(this.#progressTimer)
    for (const each of held) each[Symbol.dispose]()
  }

  #emitEvents({ ledger }: AtomStates): void {
    for (const event of ledger.takeEvents()) {
      if (event.kind === 'flow') this.#emitter?.emit('flow', event.event)
      else this.#emitter?.emit('atom', event.event)
    }
  }

  #progress(
    { atom }: AtomNode,
    { done, message }: ProgressReport,
    { atomStates, writer, halt }: { atomStates: AtomStates; writer: TransitionWriter; halt: FollowingSignal },
  ): void {
    if (!Number.isFinite(done) || halt.aborted) return
    const progress = Math.min(1, Math.max(0, done))
    const progressMessage = toProgressMessage(message)
    atomStates.ledger.annotate(atom.name, { meta: { progress }, progressMessage })
    const event = { flow: this.#flow.name, atom: atom.name, progress, ...defined({ message: progressMessage }) }
    this.#options.onProgress?.(event)
    this.#emitter?.emit('progress', event)
    const wait = this.#lastProgressAt + PROGRESS_PERIOD_MS - monotonic()
    const record = () => {
      this.#progressTimer = undefined
      this.#lastProgressAt = monotonic()
      if (!halt.aborted) writer.record().catch((error: unknown) => halt.abort(error))
    }
    // The timer records the newest progress, also if the task reports no more for a long time.
    if (wait <= 0) record()
    else this.#progressTimer ??= startTimer(record, wait).unref()
  }
}

function ignore(): void {}
