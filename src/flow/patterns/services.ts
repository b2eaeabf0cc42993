/** The services that the tasks of a flow need in `ctx.services`, as types: the intersection of their annotations. */
import type { AnyPart, Flow } from './flow.ts'

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
