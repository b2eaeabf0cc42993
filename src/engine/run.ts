/**
 * A run of a flow, as a machine that goes from state to state:
 *
 *     RESUMING → SCHEDULING → WAITING → ANALYZING → SCHEDULING → … → SUCCESS | REVERTED | FAILURE | SUSPENDED
 *
 * SCHEDULING starts ready atoms, up to the concurrency, and records the collected transitions. WAITING lasts until an atom
 * ends or the pause of a retry is over. ANALYZING records the outcomes and asks retries about failures. The user's code runs
 * only after its start is recorded. Outcomes are not recorded after the run has lost the right to work.
 */
import { onAbort } from '../core/async/abort.ts'
import type { Stoppable } from '../core/async/abort-flag.ts'
import { ChildUnavailable } from '../core/errors.ts'
import { type Failure, failureOf, type TooManyRequests, toTooManyRequests, toUserError } from '../core/failure.ts'
import { defined } from '../core/options.ts'
import type { EndState, EngineState } from '../core/states.ts'
import { type AtomNode, addAttempt, type ExecutionNode } from '../flow/index.ts'
import { type AtomAttempt, type AtomRunner, hasRevert, type RunContext, ThrownErrors } from './atom-runner.ts'
import { type AtomStates, isAtom } from './atom-states.ts'
import { passesGates } from './deciders.ts'
import { type Ending, PATH_TO_ENDING } from './events.ts'
import { ResolutionApplier, RetryTimers } from './resolution-applier.ts'
import type { Resolver } from './resolver.ts'
import { collectResults } from './scope.ts'
import { type AtomCounts, newAtomCounts } from './statistics.ts'
import type { TransitionWriter } from './writer.ts'

export interface FlowRunParts extends Pick<RunContext, 'clock'> {
  readonly atomStates: AtomStates
  readonly writer: TransitionWriter
  readonly performer: AtomRunner
  /** Makes what resolves failures: only a run with a failure needs one. */
  readonly createResolver: () => Resolver
  readonly concurrency: number
  readonly neverResolve: boolean
  readonly suspend: Stoppable
  readonly cancel: Stoppable
  readonly assertMayGoOn: () => void
  /** Continues from the records of an earlier engine; calls `resolve` for failures that are not resolved yet. */
  readonly resume: (resolve: (node: AtomNode, failure: Failure) => Promise<void>) => Promise<void>
  /** Suspends the run, because a task has to begin again later; undefined if no process would begin it. */
  readonly onTooManyRequests: ((error: TooManyRequests) => void) | undefined
  /** Called at once with an error that makes every further step impossible. */
  readonly onBroken: (error: unknown) => void
}

type PerformedStep = 'execute' | 'revert'

type AtomOutcome =
  | { readonly node: AtomNode; readonly did: PerformedStep; readonly attempt: AtomAttempt }
  | { readonly node: AtomNode; readonly did: 'decide'; readonly failure: Failure }

export class FlowRun {
  readonly #parts: FlowRunParts
  readonly #atomStates: AtomStates
  readonly #thrownErrors = new ThrownErrors()
  readonly #underWay = new Set<ExecutionNode>()
  readonly #outcomes: AtomOutcome[] = []
  readonly #waits: RetryTimers
  readonly #consequences: ResolutionApplier
  readonly counts: AtomCounts = newAtomCounts()
  #wake: (() => void) | undefined
  /** The error that ends the run: of a write, or of `assertMayGoOn`. */
  #fatal: { readonly error: unknown } | undefined
  /** Whether a failure is final: no further atom is started. */
  #isStuck = false
  /** Whether a retry was interrupted while it decided: it is asked again on resume. */
  #hasUnresolved = false
  #startedCount = false
  #cancelled: { readonly reason: unknown } | undefined
  #resolver: Resolver | undefined

