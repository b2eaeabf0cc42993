/** Runs the user's code: `execute`, `revert` and `onFailure` of atoms. An error of that code is an outcome. */
import type { Stoppable } from '../core/async/abort-flag.ts'
import { runInTask } from '../core/async/execution.ts'
import { roundTrip, unstorableError } from '../core/codec.ts'
import { ChildUnavailable, InvalidArgument } from '../core/errors.ts'
import { describeError, type Failure, failureOf, toErrorType } from '../core/failure.ts'
import { type AtomNode, type ExecutableAtom, History, type Isolation, type RetryDecision } from '../flow/index.ts'
import { AtomContext, type AtomContextOptions, type RunContext } from './atom-context.ts'
import type { AtomStates } from './atom-states.ts'
import type { IsolatedAtom } from './isolated.ts'
import { resolveArguments, type Store } from './scope.ts'

export type { RunContext } from './atom-context.ts'

export type AtomAttempt =
  | { readonly ok: true; readonly value: unknown }
  /** A failed attempt. It is not begun if an argument was missing: then no code of the atom has run. */
  | { readonly ok: false; readonly error: unknown; readonly begun: boolean }

interface AttemptOptions {
  readonly context: AtomContext
  /** Converts the result; an error that it throws is a failure of the atom, too. */
  readonly kept: (value: unknown) => unknown
  /** Whether the atom waits for a child process, and calls `begin` itself: until then its deadline does not run. */
  readonly isIsolated?: boolean
}

export interface AtomRunnerOptions {
  readonly atomStates: AtomStates
  readonly store: Store
  readonly runContext: RunContext
  /** The signals that an atom follows: always, and additionally while it executes. */
  readonly follows: { readonly always: readonly Stoppable[]; readonly executing: Stoppable }
  /** Fires when the right to run the flow is lost. */
  readonly halt: Stoppable
}

export class AtomRunner {
  readonly #options: AtomRunnerOptions
  readonly #reverting: AtomContextOptions
  readonly #deciding: AtomContextOptions
  readonly #executing: AtomContextOptions
  #waitingForChild = 0

  constructor(options: AtomRunnerOptions) {
    const { always, executing } = options.follows
    this.#options = options
    this.#reverting = { follows: always, reportsProgress: false, step: 'revert' }
    this.#deciding = { ...this.#reverting, step: 'decide' }
    this.#executing = { follows: [...always, executing], cancel: executing, reportsProgress: true, step: 'execute' }
  }

  /** The number of isolated tasks that wait for a child process: they do nothing yet. */
  get waitingForChild(): number {
    return this.#waitingForChild
  }

