/** Walks through data of `jobboard.yaml` by its schema. */
import { z } from 'zod'
import type { Path } from './faults.ts'
import { type KindOf, kindOf } from './kinds.ts'

/** A single value with its path and its kind. */
export interface Leaf extends KindOf {
  readonly path: Path
  readonly value: unknown
}

/** Returns a copy of the data, with each single value replaced by what `map` returns for it. */
export function mapLeaves(
  { schema, value, path }: { readonly schema: z.ZodType; readonly value: unknown; readonly path: Path },
  map: (leaf: Leaf) => unknown,
): unknown {
  const within = (part: z.ZodType | undefined, key: PropertyKey, inner: unknown) =>
    mapLeaves({ schema: part ?? z.unknown(), value: inner, path: [...path, key] }, map)
  const kind = kindOf(schema)
  if (kind) return map({ ...kind, value, path })
  const part = toPart(schema, value)
  if (part !== schema) return mapLeaves({ schema: part, value, path }, map)
  if (schema instanceof z.ZodArray && Array.isArray(value))
    return value.map((item, index) => within(schema.element as z.ZodType, index, item))
  if (isPlainMap(value) && (schema instanceof z.ZodObject || schema instanceof z.ZodRecord)) {
    const partOf = (key: string) =>
      schema instanceof z.ZodObject ? (schema.shape[key] as z.ZodType) : (schema.valueType as z.ZodType)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, within(partOf(key), key, inner)]))
  }
  return map({ kind: 'text', value, path })
}

/** Returns the schema of the value at a path, as the data has it; undefined where the schema has none. */
export function schemaAt(schema: z.ZodType, data: unknown, path: Path): z.ZodType | undefined {
  const part = toPart(schema, data)
  const [key, ...rest] = path
  if (key === undefined) return part
  const inner = Object(data)[key]
  if (part instanceof z.ZodObject) {
    const found = part.shape[String(key)] as z.ZodType | undefined
    return found && schemaAt(found, inner, rest)
  }
  if (part instanceof z.ZodRecord) return schemaAt(part.valueType as z.ZodType, inner, rest)
  if (part instanceof z.ZodArray) return schemaAt(part.element as z.ZodType, inner, rest)
  return part instanceof z.ZodUnion ? undefined : part
}

/** Returns the schema without its optional wrapper. Of a union, returns the option whose form the data has. */
function toPart(schema: z.ZodType, value: unknown): z.ZodType {
  if (kindOf(schema)) return schema
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return toPart(schema.unwrap() as z.ZodType, value)
  if (!(schema instanceof z.ZodUnion)) return schema
  const options = schema.options as readonly z.ZodType[]
  const chosen = options.find((option) => hasForm(option, value))
  return chosen ? toPart(chosen, value) : schema
}

/** Returns whether the data is a map, a list or a single value, as the option requires. */
function hasForm(option: z.ZodType, value: unknown): boolean {
  if (option instanceof z.ZodObject || option instanceof z.ZodRecord) return isPlainMap(value)
  if (option instanceof z.ZodArray) return Array.isArray(value)
  return option.safeParse(value).success
}

export function isPlainMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a copy of data without the entries at these paths: the key of a section, or the whole section if it is not a map. */
export function withoutEntries(data: unknown, paths: readonly Path[]): unknown {
  return paths.reduce((rest: unknown, path) => withoutEntry(rest, path.slice(0, 2)), data)
}

function withoutEntry(data: unknown, [key, ...rest]: Path): unknown {
  if (!isPlainMap(data) || key === undefined || !Object.hasOwn(data, key)) return data
  const { [String(key)]: value, ...others } = data
  return isPlainMap(value) && rest.length > 0 ? { ...data, [key]: withoutEntry(value, rest) } : others
}