  constructor(parts: FlowRunParts) {
    this.#parts = parts
    this.#atomStates = parts.atomStates
    const over = (node: AtomNode) => {
      this.#atomStates.frontier.consider(node)
      this.#wake?.()
    }
    this.#waits = new RetryTimers({ clock: parts.clock, over })
    const { atomStates, clock } = parts
    this.#consequences = new ResolutionApplier({ atomStates, clock, waits: this.#waits })
  }

  /** The number of atoms that run now. */
  get underWay(): number {
    return this.#underWay.size
  }

  /** Performs the step of a state; resolves to the next state. @throws the error that ends the run without an ending */
  step(state: EngineState): EngineState | Promise<EngineState> {
    switch (state) {
      case 'RESUMING':
        return this.#resume()
      case 'SCHEDULING':
        return this.#schedule()
      case 'WAITING':
        return this.#wait()
      case 'ANALYZING':
        return this.#analyze()
      default:
        return state
    }
  }

  /** Starts no further atom and ends the run as FAILURE, for a reason outside the flow. */
  fail(): void {
    this.#isStuck = true
  }

  /** Resolves when no code of the user runs any more. */
  async whenDrained(): Promise<void> {
    this.#waits.clear()
    while (this.#underWay.size > 0) {
      if (this.#outcomes.length === 0) await this.#nextEvent()
      for (const { node } of this.#outcomes.splice(0)) this.#underWay.delete(node)
    }
  }

  /** Records the end of the run. */
  async end(state: EndState): Promise<Ending> {
    // A run that was suspended before it did anything leaves the flow as it was, without a write.
    if (state !== 'SUSPENDED' || this.#startedCount) {
      this.#atomStates.ledger.moveFlow(...PATH_TO_ENDING[state])
      await this.#parts.writer.record()
    }
    const { ledger, graph } = this.#atomStates
    const { failures, revertFailures } = ledger
    const why = this.#thrownErrors.first ?? (this.#cancelled && { error: this.#cancelled.reason })
    return { state, results: collectResults(graph, ledger), failures, revertFailures, ...why }
  }

  // --- Resuming ---------------------------------------------------------------------------------------------------

  async #resume(): Promise<EngineState> {
    this.#parts.assertMayGoOn()
    await this.#parts.resume(async (node, failure) => {
      if (this.#parts.neverResolve) this.#isStuck = true
      else await this.#resolve(node, failure)
    })
    return 'SCHEDULING'
  }

  // --- Scheduling -------------------------------------------------------------------------------------------------

  #schedule(): EngineState {
    this.#parts.assertMayGoOn()
    const { suspend, cancel } = this.#parts
    if (cancel.aborted && !this.#isStuck && this.#atomStates.frontier.undoneCount > 0) this.#revertAllFor(cancel.reason)
    const startsNothing = this.#isStuck || suspend.aborted
    if (!startsNothing) this.#startReady()
    if (this.#underWay.size > 0 || (this.#waits.size > 0 && !startsNothing)) return 'WAITING'
    return this.#endState()
  }

  #startReady(): void {
    const begun: { node: AtomNode; did: PerformedStep }[] = []
    while (this.#hasFreePlace) {
      const node = this.#atomStates.frontier.take()
      if (!node) break
      const did = this.#begin(node)
      if (!did || !isAtom(node)) continue
      this.#underWay.add(node)
      begun.push({ node, did })
    }
    if (begun.length === 0) return
    this.#startedCount = true
    const recorded = this.#parts.writer.record()
    for (const { node, did } of begun) void this.#perform(node, did, recorded)
  }

