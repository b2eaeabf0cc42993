/** Runs the user's code: what atoms execute and revert, and what retries decide. What it throws is an outcome. */
import { describeError, type Failure, failureOf } from '../core/failure.ts'
import type { Stoppable } from '../core/stop.ts'
import { inTask } from '../core/work.ts'
import { type Answer, type AtomNode, type ExecutableAtom, History } from '../flow/index.ts'
import { plain } from './plain.ts'
import { argumentsOf, type Store } from './scope.ts'
import type { Standing } from './standing.ts'
import { type Known, type Telling, Told } from './told.ts'

export type { Known } from './told.ts'

export type Attempt =
  | { readonly ok: true; readonly value: unknown }
  /** Not begun: its arguments were not there, so that nothing of the atom's has run. */
  | { readonly ok: false; readonly error: unknown; readonly begun: boolean }

export interface PerformerOptions {
  readonly standing: Standing
  readonly store: Store
  readonly known: Known
  /** What an atom hears of whatever it does, and beside that only while it executes. */
  readonly follows: { readonly always: readonly Stoppable[]; readonly executing: Stoppable }
}

export class Performer {
  readonly #options: PerformerOptions
  readonly #always: Telling
  readonly #executing: Telling

  constructor(options: PerformerOptions) {
    const { always, executing } = options.follows
    this.#options = options
    this.#always = { follows: always, progress: false }
    this.#executing = { follows: [...always, executing], progress: true }
  }

  /** What cannot be stored is the atom's failure, and undone like one. */
  execute(node: AtomNode): Promise<Attempt> {
    const { atom } = node
    const told = this.#told(node, this.#executing)
    if (atom.kind === 'retry') {
      const ctx = Object.assign(told, { history: this.#historyOf(node) })
      const made = (value: unknown) => plain(value, () => `the value of retry ${atom.name}`)
      return this.#attempt(node, { told, kept: made }, (args) => atom.execute(args, ctx))
    }
    const { preExecute, postExecute } = atom
    const made = (value: unknown) => plain(value, () => `the result of task ${atom.name}`)
    if (!preExecute && !postExecute)
      return this.#attempt(node, { told, kept: made }, (args) => atom.execute(args, told))
    return this.#attempt(node, { told, kept: (value) => value }, (args) =>
      between({
        before: () => preExecute?.(args, told),
        work: async () => made(await atom.execute(args, told)),
        after: () => postExecute?.(args, told),
      }),
    )
  }

  revert(node: AtomNode): Promise<Attempt> {
    const { atom } = node
    const { result, failure } = this.#options.standing.record(node)
    const failures: readonly Failure[] = this.#options.standing.ledger.failures
    const told = this.#told(node, this.#always)
    const ctx = Object.assign(told, { result, failure, failures })
    const kept = (value: unknown) => this.#plainIfPossible(atom.name, value)
    if (atom.kind === 'retry') {
      const withHistory = Object.assign(ctx, { history: this.#historyOf(node) })
      return this.#attempt(node, { told, kept }, (args) => atom.revert?.(args, withHistory))
    }
    const { preRevert, postRevert } = atom
    return this.#attempt(node, { told, kept }, (args) =>
      between({
        before: () => preRevert?.(args, ctx),
        work: async () => atom.revert?.(args, ctx),
        after: () => postRevert?.(args, ctx),
      }),
    )
  }

  /** What a retry does about a failure. @throws what it throws */
  async decide(node: AtomNode, about: { failure: Failure; atom: string }): Promise<Answer> {
    const { atom } = node
    if (atom.kind !== 'retry') return 'REVERT'
    const told = this.#told(node, this.#always)
    const ctx = Object.assign(told, { history: this.#historyOf(node), ...about })
    const attempt = await this.#attempt(node, { told, kept: (value) => value }, (args) => atom.onFailure(args, ctx))
    if (attempt.ok) return attempt.value as Answer
    throw attempt.error
  }

  #told(node: AtomNode, telling: Telling): Told {
    return new Told(this.#options.known, node, telling)
  }

  #historyOf(node: AtomNode): History {
    const { history = [], failure } = this.#options.standing.record(node)
    return new History(history, failure)
  }

  /** @param options.kept what becomes of what `work` returns; what it throws is the atom's failure, too */
  async #attempt(
    node: AtomNode,
    { told, kept }: { readonly told: Told; readonly kept: (value: unknown) => unknown },
    work: (args: Record<string, unknown>) => unknown,
  ): Promise<Attempt> {
    let begun = false
    try {
      const args = argumentsOf(node, { store: this.#options.store, ledger: this.#options.standing.ledger })
      told.begin()
      begun = true
      return { ok: true, value: kept(await inTask(node.atom.name, () => work(args))) }
    } catch (error) {
      const { flow, logger } = this.#options.known
      // Not as `err`: pino writes into what it is given, and some errors are frozen, or in themselves.
      if (logger.isLevelEnabled('debug'))
        logger.debug({ flow, task: node.atom.name, failure: failureOf(error) }, 'threw')
      return { ok: false, error, begun }
    } finally {
      told.end()
    }
  }

  /** A failed revert is for a human, at the worst moment: what a revert happens to return must not cause one. */
  #plainIfPossible(name: string, value: unknown): unknown {
    try {
      return plain(value, () => `what the revert of ${name} returned`)
    } catch (error) {
      const { flow, logger } = this.#options.known
      logger.warn({ flow, task: name }, `not recorded: ${describeError(error)}`)
      return undefined
    }
  }
}

/** What was thrown first counts; what comes after it is told beside it. */
async function between<T>(steps: { before: () => unknown; work: () => Promise<T>; after: () => unknown }): Promise<T> {
  const { before, work, after } = steps
  let done: T
  try {
    await before()
    done = await work()
  } catch (error) {
    try {
      await after()
    } catch (more) {
      throw new AggregateError([error, more], `${describeError(error)}; and what came after it threw, too`)
    }
    throw error
  }
  await after()
  return done
}

/** Whether undoing an atom runs any code of the user's. */
export function hasRevert(atom: ExecutableAtom): boolean {
  if (atom.revert) return true
  return atom.kind === 'task' && (atom.preRevert !== undefined || atom.postRevert !== undefined)
}
