/** A flow has atoms in a pattern, a name, a version, and typed inputs and results. It is a plain frozen value. */
import { InvalidArgument } from '../../core/errors.ts'
import { brand, hasBrand } from '../atoms/brand.ts'
import type { Isolate } from '../atoms/isolation.ts'
import type { AnyRetry } from '../atoms/retry.ts'
import type { AnyTask } from '../atoms/task.ts'
import type { FlowLink } from './edges.ts'
import type { KeepLogbooks } from './keep-logbooks.ts'
import type { PostingDefaults } from './posting-defaults.ts'
import { isSchema, type SchemaInput, type SchemaOutput, type StandardSchema } from './schema.ts'

/** A property that carries types for the compiler; no value has it. */
declare const TYPES: unique symbol

/** A part of a flow: a task, or another flow. */
export type AnyPart = AnyTask | AnyFlow

/** Any flow, for code that handles flows without knowing their types. */
export interface AnyFlow {
  readonly kind: 'flow'
  /**
   * `linear`: one part after the other. `unordered`: all parts at once. `graph`: each part after the parts that it depends on.
   */
  readonly pattern: 'linear' | 'unordered' | 'graph'
  readonly name: string
  readonly version: string
  readonly atoms: readonly AnyPart[]
  /** The retry. It is executed first, and decides what happens when something in the flow fails. */
  readonly retry: AnyRetry | undefined
  /** The defaults for `post` with this flow. */
  readonly posting: PostingDefaults | undefined
  /** The time for which the logbooks of its jobs are kept after their last change; undefined for what conductors say. */
  readonly keepLogbooks: KeepLogbooks | undefined
  /** Whether the board keeps the results of its jobs. */
  readonly keepResults: boolean
  /** Whether its tasks run in child processes; undefined for what the outer flow says. */
  readonly isolate: Isolate | undefined
  /** The edges of a graph: the given links, and the edges that follow from the needs of its parts. */
  readonly links: readonly FlowLink[] | undefined
  /** The inputs: names that atoms require and no earlier atom provides. */
  readonly requires: readonly string[]
  /** The inputs that may be absent. */
  readonly optional: readonly string[] | undefined
  /** The names that its atoms provide. */
  readonly provides: readonly string[]
  /** The schema that a store must satisfy. */
  readonly schema: StandardSchema<unknown, object> | undefined
}

/** A flow: `I` is the type of its store, `R` the type of its results, `S` the type of the services that its tasks need. */
export interface Flow<I = never, R = unknown, S = never> extends AnyFlow {
  readonly [TYPES]?: (store: I, services: S) => R
}

/** The type of a flow's store, as a value; see {@link input}. Tasks get an `O`: the schema's output for the `I`. */
export interface Input<I, O = I> {
  readonly kind: 'input'
  readonly schema: StandardSchema<unknown, object> | undefined
  readonly [TYPES]?: (store: I) => O
}

/**
 * Declares the type of a flow's store. Without a type the flow has no inputs. With a schema the type is the schema's, and
 * every store is checked by it: when a job is posted, and before its flow runs.
 *
 * @throws InvalidArgument unless the schema is a Standard Schema
 * @example linear('hello', input<{ name: string }>(), greet)
 * @example linear('hello', input(z.object({ name: z.string().min(1) })), greet)
 */
export function input<I extends object = Record<never, never>>(): Input<I>
export function input<const S extends StandardSchema<unknown, object>>(
  schema: S,
): Input<SchemaInput<S>, SchemaOutput<S>>
export function input(schema?: StandardSchema<unknown, object>): Input<never, unknown> {
  if (schema !== undefined && !isSchema(schema))
    throw new InvalidArgument(
      'input: the schema must be a Standard Schema, such as one of zod; omit it to give only a type',
    )
  return brand('input', { kind: 'input', schema })
}

export function isInput(value: unknown): value is Input<never> {
  return hasBrand('input', value)
}

/** Returns whether this is a flow, made by this or by another copy of the library. */
export function isFlow(value: unknown): value is AnyFlow {
  return hasBrand('flow', value)
}

/**
 * Returns the inputs that the store lacks, in the order in which the flow needs them; all inputs if there is no store. This
 * checks stores at run time, such as a store that came over the network.
 *
 * @example missingInputs(hello, {}) // ['name']
 */
export function missingInputs(flow: AnyFlow, store: object | undefined): string[] {
  return flow.requires.filter((name) => !Object.hasOwn(store ?? {}, name))
}
