/**
 * The engine: runs one flow from wherever its logbook says it is to an end.
 *
 * Forwards it executes the atoms; when one fails it turns back and reverts, first the atom that failed, then every atom
 * that had succeeded, after all that came after it. Atoms that never ran are not reverted. A revert that fails ends
 * everything: the flow is a FAILURE, and no further revert makes it worse.
 *
 * **What it costs.** A flow of n tasks that succeeds takes n + 1 writes to the logbook: the first task's start with the
 * flow's, each task's success with the next one's start, the last success with the flow's. On the way back only tasks
 * that have a `revert` cost a write. Scheduling costs each atom as much as it has neighbours.
 *
 * **Three ways to be interrupted.** `stop` says that the right to work is gone: the engine rejects at once with the
 * signal's reason, starts nothing and writes nothing more, whether the task under way heeds its signal or not; `idle`
 * tells when that task is really over. `suspend` asks for a rest: the task under way is waited for; what it did is
 * recorded if it succeeded, and if it threw it counts as not done and will run again. `cancel` asks for what was done to be
 * undone: no further task starts, and the way back begins. Once the last task has succeeded it comes too late.
 */
import { unlessAborted } from '../core/abort.ts'
import { InvalidState } from '../core/errors.ts'
import { describeError, failureOf } from '../core/failure.ts'
import { type Logger, silent } from '../core/log.ts'
import type { AtomState, FlowState } from '../core/states.ts'
import {
  type AnyFlow,
  type Context,
  compile,
  type ExecutableTask,
  type ExecutionGraph,
  type ExecutionNode,
} from '../flow/index.ts'
import type { FlowLog } from '../persistence/index.ts'
import type { Ending } from './ending.ts'
import { type Direction, Frontier } from './frontier.ts'
import { Ledger } from './ledger.ts'
import { plain } from './plain.ts'
import { assertResumable, differences, startOf, WAY_TO_RUNNING } from './resume.ts'
import { argumentsOf, assertSatisfied, resultsOf, type Store } from './scope.ts'
import { told } from './told.ts'

export interface EngineOptions {
  readonly flow: AnyFlow
  /** The inputs of the flow. */
  readonly store?: Store
  /** The flow's record, acquired by this run. The engine does not close it. */
  readonly log: FlowLog
  readonly signals?: { readonly stop?: AbortSignal; readonly suspend?: AbortSignal; readonly cancel?: AbortSignal }
  /**
   * Throws when this run has no right to go on. Asked before and after each write, and so before each task: signals fire on
   * timers, which are late in a process that was stopped.
   */
  readonly assertOwner?: () => void
  /** What tasks are told beside their arguments; the run is the log's. */
  readonly context?: { readonly fence?: bigint; readonly job?: { readonly uuid: string; readonly name: string } }
  readonly logger?: Logger
}

/** What is the same for every task of a run. */
type Known = Pick<Context, 'fence' | 'run' | 'job'>

type Step = 'done' | 'failed' | 'suspended'

type Attempt = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown }

/** Nothing to execute here, or nothing to undo. */
const SETTLED: Readonly<Record<Direction, ReadonlySet<AtomState>>> = {
  forwards: new Set(['SUCCESS', 'IGNORE']),
  backwards: new Set(['PENDING', 'REVERTED', 'IGNORE']),
}

/** Where a flow goes from RUNNING when it ends. */
const WAY_TO_ENDING: Readonly<Record<Ending['state'], readonly FlowState[]>> = {
  SUCCESS: ['SUCCESS'],
  REVERTED: ['REVERTED'],
  FAILURE: ['FAILURE'],
  SUSPENDED: ['SUSPENDING', 'SUSPENDED'],
}

/**
 * @example
 * const log = await persistence.acquire({ book, flow: { uuid, name: hello.name, version: hello.version }, run, claim })
 * const ending = await new Engine({ flow: hello, store: { name: 'Ada' }, log }).run()
 */
export class Engine {
  readonly #flow: AnyFlow
  readonly #graph: ExecutionGraph
  readonly #store: Store
  readonly #log: FlowLog
  readonly #ledger: Ledger
  readonly #stop: AbortSignal | undefined
  readonly #suspend: AbortSignal | undefined
  readonly #cancel: AbortSignal | undefined
  readonly #assertOwner: (() => void) | undefined
  readonly #context: Known
  readonly #logger: Logger
  #driving: Promise<Ending> | undefined
  #started = false
  #error: { readonly thrown: unknown } | undefined

