/** A task is the smallest part of a flow: a named function, with its arguments, its results, and a way to undo it. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { type AnyAtom, isName, type Provides, type Rebind } from './atom.ts'
import {
  type Arguments,
  ATOM_OPTIONS,
  type AtomOptions,
  assertAtomOptions,
  type Declared,
  freezeAtom,
  type NoMembers,
} from './atom-options.ts'
import { brand, hasBrand } from './brand.ts'
import type { Context, RevertContext } from './context.ts'
import { assertIsolate, type Isolate } from './isolation.ts'

/**
 * A frozen task. `A` are its arguments, `R` is its result, which is provided as `P`; `B` are the arguments that are bound to
 * other names, `J` the arguments that are injected; `S` are the services that it needs.
 */
export interface Task<A, P extends Provides, R, B extends Rebind = NoMembers, J extends object = NoMembers, S = unknown>
  extends AnyTask {
  readonly provides: P | undefined
  readonly rebind: B | undefined
  readonly inject: J | undefined
  readonly execute: (args: A, ctx: Context<S>) => R | Promise<R>
  readonly revert: ((args: A, ctx: RevertContext<R, S>) => unknown) | undefined
  readonly preExecute: ((args: A, ctx: Context<S>) => unknown) | undefined
  readonly postExecute: ((args: A, ctx: Context<S>) => unknown) | undefined
  readonly preRevert: ((args: A, ctx: RevertContext<R, S>) => unknown) | undefined
  readonly postRevert: ((args: A, ctx: RevertContext<R, S>) => unknown) | undefined
}

/**
 * Any task, for code that handles tasks without knowing their types. It has no `execute`, which cannot be called without the
 * types.
 */
export interface AnyTask extends AnyAtom {
  readonly kind: 'task'
  /** Whether it runs in a child process; undefined for what its flow says. */
  readonly isolate: Isolate | undefined
  /** The handling of the task after an interruption; undefined for `rerun`. */
  readonly onInterrupted: OnInterrupted | undefined
}

/**
 * The handling of a task whose `execute` was under way when its owner died, lost the job, or was stopped: it may have done all of its
 * work, some, or nothing.
 *
 * | value | the next owner |
 * |---|---|
 * | `rerun` | executes it again: for tasks that are idempotent |
 * | `revert` | reverts it, and then executes it again: for tasks that can undo what is half done |
 * | `fail` | takes it as failed with Interrupted: retries decide, and else the flow is reverted |
 */
export type OnInterrupted = 'rerun' | 'revert' | 'fail'

const ON_INTERRUPTED: readonly unknown[] = ['rerun', 'revert', 'fail'] satisfies OnInterrupted[]

export interface TaskOptions<
  Q extends string,
  A,
  P extends Provides,
  R,
  O extends string = never,
  B extends Rebind = NoMembers,
  J extends object = NoMembers,
  S = unknown,
> extends AtomOptions<Q, A, P, O, B, J> {
  /**
   * Does the work. It may run more than once, because a process can die just before the success is recorded: make it
   * idempotent. The result is stored and must be plain data; later tasks get it as it was stored. Arguments are shared
   * between tasks: do not change them.
   */
  readonly execute: (args: A, ctx: Context<S>) => R | Promise<R>
  /**
   * Undoes what `execute` did completely or in part: the failed task is reverted, too. It may run more than once. Its result
   * is recorded for people, if it is plain data.
   */
  readonly revert?: ((args: NoInfer<A>, ctx: RevertContext<NoInfer<R>, S>) => unknown) | undefined
  /** Runs before each `execute`, and is part of it: if it throws, the task has failed. */
  readonly preExecute?: ((args: NoInfer<A>, ctx: Context<S>) => unknown) | undefined
  /** Runs after each `execute`, also after an `execute` that threw. If it throws, the task has failed. */
  readonly postExecute?: ((args: NoInfer<A>, ctx: Context<S>) => unknown) | undefined
  readonly preRevert?: ((args: NoInfer<A>, ctx: RevertContext<NoInfer<R>, S>) => unknown) | undefined
  readonly postRevert?: ((args: NoInfer<A>, ctx: RevertContext<NoInfer<R>, S>) => unknown) | undefined
  /**
   * Runs the task in a child process of the conductor's `pool`: it may compute for long, and a crash is a failure of this task alone. Its
   * arguments and its result must be plain data. By default what the flow says. See the guide on isolation.
   */
  readonly isolate?: Isolate | undefined
  /**
   * The handling of the task if its owner dies while it executes; `rerun` by default. A task that waits for a child process counts as
   * a task that executes.
   */
  readonly onInterrupted?: OnInterrupted | undefined
}

