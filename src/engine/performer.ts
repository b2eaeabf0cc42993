/** Runs the user's code: what atoms execute and revert, and what retries decide. What it throws is an outcome. */
import { describeError, type Failure } from '../core/failure.ts'
import type { Logger } from '../core/log.ts'
import { type Answer, type AtomNode, type Context, type ExecutableAtom, History } from '../flow/index.ts'
import { plain } from './plain.ts'
import { argumentsOf, type Store } from './scope.ts'
import type { Standing } from './standing.ts'
import { type ToldOptions, told } from './told.ts'

/** What is the same for every atom of a run. */
export type Known = Pick<Context, 'fence' | 'run' | 'job'>

export type Attempt = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown }

export interface PerformerOptions {
  readonly flow: string
  readonly standing: Standing
  readonly store: Store
  readonly known: Known
  /** What an atom hears of whatever it does, and beside that only while it executes. */
  readonly follows: { readonly always: readonly AbortSignal[]; readonly executing: AbortSignal }
  readonly logger: Logger
  readonly progress: (node: AtomNode, done: number) => void
}

export class Performer {
  readonly #options: PerformerOptions
  readonly #always: readonly AbortSignal[]
  readonly #executing: readonly AbortSignal[]

  constructor(options: PerformerOptions) {
    this.#options = options
    this.#always = options.follows.always
    this.#executing = [...options.follows.always, options.follows.executing]
  }

  /** What cannot be stored is the atom's failure, and undone like one. */
  execute(node: AtomNode): Promise<Attempt> {
    const { atom } = node
    const follows = this.#executing
    const progress = (done: number) => this.#options.progress(node, done)
    if (atom.kind === 'retry') {
      const known = { ...this.#options.known, history: this.#historyOf(node) }
      return this.#attempt(node, { known, follows, progress }, async (ctx) =>
        plain(await atom.execute(this.#argumentsOf(node), ctx), `the value of retry ${atom.name}`),
      )
    }
    return this.#attempt(node, { known: this.#options.known, follows, progress }, async (ctx) => {
      const args = this.#argumentsOf(node)
      if (!atom.preExecute && !atom.postExecute)
        return plain(await atom.execute(args, ctx), `the result of task ${atom.name}`)
      try {
        await atom.preExecute?.(args, ctx)
        return plain(await atom.execute(args, ctx), `the result of task ${atom.name}`)
      } finally {
        await atom.postExecute?.(args, ctx)
      }
    })
  }

  revert(node: AtomNode): Promise<Attempt> {
    const { atom } = node
    const { result, failure } = this.#options.standing.record(node)
    const failures: readonly Failure[] = this.#options.standing.ledger.failures
    const known = { ...this.#options.known, result, failure, failures }
    const follows = this.#always
    if (atom.kind === 'retry') {
      const withHistory = { ...known, history: this.#historyOf(node) }
      return this.#attempt(node, { known: withHistory, follows }, async (ctx) =>
        this.#plainIfPossible(atom.name, await atom.revert?.(this.#argumentsOf(node), ctx)),
      )
    }
    return this.#attempt(node, { known, follows }, async (ctx) => {
      const args = this.#argumentsOf(node)
      try {
        await atom.preRevert?.(args, ctx)
        return this.#plainIfPossible(atom.name, await atom.revert?.(args, ctx))
      } finally {
        await atom.postRevert?.(args, ctx)
      }
    })
  }

  /** What a retry does about a failure. @throws what it throws */
  async decide(node: AtomNode, about: { failure: Failure; atom: string }): Promise<Answer> {
    const { atom } = node
    if (atom.kind !== 'retry') return 'REVERT'
    const known = { ...this.#options.known, history: this.#historyOf(node), ...about }
    const attempt = await this.#attempt(node, { known, follows: this.#always }, (ctx) =>
      atom.onFailure(this.#argumentsOf(node), ctx),
    )
    if (attempt.ok) return attempt.value as Answer
    throw attempt.error
  }

  #argumentsOf(node: AtomNode): Record<string, unknown> {
    return argumentsOf(node, { store: this.#options.store, ledger: this.#options.standing.ledger })
  }

  #historyOf(node: AtomNode): History {
    const { history = [], failure } = this.#options.standing.record(node)
    return new History(history, failure)
  }

  async #attempt<K extends Known>(
    { atom }: AtomNode,
    facts: Pick<ToldOptions<K>, 'known' | 'follows' | 'progress'>,
    work: (ctx: Context & K) => unknown,
  ): Promise<Attempt> {
    const { flow, logger } = this.#options
    const what = `${atom.kind} ${atom.name}`
    using telling = told({
      ...facts,
      what,
      log: () => logger.child({ flow, task: atom.name }),
      deadline: atom.deadline,
    })
    try {
      return { ok: true, value: await work(telling.context) }
    } catch (error) {
      logger.debug({ flow, task: atom.name, err: error }, 'threw')
      return { ok: false, error }
    }
  }

  /** A failed revert is for a human, at the worst moment: what a revert happens to return must not cause one. */
  #plainIfPossible(name: string, value: unknown): unknown {
    try {
      return plain(value, `what the revert of task ${name} returned`)
    } catch (error) {
      this.#options.logger.warn({ flow: this.#options.flow, task: name }, `not recorded: ${describeError(error)}`)
      return undefined
    }
  }
}

/** Whether undoing an atom runs any code of the user's. */
export function hasRevert(atom: ExecutableAtom): boolean {
  if (atom.revert) return true
  return atom.kind === 'task' && (atom.preRevert !== undefined || atom.postRevert !== undefined)
}
