/** A flow: atoms in a pattern, with a name, a version, and typed inputs and results. A plain frozen value. */
import { brand, hasBrand } from './brand.ts'
import type { AnyTask } from './task.ts'

/** Carries types that exist for the compiler only; no value ever has it. */
declare const TYPES: unique symbol

/** Any flow, for code that handles flows without knowing their types. */
export interface AnyFlow {
  readonly kind: 'flow'
  readonly pattern: 'linear'
  readonly name: string
  readonly version: string
  readonly atoms: readonly AnyTask[]
  /** The inputs: what atoms require and no atom before them provides. */
  readonly requires: readonly string[]
  /** What its atoms provide. */
  readonly provides: readonly string[]
}

/** A flow whose store is an `I` and whose results are an `R`. */
export interface Flow<I = never, R = unknown> extends AnyFlow {
  readonly [TYPES]?: (store: I) => R
}

/** The type of a flow's store, as a value; see {@link input}. */
export interface Input<I> {
  readonly kind: 'input'
  readonly [TYPES]?: (store: I) => I
}

/**
 * States the type of a flow's store. Without a type the flow has no inputs.
 *
 * @example linear('hello', input<{ name: string }>(), greet)
 */
export function input<I extends object = Record<never, never>>(): Input<I> {
  return brand('input', { kind: 'input' })
}

export function isInput(value: unknown): value is Input<unknown> {
  return hasBrand('input', value)
}

/** Whether this is a flow, also one made by another copy of the library. */
export function isFlow(value: unknown): value is AnyFlow {
  return hasBrand('flow', value)
}

/**
 * The inputs that the store lacks, in the order in which the flow needs them; all of them where there is no store. Types
 * are gone at run time: this is what a store that came over the wire is checked with.
 *
 * @example missingInputs(hello, {}) // ['name']
 */
export function missingInputs(flow: AnyFlow, store: object | undefined): string[] {
  return flow.requires.filter((name) => !Object.hasOwn(store ?? {}, name))
}
