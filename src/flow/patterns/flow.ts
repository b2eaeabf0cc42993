/** A flow: atoms in a pattern, with a name, a version, and typed inputs and results. A plain frozen value. */
import { InvalidArgument } from '../../core/errors.ts'
import { brand, hasBrand } from '../atoms/brand.ts'
import type { AnyRetry } from '../atoms/retry.ts'
import type { AnyTask } from '../atoms/task.ts'
import type { FlowLink } from './edges.ts'
import type { PostingDefaults } from './posting-defaults.ts'
import { isSchema, type SchemaInput, type SchemaOutput, type StandardSchema } from './schema.ts'

/** Carries types that exist for the compiler only; no value ever has it. */
declare const TYPES: unique symbol

/** What a flow is made of: tasks, and flows in it. */
export type AnyPart = AnyTask | AnyFlow

/** Any flow, for code that handles flows without knowing their types. */
export interface AnyFlow {
  readonly kind: 'flow'
  /**
   * `linear`: one part after the other. `unordered`: all at once. `graph`: each after those it needs something of.
   */
  readonly pattern: 'linear' | 'unordered' | 'graph'
  readonly name: string
  readonly version: string
  readonly atoms: readonly AnyPart[]
  /** Executed first; decides what becomes of the flow when something in it fails. */
  readonly retry: AnyRetry | undefined
  /** How jobs of it are posted where `post` does not say otherwise. */
  readonly posting: PostingDefaults | undefined
  /** The edges of a graph: those that were given, and those that its parts' needs make. */
  readonly links: readonly FlowLink[] | undefined
  /** The inputs: what atoms require and no atom before them provides. */
  readonly requires: readonly string[]
  /** Inputs that may be absent. */
  readonly optional: readonly string[] | undefined
  /** What its atoms provide. */
  readonly provides: readonly string[]
  /** What a store has to be like. */
  readonly schema: StandardSchema<unknown, object> | undefined
}

/** A flow whose store is an `I` and whose results are an `R`, and whose tasks need an `S` of services. */
export interface Flow<I = never, R = unknown, S = never> extends AnyFlow {
  readonly [TYPES]?: (store: I, services: S) => R
}

/** The type of a flow's store, as a value; see {@link input}. Tasks see an `O`: what a schema makes of the `I`. */
export interface Input<I, O = I> {
  readonly kind: 'input'
  readonly schema: StandardSchema<unknown, object> | undefined
  readonly [TYPES]?: (store: I) => O
}

/**
 * States the type of a flow's store. Without a type the flow has no inputs. With a schema the type is the schema's, and
 * every store is checked by it: when a job is posted, and before its flow runs.
 *
 * @throws InvalidArgument for what is no Standard Schema
 * @example linear('hello', input<{ name: string }>(), greet)
 * @example linear('hello', input(z.object({ name: z.string().min(1) })), greet)
 */
export function input<I extends object = Record<never, never>>(): Input<I>
export function input<const S extends StandardSchema<unknown, object>>(
  schema: S,
): Input<SchemaInput<S>, SchemaOutput<S>>
export function input(schema?: StandardSchema<unknown, object>): Input<never, unknown> {
  if (schema !== undefined && !isSchema(schema))
    throw new InvalidArgument('input takes a Standard Schema, as zod and others make them, or nothing but a type')
  return brand('input', { kind: 'input', schema })
}

export function isInput(value: unknown): value is Input<never> {
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