  /** Executes an atom. A result that cannot be stored is a failure of the atom, and is reverted as such. */
  execute(node: AtomNode): Promise<AtomAttempt> {
    const { atom } = node
    const context = this.#createContext(node, this.#executing)
    if (atom.kind === 'retry') {
      const ctx = Object.assign(context, { history: this.#readHistory(node) })
      const plain = (value: unknown) => toPlain(value, () => `the value of retry ${atom.name}`)
      return this.#attempt(node, { context, kept: plain }, (args) => atom.execute(args, ctx))
    }
    const isolation = this.#isolationOf(node)
    if (isolation) return this.#attemptIsolated(node, { context, isolation, how: 'execute' })
    const { preExecute, postExecute } = atom
    const plain = (value: unknown) => toPlain(value, () => `the result of task ${atom.name}`)
    if (!preExecute && !postExecute)
      return this.#attempt(node, { context, kept: plain }, (args) => atom.execute(args, context))
    return this.#attempt(node, { context, kept: (value) => value }, (args) =>
      mergeErrors({
        before: () => preExecute?.(args, context),
        work: async () => plain(await atom.execute(args, context)),
        after: () => postExecute?.(args, context),
      }),
    )
  }

  revert(node: AtomNode): Promise<AtomAttempt> {
    const { atom } = node
    const { result, failure } = this.#options.atomStates.record(node)
    const failures: readonly Failure[] = this.#options.atomStates.ledger.failures
    const context = this.#createContext(node, this.#reverting)
    const ctx = Object.assign(context, { result, failure, failures })
    const kept = (value: unknown) => this.#plainIfPossible(atom.name, value)
    if (atom.kind === 'retry') {
      const withHistory = Object.assign(ctx, { history: this.#readHistory(node) })
      return this.#attempt(node, { context, kept }, (args) => atom.revert?.(args, withHistory))
    }
    const isolation = this.#isolationOf(node)
    if (isolation) {
      const reverted = { result, failure, failures }
      return this.#attemptIsolated(node, { context, isolation, how: 'revert', reverted })
    }
    const { preRevert, postRevert } = atom
    return this.#attempt(node, { context, kept }, (args) =>
      mergeErrors({
        before: () => preRevert?.(args, ctx),
        work: async () => atom.revert?.(args, ctx),
        after: () => postRevert?.(args, ctx),
      }),
    )
  }

  /** Asks a retry to decide about a failure. @throws what the retry throws */
  async decide(node: AtomNode, about: { failure: Failure; atom: string }): Promise<RetryDecision> {
    const { atom } = node
    if (atom.kind !== 'retry') return 'REVERT'
    const context = this.#createContext(node, this.#deciding)
    const ctx = Object.assign(context, { history: this.#readHistory(node), ...about })
    const attempt = await this.#attempt(node, { context, kept: (value) => value }, (args) => atom.onFailure(args, ctx))
    if (attempt.ok) return attempt.value as RetryDecision
    throw attempt.error
  }

  #createContext(node: AtomNode, options: AtomContextOptions): AtomContext {
    return new AtomContext(this.#options.runContext, node, options)
  }

  #readHistory(node: AtomNode): History {
    const { history = [], failure } = this.#options.atomStates.record(node)
    return new History(history, failure)
  }

  #isolationOf(node: AtomNode): Isolation | undefined {
    const { isolator } = this.#options.runContext
    return isolator ? isolator.isolationOf(node) : node.isolation
  }

  /** Runs a task in a child process. Its result is plain data already, because it has come through a codec. */
  #attemptIsolated(
    node: AtomNode,
    { context, ...what }: Pick<IsolatedAtom, 'how' | 'reverted' | 'isolation'> & { readonly context: AtomContext },
  ): Promise<AtomAttempt> {
    const { runContext, halt } = this.#options
    return this.#attempt(node, { context, kept: (value) => value, isIsolated: true }, async (args, begin) => {
      const { isolator, flow, flowVersion: version } = runContext
      if (!isolator)
        throw new InvalidArgument(
          `task ${node.atom.name} runs in a child process, and there is no pool of them: add pool: { module: … }`,
        )
      let isWaiting = true
      const stopWaiting = () => {
        if (isWaiting) this.#waitingForChild -= 1
        isWaiting = false
      }
      const onAssigned = () => {
        stopWaiting()
        begin()
      }
      this.#waitingForChild += 1
      try {
        return await isolator.run({
          ...{ flow: { name: flow, version }, node, args, context, kill: halt, onAssigned },
          trace: context.span?.context,
          ...what,
        })
      } finally {
        stopWaiting()
      }
    })
  }

  async #attempt(
    node: AtomNode,
    { context, kept, isIsolated = false }: AttemptOptions,
    work: (args: Record<string, unknown>, begin: () => void) => unknown,
  ): Promise<AtomAttempt> {
    let begun = false
    let errorType: string | undefined
    const begin = () => {
      if (!begun) context.begin({ isIsolated })
      begun = true
    }
    try {
      const args = resolveArguments(node, { store: this.#options.store, ledger: this.#options.atomStates.ledger })
      if (!isIsolated) begin()
      context.throwIfCancelled()
      const { span } = context
      const run = () => runInTask(node.atom.name, () => work(args, begin))
      return { ok: true, value: kept(await (span ? span.within(run) : run())) }
    } catch (error) {
      if (context.span) errorType = toErrorType(failureOf(error))
      // This is no failure of the task, and ends the run as missing logbooks do. A task in this process that throws one has failed: it is the
      // error of another pool.
      if (isIsolated && error instanceof ChildUnavailable) {
        if (!begun) this.#options.atomStates.ledger.annotate(node.atom.name, { meta: { begun } })
        throw error
      }
      const { flow, logger } = this.#options.runContext
      // Not as `err`: pino writes into the errors that it logs, and some are frozen, or contain themselves.
      if (logger.isLevelEnabled('debug'))
        logger.debug({ flow, task: node.atom.name, failure: failureOf(error) }, 'threw')
      return { ok: false, error, begun }
    } finally {
      context.end()
      context.span?.end({ errorType })
    }
  }

  /** Returns plain data, or undefined: a failed revert needs a human, and the result of a revert must not cause one. */
  #plainIfPossible(name: string, value: unknown): unknown {
    try {
      return toPlain(value, () => `what the revert of ${name} returned`)
    } catch (error) {
      const { flow, logger } = this.#options.runContext
      logger.warn({ flow, task: name }, `not recorded: ${describeError(error)}`)
      return undefined
    }
  }
}

/** Runs the steps in order. The first error counts; an error of `after` is added to it. */
export async function mergeErrors<T>(steps: {
  before: () => unknown
  work: () => Promise<T>
  after: () => unknown
}): Promise<T> {
  const { before, work, after } = steps
  let done: T
  try {
    await before()
    done = await work()
  } catch (error) {
    try {
      await after()
    } catch (more) {
      throw new AggregateError([error, more], `${describeError(error)}; and the hook after it threw, too`)
    }
    throw error
  }
  await after()
  return done
}

/** Returns whether undoing an atom runs any code of the user's. */
export function hasRevert(atom: ExecutableAtom): boolean {
  if (atom.revert) return true
  return atom.kind === 'task' && (atom.preRevert !== undefined || atom.postRevert !== undefined)
}

const SAFE_TYPES: ReadonlySet<string> = new Set(['string', 'number', 'boolean', 'undefined'])

/**
 * Returns a result as the logbook gives it back. It goes through the codec once, when it is made: a later task sees in the same
 * process exactly what it would see after a crash in another. What the logbook would refuse is refused here, where the task can
 * be named.
 *
 * @throws InvalidArgument for a value that is not plain data, with its name, `what`
 */
export function toPlain(value: unknown, what: () => string): unknown {
  if (value === null || SAFE_TYPES.has(typeof value)) return value
  try {
    return roundTrip(value)
  } catch (cause) {
    throw unstorableError(what(), cause)
  }
}

/** The very errors that atoms threw in this engine: a failure in a record is only what was kept of one. */
export class ThrownErrors {
  /** The errors by atom, in the order in which they occurred. */
  #errors: Map<string, unknown> | undefined

  note(atom: string, error: unknown): void {
    this.#errors ??= new Map()
    if (!this.#errors.has(atom)) this.#errors.set(atom, error)
  }

  /** Removes the errors of past attempts, which were undone. */
  forgetUnless(stillCounts: (atom: string) => boolean): void {
    for (const atom of [...(this.#errors?.keys() ?? [])]) if (!stillCounts(atom)) this.#errors?.delete(atom)
  }

  /** Undefined where there is none; any value can be thrown. */
  get first(): { readonly error: unknown } | undefined {
    for (const error of this.#errors?.values() ?? []) return { error }
    return undefined
  }
}
