/** A task: the smallest piece of a flow, a named function with what it needs, what it makes, and how to undo it. */
import { InvalidArgument } from '../core/errors.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import type { Duration } from '../core/time.ts'
import { type AnyAtom, assertAtomOptions, frozenAtom, isName, type Provides, type Rebind } from './atom.ts'
import { brand, hasBrand } from './brand.ts'
import type { Context, RevertContext } from './context.ts'

export type Nothing = Record<never, never>

/**
 * A task whose arguments are `A`, and whose result `R` later tasks know as `P`; `B` and `J` are what of its arguments is
 * bound to other names, and injected. Frozen.
 */
export interface Task<A, P extends Provides, R, B extends Rebind = Nothing, J extends object = Nothing>
  extends AnyTask {
  readonly provides: P | undefined
  readonly rebind: B | undefined
  readonly inject: J | undefined
  readonly execute: (args: A, ctx: Context) => R | Promise<R>
  readonly revert: ((args: A, ctx: RevertContext<R>) => unknown) | undefined
  readonly preExecute: ((args: A, ctx: Context) => unknown) | undefined
  readonly postExecute: ((args: A, ctx: Context) => unknown) | undefined
  readonly preRevert: ((args: A, ctx: RevertContext<R>) => unknown) | undefined
  readonly postRevert: ((args: A, ctx: RevertContext<R>) => unknown) | undefined
}

/**
 * Any task, for code that handles tasks without knowing their types. What it executes is not part of it: nobody could
 * call that without the types.
 */
export interface AnyTask extends AnyAtom {
  readonly kind: 'task'
}

export interface TaskOptions<
  Q extends string,
  A,
  P extends Provides,
  R,
  O extends string = never,
  B extends Rebind = Nothing,
  J extends object = Nothing,
> {
  /** The names of the arguments: inputs of the flow, or what earlier tasks provide. */
  readonly requires?: readonly Q[] | undefined
  /** The names of arguments that are left out where nobody provides them. */
  readonly optional?: readonly O[] | undefined
  /** Arguments that are provided under another name: `{ name: 'userName' }` gives `name` the value of `userName`. */
  readonly rebind?: (B & Bindable<A, B>) | undefined
  /** Values of arguments, for this task alone: nobody has to provide them. */
  readonly inject?: (J & Injectable<A, J>) | undefined
  /**
   * The name under which later tasks require the result; a list of names for the parts of a list, or `{ keys: […] }` for
   * those of an object.
   */
  readonly provides?: P | undefined
  /** Recorded in the logbook, so that a resumed flow can tell that the code has changed meanwhile; default `'1.0'`. */
  readonly version?: string | undefined
  /** Of several tasks that are ready the one with the greatest goes first, to execute and to revert; default 0. */
  readonly priority?: number | undefined
  /**
   * How long one `execute` or `revert` may take. When it is over, `ctx.signal` fires with a Timeout. The task is still
   * waited for: undoing what is still being done would not undo it.
   */
  readonly deadline?: Duration | undefined
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
  /** Before each `execute`, and part of it: where it throws, the task has failed. */
  readonly preExecute?: ((args: NoInfer<A>, ctx: Context) => unknown) | undefined
  /** After each `execute`, also after one that threw. Where it throws itself, the task has failed. */
  readonly postExecute?: ((args: NoInfer<A>, ctx: Context) => unknown) | undefined
  readonly preRevert?: ((args: NoInfer<A>, ctx: RevertContext<NoInfer<R>>) => unknown) | undefined
  readonly postRevert?: ((args: NoInfer<A>, ctx: RevertContext<NoInfer<R>>) => unknown) | undefined
}

type Hooks = 'preExecute' | 'postExecute' | 'preRevert' | 'postRevert'
export type TaskFunctions = 'execute' | 'revert' | Hooks

/** With what a task has beside them, because one task can be made from another: `task('again', { ...greet })`. */
const OPTIONS: KnownOptions<TaskOptions<never, never, never, never> & AnyTask> = {
  requires: true,
  optional: true,
  rebind: true,
  inject: true,
  provides: true,
  version: true,
  priority: true,
  deadline: true,
  execute: true,
  revert: true,
  preExecute: true,
  postExecute: true,
  preRevert: true,
  postRevert: true,
  kind: true,
  name: true,
}

/** The arguments as `requires` and `optional` declare them. */
export type Arguments<Q extends string, O extends string> = [O] extends [never]
  ? { [K in Q]: unknown }
  : { [K in Q]: unknown } & { [K in O]?: unknown }

export type Bindable<A, B> = { readonly [K in keyof B]: K extends keyof A ? string : never }
export type Injectable<A, J> = { readonly [K in keyof J]: K extends keyof A ? A[K] : never }

/** Turns an argument that nothing names into a compile error that says so. */
export type Declared<A, Q> =
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
  const O extends string = never,
  A extends Arguments<Q, O> = Arguments<Q, O>,
  const P extends Provides = never,
  const B extends Rebind = Nothing,
  J extends object = Nothing,
>(name: string, options: TaskOptions<Q, A, P, R, O, B, J> & Declared<A, Q | O | keyof J>): Task<A, P, R, B, J> {
  if (!isName(name)) throw new InvalidArgument('a task needs a name: a text that is not empty')
  // A caller without a compiler can pass anything, so the options are looked at as if nothing were known of them.
  const given: { readonly [K in keyof TaskOptions<Q, A, P, R, O, B, J>]?: unknown } = options ?? {}
  if (typeof given.execute !== 'function') throw new InvalidArgument(`task ${name}: execute has to be a function`)
  assertOptions(options, OPTIONS, `task ${name}`)
  for (const hook of ['revert', 'preExecute', 'postExecute', 'preRevert', 'postRevert'] as const) {
    if (given[hook] !== undefined && typeof given[hook] !== 'function')
      throw new InvalidArgument(`task ${name}: ${hook} has to be a function`)
  }
  assertAtomOptions(given, `task ${name}`)
  const { requires = [], optional, rebind, inject, provides, version = '1.0', priority, deadline } = options
  const { execute, revert, preExecute, postExecute, preRevert, postRevert } = options
  return brand('task', {
    kind: 'task',
    name,
    // What was checked above has the types that the signature says.
    ...(frozenAtom({ requires, optional, rebind, inject, provides, version, priority, deadline }) as Omit<
      Task<A, P, R, B, J>,
      'kind' | 'name' | TaskFunctions
    >),
    execute,
    revert,
    preExecute,
    postExecute,
    preRevert,
    postRevert,
  })
}

/** Whether this is a task, also one made by another copy of the library. */
export function isTask(value: unknown): value is AnyTask {
  return hasBrand('task', value)
}