type Hooks = 'preExecute' | 'postExecute' | 'preRevert' | 'postRevert'
export type TaskFunctions = 'execute' | 'revert' | Hooks

const KNOWN_OPTIONS: KnownOptions<TaskOptions<never, never, never, never> & AnyTask> = {
  ...ATOM_OPTIONS,
  execute: true,
  revert: true,
  preExecute: true,
  postExecute: true,
  preRevert: true,
  postRevert: true,
  isolate: true,
  onInterrupted: true,
}

/**
 * Describes a task. Annotate the arguments of `execute` once: the compiler checks them against `requires` here, and
 * against the flow's input and the tasks before it in the flow. An argument without annotation is `unknown`; so is
 * `ctx.services`, unless `ctx` is annotated as a `Context<{ db: Database }>`.
 *
 * @throws InvalidArgument for an empty name, a missing `execute`, names that are not strings, or an unknown option
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
  const B extends Rebind = NoMembers,
  J extends object = NoMembers,
  S = unknown,
>(name: string, options: TaskOptions<Q, A, P, R, O, B, J, S> & Declared<A, Q | O | keyof J>): Task<A, P, R, B, J, S> {
  if (!isName(name)) throw new InvalidArgument("a task's name must be a non-empty string of whole characters")
  // A caller without a compiler can pass anything: the options are checked as values of unknown types.
  const unchecked: { readonly [K in keyof TaskOptions<Q, A, P, R, O, B, J, S>]?: unknown } = options ?? {}
  if (typeof unchecked.execute !== 'function') throw new InvalidArgument(`task ${name}: execute must be a function`)
  assertOptions(options, KNOWN_OPTIONS, `task ${name}`)
  for (const hook of ['revert', 'preExecute', 'postExecute', 'preRevert', 'postRevert'] as const) {
    if (unchecked[hook] !== undefined && typeof unchecked[hook] !== 'function')
      throw new InvalidArgument(`task ${name}: ${hook} must be a function`)
  }
  assertAtomOptions(unchecked, `task ${name}`)
  assertIsolate(unchecked.isolate, `task ${name}`)
  assertOnInterrupted(unchecked, `task ${name}`)
  const { execute, revert, preExecute, postExecute, preRevert, postRevert, isolate, onInterrupted } = options
  return brand('task', {
    kind: 'task',
    name,
    // What was checked above has the types that the signature says.
    ...(freezeAtom(options) as Omit<Task<A, P, R, B, J, S>, 'kind' | 'name' | TaskFunctions>),
    execute,
    revert,
    preExecute,
    postExecute,
    preRevert,
    postRevert,
    isolate: typeof isolate === 'object' ? Object.freeze({ ...isolate }) : isolate,
    onInterrupted,
  })
}

/** @throws InvalidArgument for an unknown value, and for `revert` where there is nothing that reverts */
function assertOnInterrupted(
  options: { readonly [K in Hooks | 'revert' | 'onInterrupted']?: unknown },
  what: string,
): void {
  const { onInterrupted, revert, preRevert, postRevert } = options
  if (onInterrupted === undefined) return
  if (!ON_INTERRUPTED.includes(onInterrupted))
    throw new InvalidArgument(`${what}: onInterrupted must be one of ${ON_INTERRUPTED.join(', ')}`)
  if (onInterrupted === 'revert' && !revert && !preRevert && !postRevert)
    throw new InvalidArgument(`${what}: onInterrupted is 'revert', so it needs a revert`)
}

/** Returns whether this is a task, made by this or by another copy of the library. */
export function isTask(value: unknown): value is AnyTask {
  return hasBrand('task', value)
}
