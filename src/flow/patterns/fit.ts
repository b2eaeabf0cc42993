/**
 * The compiler's check of a flow: whether each part gets what it requires, with the right type, from the store, from the
 * flow's retry, or from the parts that it can see. The file has only types. A part that does not fit is required to have a
 * type that no part has, and whose text is the error message.
 *
 * The store shadows what tasks provide, as it does at run time.
 */
import type { AnyPart, Flow } from './flow.ts'

type Empty = Record<never, never>
type Flat<T> = { [K in keyof T]: T[K] }

/** The properties of both, where `Newer` wins. Without a common key an intersection is equal, and shallow for the compiler. */
type Override<Base, Newer> = keyof Base & keyof Newer extends never
  ? Base & Newer
  : Flat<Omit<Base, keyof Newer> & Newer>

/** The type of a property, without undefined; `never` if there is no such property. */
type Property<T, K extends string> = T extends { readonly [P in K]: infer V } ? Exclude<V, undefined> : never

/** The arguments of an atom under the names they are bound to, without the injected ones. */
type ExternalNeeds<A, B, J> = [B, J] extends [never, never]
  ? A
  : [keyof B | keyof J] extends [never]
    ? A
    : string extends keyof B | keyof J
      ? unknown
      : { [K in keyof A as K extends keyof J ? never : K extends keyof B ? B[K] & string : K]: A[K] }

/** The needs of a part from outside; `unknown` or `never` if the compiler does not know them. */
type NeedsOf<T> = T extends { readonly kind: 'flow' }
  ? T extends Flow<infer I>
    ? I
    : never
  : T extends { execute: (args: infer A, ...rest: never) => unknown }
    ? ExternalNeeds<A, Property<T, 'rebind'>, Property<T, 'inject'>>
    : never

/** The names of an atom's result, with their types; empty if the compiler does not know the names. */
type NamedResult<P, R> = [P] extends [never]
  ? Empty
  : P extends string
    ? string extends P
      ? Empty
      : { [K in P]: R }
    : P extends { readonly keys: readonly (infer K extends string)[] }
      ? { [N in K]: N extends keyof R ? R[N] : unknown }
      : P extends readonly string[]
        ? { [I in Exclude<keyof P, keyof (readonly unknown[])> as P[I] & string]: PartAt<R, I> }
        : Empty

type PartAt<R, I> = R extends readonly unknown[] ? (I extends keyof R ? R[I] : R[number]) : unknown

/** The results of a part; empty for a flow whose type the compiler does not know. */
export type ProvidedBy<T> = [T] extends [never]
  ? Empty
  : T extends { readonly kind: 'flow' }
    ? T extends Flow<never, infer R>
      ? string extends keyof R
        ? Empty
        : unknown extends R
          ? Empty
          : R
      : Empty
    : T extends { provides: infer P; execute: (...args: never) => infer R }
      ? NamedResult<Exclude<P, undefined>, Awaited<R>>
      : Empty

/**
 * The results of all parts, names and types; the last provider of a name wins. It is flattened here and not by `Flat`, whose
 * name editors would show instead of the result.
 */
export type Results<Parts extends readonly AnyPart[], Made = Empty> = number extends Parts['length']
  ? Record<string, unknown>
  : Parts extends readonly [infer First, ...infer Rest extends readonly AnyPart[]]
    ? Results<Rest, Override<Made, ProvidedBy<First>>>
    : { [K in keyof Made]: Made[K] }

/**
 * The parts of a linear flow, where an error type replaces each part that does not fit. A list of unknown length stays as it
 * is, and is checked at run time. The recursion is in tail position; otherwise long flows would be too deep.
 */
export type Fitting<
  Store,
  Parts extends readonly AnyPart[],
  Made = Empty,
  Checked extends readonly unknown[] = [],
> = number extends Parts['length']
  ? Parts
  : Parts extends readonly [infer First, ...infer Rest extends readonly AnyPart[]]
    ? Fitting<Store, Rest, Override<Made, ProvidedBy<First>>, [...Checked, Fit<Override<Made, Store>, First>]>
    : Checked

/** The parts of an unordered flow, checked as by {@link Fitting}: no part sees the results of another. */
export type FittingApart<Store, Parts extends readonly AnyPart[], Made = Empty> = number extends Parts['length']
  ? Parts
  : { [I in keyof Parts]: Fit<Override<Made, Store>, Parts[I]> }

/** The parts of a graph, checked as by {@link Fitting}: every part sees the results of all others, in any order. */
export type FittingGraph<Store, Parts extends readonly AnyPart[], Made = Empty> = number extends Parts['length']
  ? Parts
  : { [I in keyof Parts]: Fit<Override<Results<Parts, Made>, Store>, Parts[I]> }

/** The retry of a flow, checked as by {@link Fitting}: it gets values only from the store. */
export type FittingRetry<Store, Rt> = Fit<Store, Rt>

/** The part if it fits, else an error type. A part of unknown needs (an `AnyTask`) is checked at run time. */
type Fit<Known, T> = [NeedsOf<T>] extends [never] ? T : Known extends NeedsOf<T> ? T : Misfit<Known, NeedsOf<T>>

type Misfit<Known, A> = [Missing<Known, A>] extends [never]
  ? {
      'provided with another type than required': {
        [K in keyof A & keyof Known as Known[K] extends A[K] ? never : K]: { provided: Known[K]; required: A[K] }
      }
    }
  : `neither the input nor a task before this one provides: ${Missing<Known, A> & string}`

type Missing<Known, A> = {
  [K in keyof A]-?: K extends keyof Known ? never : Empty extends Pick<A, K> ? never : K
}[keyof A]

/** The services of one part; `unknown`, which adds nothing, if it needs none or its type is not known. */
type ServicesOfOne<T> = [T] extends [never]
  ? unknown
  : T extends { readonly kind: 'flow' }
    ? T extends Flow<never, unknown, infer S>
      ? S
      : unknown
    : T extends { execute: (args: never, ctx: infer C extends { readonly services: unknown }) => unknown }
      ? C['services']
      : unknown

/** The services of several parts: the intersection, inferred from the parameter of a union of functions. */
export type ServicesOf<Parts extends readonly AnyPart[], Rt = never> =
  | ((services: ServicesOfOne<Rt>) => void)
  | { [I in keyof Parts]: (services: ServicesOfOne<Parts[I]>) => void }[number] extends (services: infer S) => void
  ? S
  : unknown
