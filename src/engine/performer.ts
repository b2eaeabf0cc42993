/** Runs the user's code: what atoms execute and revert, and what retries decide. What it throws is an outcome. */
import { describeError, type Failure, failureOf } from '../core/failure.ts'
import type { Logger } from '../core/log.ts'
import { type Answer, type AtomNode, type Context, type ExecutableAtom, History } from '../flow/index.ts'
import { plain } from './plain.ts'
import { argumentsOf, type Store } from './scope.ts'
import type { Standing } from './standing.ts'
import { type Known, Told, type ToldOptions } from './told.ts'

export type { Known } from './told.ts'

export type Attempt =
  | { readonly ok: true; readonly value: unknown }
  /** Not begun: its arguments were not there, so that nothing of the atom's has run. */
  | { readonly ok: false; readonly error: unknown; readonly begun: boolean }

type Arguments = Record<string, unknown>

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
      const more = { history: this.#historyOf(node) }
      return this.#attempt(node, { more, follows, progress }, async (args, ctx) =>
        plain(await atom.execute(args, ctx), `the value of retry ${atom.name}`),
      )
    }
    return this.#attempt(node, { more: {}, follows, progress }, async (args, ctx) => {
      const work = async () => plain(await atom.execute(args, ctx), `the result of task ${atom.name}`)
      const { preExecute, postExecute } = atom
      if (!preExecute && !postExecute) return work()
      return between({ before: () => preExecute?.(args, ctx), work, after: () => postExecute?.(args, ctx) })
    })
  }

  revert(node: AtomNode): Promise<Attempt> {
    const { atom } = node
    const { result, failure } = this.#options.standing.record(node)
    const failures: readonly Failure[] = this.#options.standing.ledger.failures
    const follows = this.#always
    if (atom.kind === 'retry') {
      const more = { result, failure, failures, history: this.#historyOf(node) }
      return this.#attempt(node, { more, follows }, async (args, ctx) =>
        this.#plainIfPossible(atom.name, await atom.revert?.(args, ctx)),
      )
    }
    return this.#attempt(node, { more: { result, failure, failures }, follows }, async (args, ctx) => {
      const work = async () => this.#plainIfPossible(atom.name, await atom.revert?.(args, ctx))
      const { preRevert, postRevert } = atom
      if (!preRevert && !postRevert) return work()
      return between({ before: () => preRevert?.(args, ctx), work, after: () => postRevert?.(args, ctx) })
    })
  }

  /** What a retry does about a failure. @throws what it throws */
  async decide(node: AtomNode, about: { failure: Failure; atom: string }): Promise<Answer> {
    const { atom } = node
    if (atom.kind !== 'retry') return 'REVERT'
    const more = { history: this.#historyOf(node), ...about }
    const attempt = await this.#attempt(node, { more, follows: this.#always }, (args, ctx) => atom.onFailure(args, ctx))
    if (attempt.ok) return attempt.value as Answer
    throw attempt.error
  }

  #argumentsOf(node: AtomNode): Arguments {
    return argumentsOf(node, { store: this.#options.store, ledger: this.#options.standing.ledger })
  }

  #historyOf(node: AtomNode): History {
    const { history = [], failure } = this.#options.standing.record(node)
    return new History(history, failure)
  }

  async #attempt<More extends object>(
    node: AtomNode,
    { more, follows, progress }: Pick<ToldOptions, 'follows' | 'progress'> & { readonly more: More },
    work: (args: Arguments, ctx: Context & More) => unknown,
  ): Promise<Attempt> {
    const { atom } = node
    const { flow, logger, known } = this.#options
    const log = () => logger.child({ flow, task: atom.name })
    const told = new Told(known, { what: `${atom.kind} ${atom.name}`, follows, log, deadline: atom.deadline, progress })
    let begun = false
    try {
      const args = this.#argumentsOf(node)
      told.begin()
      begun = true
      return { ok: true, value: await work(args, Object.assign(told, more)) }
    } catch (error) {
      // Not as `err`: pino writes into what it is given, and some errors are frozen, or in themselves.
      if (logger.isLevelEnabled('debug')) logger.debug({ flow, task: atom.name, failure: failureOf(error) }, 'threw')
      return { ok: false, error, begun }
    } finally {
      told.end()
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
