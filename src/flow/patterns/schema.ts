/**
 * Checks a flow's store by a schema of another library: zod, valibot, arktype, or any other that implements Standard Schema
 * (https://standardschema.dev). The interface is declared here as far as it is needed.
 */
import { InvalidArgument, MissingDependencies } from '../../core/errors.ts'
import { toUserError } from '../../core/failure.ts'

/** The common interface of zod, valibot and arktype (https://standardschema.dev); there is no dependency on any of them. */
export interface StandardSchema<I = unknown, O = I> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<O> | Promise<SchemaResult<O>>
    readonly types?: { readonly input: I; readonly output: O } | undefined
  }
}

type SchemaResult<O> = { readonly value: O; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }

interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

type SchemaTypes<S> = S extends { readonly '~standard': { readonly types?: infer T } } ? NonNullable<T> : never
export type SchemaInput<S> = SchemaTypes<S> extends { readonly input: infer I } ? I : never
export type SchemaOutput<S> = SchemaTypes<S> extends { readonly output: infer O } ? O : never

export function isSchema(value: unknown): value is StandardSchema<unknown, object> {
  const { '~standard': standard }: { '~standard'?: unknown } = Object(value)
  const { version, validate }: { version?: unknown; validate?: unknown } = Object(standard)
  return version === 1 && typeof validate === 'function'
}

/**
 * Checks a store, and returns it as the flow's tasks get it: as it was given, or as the flow's schema transforms it (default
 * values, texts parsed as dates, and so on).
 *
 * @throws MissingDependencies when the store lacks an input
 * @throws InvalidArgument naming the faults and their places, but no value: a store may hold secrets
 * @example const { name } = await checkStore(hello, { name: 'Ada' })
 */
export async function checkStore(flow: SchemaFlow, store: object): Promise<Readonly<Record<string, unknown>>> {
  const checked = flow.schema ? await validateStore(flow, flow.schema, store) : { ...store }
  const missing = flow.requires.filter((name) => !Object.hasOwn(checked, name))
  if (missing.length === 0) return checked
  throw new MissingDependencies(`flow ${flow.name} requires ${missing.join(', ')}: add it to the store`)
}

async function validateStore(
  flow: SchemaFlow,
  schema: StandardSchema<unknown, object>,
  store: object,
): Promise<Readonly<Record<string, unknown>>> {
  const result = await validateByUserCode(flow, () => schema['~standard'].validate(store))
  if (result.issues) {
    const lines = result.issues.slice(0, MAX_REPORTED_ISSUES).map(issueLine)
    const more = result.issues.length - lines.length
    throw new InvalidArgument(
      `flow ${flow.name}: the store does not satisfy its schema: ${lines.join('; ')}${more > 0 ? `; and ${more} more` : ''}`,
    )
  }
  const { value } = result
  if (typeof value === 'object' && value !== null) return { ...value }
  throw new InvalidArgument(`flow ${flow.name}: its schema must return an object of named inputs`)
}

async function validateByUserCode<T>({ name }: SchemaFlow, validate: () => T | Promise<T>): Promise<T> {
  try {
    return await validate()
  } catch (error) {
    throw toUserError(error, `flow ${name}: its schema`)
  }
}

/** The properties of a flow by which a store is checked. */
interface SchemaFlow {
  readonly name: string
  readonly requires: readonly string[]
  readonly schema: StandardSchema<unknown, object> | undefined
}

const MAX_REPORTED_ISSUES = 5

function issueLine({ message, path = [] }: SchemaIssue): string {
  const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
  return place === '' ? message : `${place}: ${message}`
}
