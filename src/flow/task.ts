/** A task: the smallest piece of a flow, a named function with what it needs, what it makes, and how to undo it. */
import { InvalidArgument } from '../core/errors.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { brand, hasBrand } from './brand.ts'
import type { Context, RevertContext } from './context.ts'

/** A task whose arguments are `A`, and whose result `R` later tasks know as `P`. Frozen. */
export interface Task<A, P extends string, R> extends AnyTask {
  readonly provides: P | undefined
  readonly execute: (args: A, ctx: Context) => R | Promise<R>
  readonly revert: ((args: A, ctx: RevertContext<R>) => unknown) | undefined
}

/**
 * Any task, for code that handles tasks without knowing their types. What it executes is not part of it: nobody could
 * call that without the types.
 */
export interface AnyTask {
  readonly kind: 'task'
  readonly name: string
  readonly version: string
  readonly requires: readonly string[]
  readonly provides: string | undefined
}

export interface TaskOptions<Q extends string, A, P extends string, R> {
  /** The names of the arguments: inputs of the flow, or what earlier tasks provide. */
  readonly requires?: readonly Q[] | undefined
  /** The name under which later tasks require the result. */
  readonly provides?: P | undefined
  /** Recorded in the logbook, so that a resumed flow can tell that the code has changed meanwhile; default `'1.0'`. */
  readonly version?: string | undefined
  /**
   * Does the work. It may run more than once (a process can die just before its success is recorded), so it should lead
   * to the same end each time. What it returns is stored and has to be plain data; later tasks see it as it was stored.
   * Arguments are shared between tasks: do not change them.
   */
  readonly execute: (args: A, ctx: Context) => R | Promise<R>
  /**
   * Undoes what `execute` did, or did half: the task that failed is reverted too. It may run more than once. What it
   * returns is kept for people to see, if it is plain data.
   */
  readonly revert?: ((args: NoInfer<A>, ctx: RevertContext<NoInfer<R>>) => unknown) | undefined
}

/** With what a task has beside them, because one task can be made from another: `task('again', { ...greet })`. */
const OPTIONS: KnownOptions<TaskOptions<never, never, never, never> & AnyTask> = {
  requires: true,
  provides: true,
  version: true,
  execute: true,
  revert: true,
  kind: true,
  name: true,
}

/** Turns an argument that `requires` does not name into a compile error that says so. */
type Declared<A, Q> =
  Exclude<keyof A, Q> extends never ? unknown : { requires: `missing in requires: ${Exclude<keyof A, Q> & string}` }

/**
 * Describes a task. Annotate the arguments of `execute` once: the compiler checks them against `requires` here, and
 * against the flow's input and the tasks before it in the flow. An argument without annotation is `unknown`.
 *
 * @throws InvalidArgument for an empty name, a missing `execute`, names that are no text, or an option that is not known
 * @example
 * const greet = task('greet', {
 *   requires: ['name'],
 *   provides: 'text',
 *   execute: async ({ name }: { name: string }) => `Hello, ${name}!`,
 * })
 */
export function task<
  const Q extends string = never,
  R = unknown,
  A extends { [K in Q]: unknown } = { [K in Q]: unknown },
  const P extends string = never,
>(name: string, options: TaskOptions<Q, A, P, R> & Declared<A, Q>): Task<A, P, R> {
  if (!isName(name)) throw new InvalidArgument('a task needs a name: a text that is not empty')
  // A caller without a compiler can pass anything, so the options are looked at as if nothing were known of them.
  const given: { readonly [K in keyof TaskOptions<Q, A, P, R>]?: unknown } = options ?? {}
  const { requires = [], provides, version = '1.0', execute, revert } = given
  if (typeof execute !== 'function') throw new InvalidArgument(`task ${name}: execute has to be a function`)
  assertOptions(options, OPTIONS, `task ${name}`)
  if (revert !== undefined && typeof revert !== 'function')
    throw new InvalidArgument(`task ${name}: revert has to be a function`)
  if (!Array.isArray(requires) || !requires.every(isName))
    throw new InvalidArgument(`task ${name}: requires has to be a list of names`)
  if (provides !== undefined && !isName(provides)) throw new InvalidArgument(`task ${name}: provides has to be a name`)
  if (!isName(version)) throw new InvalidArgument(`task ${name}: version has to be a text such as '1.0'`)
  return brand('task', {
    kind: 'task',
    name,
    version,
    requires: Object.freeze([...requires]),
    provides: options.provides,
    execute: options.execute,
    revert: options.revert,
  })
}

/** Whether this is a task, also one made by another copy of the library. */
export function isTask(value: unknown): value is AnyTask {
  return hasBrand('task', value)
}

/** Whether this can name an atom, a flow, or a value that goes from one to the other. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}
