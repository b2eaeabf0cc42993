/** Describes mistakes of form in `jobboard.yaml` for people: what a value must be, and which keys are known. */
import { z } from 'zod'
import { isMisspelt } from '../../../core/texts.ts'
import type { Fault, Path } from './faults.ts'
import { describeKind, EMPTY, kindOf } from './kinds.ts'
import { schemaAt } from './walk.ts'

type Issue = z.core.$ZodIssue

/** The data that was checked, and its schema. */
interface Checked {
  readonly schema: z.ZodType
  readonly data: unknown
}

/** Returns the mistakes of form of data. */
export function toFaults(schema: z.ZodType, data: unknown): Fault[] {
  const issues = schema.safeParse(data).error?.issues ?? []
  return issues.flatMap((issue) => formFaults(issue, { schema, data }, []))
}

/** Returns the faults of an issue. For a value that may have several forms, returns those of the form that was written. */
function formFaults(issue: Issue, checked: Checked, above: Path): Fault[] {
  const path = [...above, ...issue.path]
  if (issue.code === 'unrecognized_keys') return unknownKeys(issue.keys, checked, path)
  if (issue.code === 'invalid_union') {
    const tried = issue.errors.filter((each) =>
      each.some(({ path, code }) => path.length > 0 || code !== 'invalid_type'),
    )
    const isOneValue = kindOf(schemaAt(checked.schema, checked.data, path) ?? z.unknown()) !== undefined
    if (tried[0] && !isOneValue) return tried[0].flatMap((each) => formFaults(each, checked, path))
  }
  const where = path.length === 0 ? 'it' : path.join('.')
  const must = issue.message === EMPTY ? undefined : describeForm(schemaAt(checked.schema, checked.data, path))
  if (must !== undefined && path.length > 0 && valueAt(checked.data, path) === null)
    return [{ path, message: `${where} has no value: it must be ${must}; give it one, or remove the key` }]
  const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined')
  if (must !== undefined)
    return [{ path, message: isMissing ? `${where} is missing: it must be ${must}` : `${where} must be ${must}` }]
  // This is the library's text: it names the expected types and words, and never the value.
  const message = (issue.message ?? 'is invalid').replace(/^Invalid (input|option): /, '')
  return [{ path, message: `${where}: ${message}` }]
}

function unknownKeys(keys: readonly string[], { schema, data }: Checked, path: Path): Fault[] {
  const at = schemaAt(schema, data, path)
  const known = at instanceof z.ZodObject ? Object.keys(at.shape) : []
  return keys.map((key) => {
    const [name = '', rest] = key.split(':', 2)
    // What follows the colon may be a secret.
    if (rest !== undefined && known.includes(name))
      return { path: [...path, key], message: `unknown key ${name}:…; put a blank after the colon` }
    const similar = known.find((name) => isMisspelt(key, name))
    const all = known.length > 0 ? `; the keys are ${known.join(', ')}` : ''
    const hint = similar === undefined ? (conductorHint(key, at) ?? all) : `; did you mean ${similar}?`
    return { path: [...path, key], message: `unknown key ${key}${hint}` }
  })
}

/** Returns the hint for a key of the section `conductor` that was written beside it; undefined for other keys. */
function conductorHint(key: string, at: z.ZodType | undefined): string | undefined {
  const section = at instanceof z.ZodObject ? at.shape['conductor'] : undefined
  const conductor = section instanceof z.ZodOptional ? section.unwrap() : section
  const known = conductor instanceof z.ZodObject ? Object.keys(conductor.shape) : []
  const meant = known.find((name) => name === key) ?? known.find((name) => isMisspelt(key, name))
  return meant && `; ${meant} belongs to conductor: conductor: { ${meant}: … }`
}

/** Returns what a value must be; undefined where the library's own text says it. */
function describeForm(schema: z.ZodType | undefined): string | undefined {
  if (!schema) return undefined
  const kind = kindOf(schema)
  if (kind) return describeKind(kind)
  if (schema instanceof z.ZodObject || schema instanceof z.ZodRecord) return 'a map'
  if (schema instanceof z.ZodArray) return 'a list'
  if (!(schema instanceof z.ZodUnion)) return undefined
  const options = schema.options as readonly z.ZodType[]
  const map = options.find((option) => option instanceof z.ZodObject)
  const [required] = map instanceof z.ZodObject ? Object.keys(map.shape) : []
  const forms = options.map((option) => {
    if (option instanceof z.ZodObject || option instanceof z.ZodRecord)
      return required === undefined ? 'a map' : `a map with ${required}`
    if (option instanceof z.ZodArray) return 'a list'
    return describeForm(option) ?? 'a number'
  })
  return [...new Set(forms)].join(', or ')
}

function valueAt(data: unknown, path: Path): unknown {
  return path.reduce((at: unknown, key) => Object(at)[key], data)
}
