/** What the tasks of a flow need of `ctx.services`, as types: all that any of them is annotated with. */
import type { AnyPart, Flow } from './flow.ts'

/** Of one part; `unknown`, which is nothing, where it needs none or the compiler does not know. */
type ServicesOfOne<T> = [T] extends [never]
  ? unknown
  : T extends { readonly kind: 'flow' }
    ? T extends Flow<never, unknown, infer S>
      ? S
      : unknown
    : T extends { execute: (args: never, ctx: infer C extends { readonly services: unknown }) => unknown }
      ? C['services']
      : unknown

/** Of several parts together. A function that takes what each needs takes what all of them need. */
export type ServicesOf<Parts extends readonly AnyPart[], Rt = never> =
  | ((services: ServicesOfOne<Rt>) => void)
  | { [I in keyof Parts]: (services: ServicesOfOne<Parts[I]>) => void }[number] extends (services: infer S) => void
  ? S
  : unknown
