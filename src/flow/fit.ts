/**
 * The compiler's part of a linear flow: whether each task gets what it requires, with the right type, from the store or
 * from the tasks before it. All of it is types. A task that does not fit has to be of a type that no task is of and whose
 * text is the error message.
 *
 * The store shadows what tasks provide, as it does at run time.
 */
import type { Context } from './context.ts'
import type { AnyTask } from './task.ts'

type Empty = Record<never, never>
type Flat<T> = { [K in keyof T]: T[K] }

/** Without a common key an intersection says the same, and chains of it stay shallow for the compiler. */
type Override<Base, Newer> = keyof Base & keyof Newer extends never
  ? Base & Newer
  : Flat<Omit<Base, keyof Newer> & Newer>

type ArgumentsOf<T> = T extends { execute: (args: infer A, ctx: Context) => unknown } ? A : never

/** Nothing, where the compiler does not know the name. */
type ProvidedBy<T> = T extends { provides: infer P; execute: (...args: never) => infer R }
  ? string extends P
    ? Empty
    : { [K in P & string]: Awaited<R> }
  : Empty

/**
 * What the tasks have made when they are done: name and type, the last provider of a name winning. Flattened here and not by
 * `Flat`, whose name editors would show instead of what it comes to.
 */
export type Results<Tasks extends readonly AnyTask[], Made = Empty> = number extends Tasks['length']
  ? Record<string, unknown>
  : Tasks extends readonly [infer First, ...infer Rest extends readonly AnyTask[]]
    ? Results<Rest, Override<Made, ProvidedBy<First>>>
    : { [K in keyof Made]: Made[K] }

/**
 * The list of tasks with each that does not fit replaced by its error. A list whose length is not known to the compiler
 * stays as it is, to be checked at run time. It recurses in tail position, or long flows would be too deep.
 */
export type Fitting<
  Store,
  Tasks extends readonly AnyTask[],
  Made = Empty,
  Checked extends readonly unknown[] = [],
> = number extends Tasks['length']
  ? Tasks
  : Tasks extends readonly [infer First, ...infer Rest extends readonly AnyTask[]]
    ? Fitting<Store, Rest, Override<Made, ProvidedBy<First>>, [...Checked, Fit<Override<Made, Store>, First>]>
    : Checked

/** A task whose arguments the compiler does not know (an `AnyTask`) is left for run time. */
type Fit<Known, T> = [ArgumentsOf<T>] extends [never]
  ? T
  : Known extends ArgumentsOf<T>
    ? T
    : Misfit<Known, ArgumentsOf<T>>

type Misfit<Known, A> =
  Exclude<keyof A, keyof Known> extends never
    ? {
        'provided with another type than required': {
          [K in keyof A & keyof Known as Known[K] extends A[K] ? never : K]: { provided: Known[K]; required: A[K] }
        }
      }
    : `neither the input nor a task before this one provides: ${Exclude<keyof A, keyof Known> & string}`