  /** Whether another atom may run. Tasks that wait for a child process take no place of others; at most as many are started. */
  get #hasFreePlace(): boolean {
    const { concurrency, performer } = this.#parts
    return this.#underWay.size - Math.min(performer.waitingForChild, concurrency) < concurrency
  }

  /** Returns the end state, when no atom runs and none was started. */
  #endState(): EndState {
    if (this.#isStuck) return 'FAILURE'
    if (this.#atomStates.frontier.undoneCount === 0) return 'SUCCESS'
    if (this.#parts.suspend.aborted && (this.#hasUnresolved || this.#hasRemaining())) return 'SUSPENDED'
    return 'REVERTED'
  }

  #hasRemaining(): boolean {
    if (this.#waits.size > 0) return true
    for (let node = this.#atomStates.frontier.take(); node; node = this.#atomStates.frontier.take())
      if (this.#atomStates.nextAction(node)) return true
    return false
  }

  /** Advances a node as far as possible without the user's code; returns the next step that runs the user's code, if any. */
  #begin(node: ExecutionNode): PerformedStep | undefined {
    if (this.#underWay.has(node) || (isAtom(node) && this.#waits.has(node))) return undefined
    const step = this.#atomStates.nextAction(node)
    if (step === 'decide') {
      this.#passesGates(node)
      return undefined
    }
    if (!step || !isAtom(node)) return undefined
    if (step === 'execute') return this.#passesGates(node) ? this.#beginExecute(node) : undefined
    if (step === 'retry') return this.#beginRetry(node)
    return this.#beginRevert(node)
  }

  /** Returns whether the deciders before a node let it run. They are asked once, until something behind them begins. */
  #passesGates(node: ExecutionNode): boolean {
    if (node.gates.length === 0) return true
    if (isAtom(node) && this.#atomStates.record(node).state !== 'PENDING') return true
    try {
      const passes = passesGates(node, this.#atomStates)
      if (!passes) this.#startedCount = true
      if (!isAtom(node)) this.#atomStates.frontier.mark(node, { done: true, clean: true })
      return passes
    } catch (error) {
      this.#failNode(node, error)
      return false
    }
  }

  /**
   * Fails the first atom of a target whose decider has thrown, without a record of RUNNING in between: an engine that resumes
   * from RUNNING would execute the atom without a decision.
   */
  #failNode(node: ExecutionNode, error: unknown): void {
    const [gate] = node.gates
    const atoms = this.#atomStates.graph.nodes.slice(gate?.target.first, gate?.target.end).filter(isAtom)
    const [first] = atoms
    if (!first) throw toUserError(error, 'a decider')
    this.#atomStates.moveTo(first, 'RUNNING')
    this.#underWay.add(first)
    this.#outcomes.push({ node: first, did: 'decide', failure: this.#recordFailure(first, { error, begun: false }) })
  }

  #beginExecute(node: AtomNode): PerformedStep {
    const { state, meta } = this.#atomStates.record(node)
    // An atom whose process died is still RUNNING in its record: there is nothing new to record.
    if (state !== 'RUNNING') this.#atomStates.moveTo(node, 'RUNNING', this.#newVersion(node))
    if ('progress' in meta || 'begun' in meta)
      this.#atomStates.ledger.annotate(node.atom.name, {
        meta: { progress: undefined, begun: undefined },
        progressMessage: undefined,
      })
    return 'execute'
  }

  /** Returns the version of an atom whose record has another version; undefined if they are equal. */
  #newVersion(node: AtomNode): { version: string } | undefined {
    const { version } = node.atom
    return this.#atomStates.record(node).version === version ? undefined : { version }
  }

  #beginRetry(node: AtomNode): PerformedStep | undefined {
    const wait = this.#consequences.remainingWait(node)
    if (wait > 0) {
      this.#waitFor(node, wait)
      return undefined
    }
    this.counts.retried += 1
    if (this.#atomStates.record(node).state !== 'RETRYING') this.#atomStates.moveTo(node, 'RETRYING')
    this.#atomStates.renewAfter(node)
    this.#atomStates.intend(node, 'EXECUTE')
    this.#thrownErrors.forgetUnless((atom) => this.#atomStates.ledger.atom(atom).failure !== undefined)
    return this.#beginExecute(node)
  }

  #waitFor(node: AtomNode, wait: number): void {
    this.#startedCount = true
    this.#waits.begin(node, wait)
    this.#parts.writer.record().catch((error: unknown) => this.#break(error))
  }

  #beginRevert(node: AtomNode): PerformedStep | undefined {
    const { state, meta } = this.#atomStates.record(node)
    if (state === 'RETRYING') this.#atomStates.moveTo(node, 'RUNNING')
    // It is not known whether the atom had succeeded when its process died: it is reverted like an atom that failed halfway.
    if (state === 'RUNNING' || state === 'RETRYING') this.#atomStates.moveTo(node, 'FAILURE')
    if (state !== 'REVERTING') this.#atomStates.moveTo(node, 'REVERTING')
    if (hasRevert(node.atom) && meta['begun'] !== false) return 'revert'
    this.#startedCount = true
    this.#moveToReverted(node)
    return undefined
  }

  /** Records that an atom is undone. One that is to be executed was interrupted: it begins anew in the same record. */
  #moveToReverted(node: AtomNode, outcome?: { readonly revertResult?: unknown }): void {
    this.#atomStates.moveTo(node, 'REVERTED', outcome)
    if (this.#atomStates.record(node).intention === 'EXECUTE') this.#atomStates.renew(node)
  }

  /** Executes or reverts an atom after its start is recorded. Never rejects. */
  async #perform(node: AtomNode, did: PerformedStep, recorded: Promise<void>): Promise<void> {
    try {
      await recorded
      const { performer } = this.#parts
      const performing = did === 'execute' ? performer.execute(node) : performer.revert(node)
      // A task that waits for a child process leaves its place to another.
      if (performer.waitingForChild > 0) this.#wake?.()
      const attempt = await performing
      this.#outcomes.push({ node, did, attempt })
    } catch (error) {
      // What is known of the atom, that nothing of it has run, is recorded if that is possible: the next owner need not take it as interrupted.
      if (error instanceof ChildUnavailable) await this.#parts.writer.record().catch(() => undefined)
      this.#break(error)
      this.#outcomes.push({ node, did, attempt: { ok: false, error, begun: false } })
    }
    this.#wake?.()
  }

  #break(error: unknown): void {
    this.#fatal ??= { error }
    this.#parts.onBroken(error)
    this.#wake?.()
  }

  // --- Waiting ----------------------------------------------------------------------------------------------------

  #wait(): EngineState | Promise<EngineState> {
    const { suspend, cancel } = this.#parts
    const hasToEnd = () => this.#waits.size > 0 && this.#underWay.size === 0 && (suspend.aborted || cancel.aborted)
    return this.#outcomes.length > 0 || this.#fatal || hasToEnd() ? 'ANALYZING' : this.#nextEvent()
  }

  /** Resolves when an atom has ended, the pause of a retry is over, or one of the signals has fired. */
  #nextEvent(): Promise<EngineState> {
    return new Promise((resolve) => {
      // Running atoms follow the signals themselves, and nothing can be done before they are over.
      const signals = this.#waits.size > 0 ? [this.#parts.suspend, this.#parts.cancel] : []
      const subscriptions = signals.map((signal) => onAbort(signal, () => this.#wake?.()))
      this.#wake = () => {
        this.#wake = undefined
        for (const unsubscribe of subscriptions) unsubscribe()
        resolve('ANALYZING')
      }
    })
  }

  // --- Analyzing --------------------------------------------------------------------------------------------------

  #analyze(): EngineState | Promise<EngineState> {
    if (this.#fatal) throw this.#fatal.error
    this.#parts.assertMayGoOn()
    const failed: { node: AtomNode; failure: Failure }[] = []
    for (const outcome of this.#outcomes.splice(0)) {
      const { node } = outcome
      this.#underWay.delete(node)
      const failure = this.#failureIn(outcome)
      if (failure) failed.push({ node, failure })
    }
    if (failed.length > 0) return this.#resolveAll(failed)
    return 'SCHEDULING'
  }

  /** Records the outcome; returns the failure that has to be resolved, if any. */
  #failureIn(outcome: AtomOutcome): Failure | undefined {
    if (outcome.did === 'decide') return outcome.failure
    const { node, did, attempt } = outcome
    return did === 'execute' ? this.#recordExecuted(node, attempt) : this.#recordReverted(node, attempt)
  }

  #recordExecuted(node: AtomNode, attempt: AtomAttempt): Failure | undefined {
    if (attempt.ok) {
      this.counts.executed += 1
      const { value } = attempt
      // An encoding that has no undefined must give the same record back.
      const fields = value === undefined ? undefined : { result: value }
      const more =
        node.atom.kind === 'retry'
          ? { ...fields, history: addAttempt(this.#atomStates.record(node).history ?? [], value) }
          : fields
      this.#atomStates.moveTo(node, 'SUCCESS', more)
      // Meanwhile it may have been decided that it is to be undone.
      this.#atomStates.frontier.consider(node)
      return undefined
    }
    const isPutOff = this.#putOff(node, attempt.error)
    if (this.#parts.suspend.aborted) {
      // Nothing of it counts, so the next owner need not take it as interrupted.
      if (!attempt.begun || isPutOff) this.#atomStates.ledger.annotate(node.atom.name, { meta: { begun: false } })
      this.#atomStates.frontier.consider(node)
      return undefined
    }
    return this.#recordFailure(node, attempt)
  }

  /** Suspends the run if the task has to begin again later. A flow that is being undone goes on: it has to end. */
  #putOff(node: AtomNode, error: unknown): boolean {
    const { onTooManyRequests, cancel } = this.#parts
    if (!onTooManyRequests || cancel.aborted || this.#atomStates.record(node).intention !== 'EXECUTE') return false
    const refused = toTooManyRequests(error)
    if (refused) onTooManyRequests(refused)
    return refused !== undefined
  }

  #recordFailure(node: AtomNode, { error, begun }: { readonly error: unknown; readonly begun: boolean }): Failure {
    if (!begun) this.#atomStates.ledger.annotate(node.atom.name, { meta: { begun } })
    this.counts.failed += 1
    this.#thrownErrors.note(node.atom.name, error)
    const failure = failureOf(error)
    this.#atomStates.moveTo(node, 'FAILURE', { failure })
    this.#atomStates.frontier.consider(node)
    return failure
  }

  #recordReverted(node: AtomNode, attempt: AtomAttempt): undefined {
    if (attempt.ok) {
      this.counts.reverted += 1
      // What the checkpoint says was done is undone.
      if (this.#atomStates.record(node).checkpoint)
        this.#atomStates.ledger.annotate(node.atom.name, { checkpoint: undefined })
      this.#moveToReverted(node, defined({ revertResult: attempt.value }))
    } else if (this.#parts.suspend.aborted) {
      this.#atomStates.frontier.consider(node)
    } else {
      this.counts.failed += 1
      this.#isStuck = true
      this.#atomStates.moveTo(node, 'REVERT_FAILURE', { revertFailure: failureOf(attempt.error) })
    }
    return undefined
  }

  async #resolveAll(failed: readonly { node: AtomNode; failure: Failure }[]): Promise<EngineState> {
    for (const { node, failure } of failed) {
      if (this.#parts.neverResolve) this.#isStuck = true
      else if (this.#parts.cancel.aborted) this.#revertAllFor(this.#parts.cancel.reason)
      else await this.#resolve(node, failure)
    }
    return 'SCHEDULING'
  }

  async #resolve(node: AtomNode, failure: Failure): Promise<void> {
    this.#parts.assertMayGoOn()
    this.#resolver ??= this.#parts.createResolver()
    const resolution = await this.#resolver.resolve(node, failure)
    if (resolution) this.#consequences.apply(resolution)
    else this.#hasUnresolved = true
  }

  #revertAllFor(reason: unknown): void {
    if (this.#consequences.isRevertingAll) return
    this.#cancelled = { reason }
    this.#consequences.revertAll()
  }
}