  /** @throws InvalidArgument when the flow has a pattern or an atom that this release does not know */
  constructor(options: EngineOptions) {
    const { flow, store = {}, log, signals, assertOwner, context, logger = silent } = options
    this.#flow = flow
    this.#graph = compile(flow)
    this.#store = store
    this.#log = log
    this.#ledger = new Ledger(log)
    this.#stop = signals?.stop
    this.#suspend = signals?.suspend
    this.#cancel = signals?.cancel
    this.#assertOwner = assertOwner
    this.#context = { fence: context?.fence ?? 0n, run: log.flow.run, job: context?.job }
    this.#logger = logger
  }

  /** Resolves when nothing of this engine runs any more: no task, no write. Never rejects. */
  get idle(): Promise<void> {
    const over = () => undefined
    return this.#driving?.then(over, over) ?? Promise.resolve()
  }

  /**
   * Runs the flow to an end, once.
   *
   * @throws the reason of `signals.stop`, as soon as it fires
   * @throws MissingDependencies before anything runs, when an atom requires what nobody provides
   * @throws ClaimLost when a newer run has acquired the flow
   * @throws StorageFailure when the logbook cannot be written
   * @throws Duplicate or IncompatibleVersion when the logbook's atoms are of other kinds than the flow's
   * @throws InvalidState when it has been called before
   */
  async run(): Promise<Ending> {
    if (this.#driving !== undefined)
      throw new InvalidState(`flow ${this.#flow.name}: this engine has run already; make a new one`)
    this.#driving = this.#drive()
    return unlessAborted(this.#driving, this.#stop)
  }

  async #drive(): Promise<Ending> {
    const start = startOf(this.#log.flow)
    if (start === 'over') return this.#ending('SUCCESS')
    this.#prepare({ anew: start === 'anew' })
    const ahead = start === 'backwards' ? 'failed' : await this.#walk('forwards')
    if (ahead === 'done') return this.#end('SUCCESS')
    if (ahead === 'suspended') return this.#end('SUSPENDED')
    this.#turnBack()
    const back = await this.#walk('backwards')
    if (back === 'done') return this.#end('REVERTED')
    return this.#end(back === 'failed' ? 'FAILURE' : 'SUSPENDED')
  }

  /** Checks everything that can be checked, and gathers what the first write will say. Writes nothing itself. */
  #prepare(options: { anew: boolean }): void {
    const detail = this.#log.flow
    assertResumable(detail, this.#graph)
    assertSatisfied(this.#flow, { graph: this.#graph, store: this.#store })
    const lines = differences(detail, { flow: this.#flow, graph: this.#graph })
    for (const line of lines) this.#logger.warn({ flow: this.#flow.name }, line)
    if (options.anew) this.#ledger.reset()
    for (const { atom } of this.#graph.nodes) if (!this.#ledger.has(atom.name)) this.#ledger.add(atom)
    this.#ledger.moveFlow(...WAY_TO_RUNNING[detail.state])
  }

  async #walk(direction: Direction): Promise<Step> {
    const frontier = new Frontier(this.#graph, direction)
    for (let node = frontier.take(); node; node = frontier.take()) {
      if (!SETTLED[direction].has(this.#ledger.atom(node.atom.name).state)) {
        if (this.#suspend?.aborted) return 'suspended'
        if (direction === 'forwards' && this.#cancel?.aborted) {
          this.#error ??= { thrown: this.#cancel.reason }
          return 'failed'
        }
        this.#started = true
        const step = direction === 'forwards' ? await this.#execute(node) : await this.#revert(node)
        if (step !== 'done') return step
      }
      frontier.settle(node)
    }
    return 'done'
  }

  async #execute(node: ExecutionNode): Promise<Step> {
    const { name, version, execute } = node.atom
    const args = argumentsOf(node, { store: this.#store, ledger: this.#ledger })
    // A task that was RUNNING when its process died is RUNNING still, and has nothing new to record.
    if (this.#ledger.atom(name).state !== 'RUNNING') this.#ledger.moveAtom(name, 'RUNNING', { version })
    await this.#record()
    // What cannot be stored is the task's failure, and undone like one.
    const attempt = await this.#attempt(
      { task: name, known: this.#context, follows: [this.#cancel] },
      async (context) => plain(await execute(args, context), `the result of task ${name}`),
    )
    if (attempt.ok) {
      this.#ledger.moveAtom(name, 'SUCCESS', { result: attempt.value })
      return 'done'
    }
    if (this.#suspend?.aborted) return 'suspended'
    this.#error ??= { thrown: attempt.error }
    this.#ledger.moveAtom(name, 'FAILURE', { failure: failureOf(attempt.error) })
    return 'failed'
  }

  async #revert(node: ExecutionNode): Promise<Step> {
    const { name, revert } = node.atom
    const { state } = this.#ledger.atom(name)
    // Whether it had succeeded when its process died is not known: it is undone like one that failed halfway.
    if (state === 'RUNNING') this.#ledger.moveAtom(name, 'FAILURE')
    if (state !== 'REVERTING') this.#ledger.moveAtom(name, 'REVERTING')
    const attempt = revert ? await this.#attemptRevert(node, revert) : { ok: true as const, value: undefined }
    if (attempt.ok) {
      this.#ledger.moveAtom(name, 'REVERTED', { revertResult: this.#revertResult(name, attempt.value) })
      return 'done'
    }
    if (this.#suspend?.aborted) return 'suspended'
    this.#ledger.moveAtom(name, 'REVERT_FAILURE', { revertFailure: failureOf(attempt.error) })
    return 'failed'
  }

  async #attemptRevert(node: ExecutionNode, revert: NonNullable<ExecutableTask['revert']>): Promise<Attempt> {
    await this.#record()
    const { result, failure } = this.#ledger.atom(node.atom.name)
    const known = { ...this.#context, result, failure, failures: this.#ledger.failures }
    return this.#attempt({ task: node.atom.name, known, follows: [] }, (context) => {
      const args = argumentsOf(node, { store: this.#store, ledger: this.#ledger })
      return revert(args, context)
    })
  }

  /** Runs a piece of the user's code. What it throws is an outcome; what goes wrong around it is not. */
  async #attempt<K extends Known>(
    { task, known, follows }: { task: string; known: K; follows: readonly (AbortSignal | undefined)[] },
    work: (ctx: Context & K) => unknown,
  ): Promise<Attempt> {
    const log = () => this.#logger.child({ flow: this.#flow.name, task })
    using telling = told({ known, follows: [this.#stop, this.#suspend, ...follows], log })
    try {
      return { ok: true, value: await work(telling.context) }
    } catch (error) {
      this.#logger.debug({ flow: this.#flow.name, task, err: error }, 'threw')
      return { ok: false, error }
    }
  }

  /** A failed revert is for a human, at the worst moment: what a revert happens to return must not cause one. */
  #revertResult(name: string, value: unknown): unknown {
    try {
      return plain(value, `what the revert of task ${name} returned`)
    } catch (error) {
      this.#logger.warn({ flow: this.#flow.name, task: name }, `not recorded: ${describeError(error)}`)
      return undefined
    }
  }

  /** From here on everything that succeeded is to be undone, and whoever resumes this has to know. */
  #turnBack(): void {
    for (const { atom } of this.#graph.nodes)
      if (!SETTLED.backwards.has(this.#ledger.atom(atom.name).state)) this.#ledger.intend(atom.name, 'REVERT')
  }

  async #end(state: Ending['state']): Promise<Ending> {
    // Suspended before anything was done: the flow is left as it was found, and that costs no write.
    if (state === 'SUSPENDED' && !this.#started) return this.#ending(state)
    this.#ledger.moveFlow(...WAY_TO_ENDING[state])
    await this.#record()
    return this.#ending(state)
  }

  /** The only place that writes. A claim that is lost during the write must not let the next step begin. */
  async #record(): Promise<void> {
    this.#assertMayGoOn()
    await this.#ledger.record()
    this.#assertMayGoOn()
  }

  #assertMayGoOn(): void {
    this.#assertOwner?.()
    this.#stop?.throwIfAborted()
  }

  #ending(state: Ending['state']): Ending {
    const { failures, revertFailures } = this.#ledger
    const error = this.#error ? { error: this.#error.thrown } : {}
    return { state, results: resultsOf(this.#graph, this.#ledger), failures, revertFailures, ...error }
  }
}
