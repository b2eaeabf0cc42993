/** Lists the values that apply to commands, each with its origin, for `jobboard config show`. */
import { relative } from 'node:path'
import type { z } from 'zod'
import { REDACTED, Redactor } from '../../../core/redaction.ts'
import { redactUri } from '../../../core/uri.ts'
import type { CliContext } from '../../context.ts'
import { AUTO, findAutoModules } from '../auto-modules.ts'
import type { ConfigFile } from './config-file.ts'
import { CONFIG } from './schema.ts'
import { ConfigValues } from './values.ts'
import { maskSecrets } from './variables.ts'
import { type Leaf, mapLeaves } from './walk.ts'

/** A value and its origin. */
export interface ShownValue {
  /** The keys that lead to it: `conductor.concurrency`. */
  readonly key: string
  readonly value: unknown
  readonly origin: Origin
}

export type Origin =
  | { readonly kind: 'default' }
  | { readonly kind: 'file' | 'deployment'; readonly file: string; readonly line: number; readonly deployment?: string }
  | { readonly kind: 'environment'; readonly variable: string }
  | { readonly kind: 'flag'; readonly flag: string }
  /** A package that names a module of flows. */
  | { readonly kind: 'package'; readonly package: string }

/** The values that apply where nothing is set, as the help of the commands names them. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  timeout: '10s',
  'conductor.concurrency': 'one for each processor',
  'conductor.flowConcurrency': 16,
  'conductor.name': 'host:pid',
  'conductor.size': ['small', 'medium', 'large'],
  'conductor.burst': false,
  'conductor.maxJobs': 'no limit',
  'conductor.maxIdleTime': 'no limit',
  'conductor.takeoverDelay': '0s',
  'conductor.defaultDeadline': 'none',
  'conductor.unacceptedAfter': '1h',
  'conductor.drainTimeout': '25s',
  'conductor.abortTimeout': '5s',
  'conductor.onFailure': 'retry',
  'conductor.removeLogbooksAfter': 'never',
  'conductor.removeTrashAfter': 'never',
  'conductor.failuresOnBoard': 'named where logbooks encrypt, else whole',
  'conductor.health': 'none',
  'conductor.metrics': false,
  'conductor.otel': false,
  'conductor.release': 'none',
  'conductor.logLevel': 'info',
  'conductor.logFormat': 'auto',
  'pool.isolate': 'declared',
}

/** The variables of the environment that set a key, and whether their values are secret. */
const VARIABLES: readonly (readonly [key: string, variable: string, isSecret?: 'secret'])[] = [
  ['board', 'JOBBOARD_BOARD'],
  ['persistence', 'JOBBOARD_PERSISTENCE'],
  ['codec', 'JOBBOARD_CODEC'],
  ['redact', 'JOBBOARD_REDACT'],
  ['conductor.release', 'JOBBOARD_RELEASE'],
  ['auth', 'JOBBOARD_ZOOKEEPER_AUTH', 'secret'],
  ['key', 'JOBBOARD_LOGBOOK_KEY', 'secret'],
  ['require', 'JOBBOARD_LOGBOOK_REQUIRE'],
]

const FLAGS = ['board', 'persistence', 'codec', 'redact', 'timeout'] as const

/** Names of keys in stores whose values are hidden, beside those of `redact`. */
const SECRET_KEYS = ['password', 'passwd', 'secret', 'token', 'apiKey', 'accessToken', 'authorization', 'credentials']

export interface ShowOptions extends Pick<CliContext, 'env'> {
  /** The options that were typed. */
  readonly typed: Readonly<Record<string, unknown>>
  /** Whether defaults are listed, too. */
  readonly withDefaults: boolean
}

/** Returns the values, ordered by their keys as the file has them. @param file undefined without a file */
export function listValues(file: ConfigFile | undefined, options: ShowOptions): readonly ShownValue[] {
  const { env, typed, withDefaults } = options
  const shown = new Map<string, ShownValue>()
  const put = (value: ShownValue) => shown.set(value.key, value)
  if (file) for (const value of fileValues(file, env)) put(value)
  for (const [key, variable, isSecret] of VARIABLES) {
    const value = env[variable]
    if (value) put({ key, value: isSecret ? REDACTED : redactUri(value), origin: { kind: 'environment', variable } })
  }
  for (const flag of FLAGS) {
    const value = typed[flag]
    if (value !== undefined)
      put({ key: flag, value: redactUri(String(value)), origin: { kind: 'flag', flag: `--${flag}` } })
  }
  const missing = withDefaults ? Object.entries(DEFAULTS).filter(([key]) => !hasKey(shown, key)) : []
  for (const [key, value] of missing) put({ key, value, origin: { kind: 'default' } })
  return [...shown.values()].sort((a, b) => compareKeys(a.key, b.key))
}

/** Returns whether the list has a value of the key, or of a part of it. */
function hasKey(shown: ReadonlyMap<string, ShownValue>, key: string): boolean {
  return [...shown.keys()].some((each) => each === key || each.startsWith(`${key}.`))
}

/** Compares keys by the order of their sections in the schema; keys of `conductor` by their order in DEFAULTS. */
function compareKeys(one: string, other: string): number {
  const sections = Object.keys(CONFIG.shape)
  const rank = (key: string) => {
    const found = sections.indexOf(key.split('.', 1)[0] ?? '')
    return found < 0 ? sections.length : found
  }
  const conductor = Object.keys(DEFAULTS).filter((key) => key.startsWith('conductor.'))
  const inner = (key: string) => conductor.findIndex((each) => key === each || key.startsWith(`${each}.`))
  return rank(one) - rank(other) || inner(one) - inner(other)
}

function fileValues(file: ConfigFile, env: CliContext['env']): ShownValue[] {
  const found: ShownValue[] = []
  const values = new ConfigValues(file, maskSecrets(env))
  const hide = new Redactor([...SECRET_KEYS, ...(file.config.redact ?? [])])
  mapLeaves({ schema: CONFIG as z.ZodType, value: file.config, path: [] }, (leaf) => {
    const { line, isDeployed } = file.origin(leaf.path)
    const { shown, deployment } = file
    const origin: Origin =
      isDeployed && deployment !== undefined
        ? { kind: 'deployment', file: shown, line, deployment }
        : { kind: 'file', file: shown, line }
    found.push({ key: leaf.path.join('.'), value: toShown(leaf, { values, hide }), origin })
    return leaf.value
  })
  return found
}

/** Returns the value for people: without secrets, and as it is written where a variable is missing. */
function toShown(leaf: Leaf, { values, hide }: { readonly values: ConfigValues; readonly hide: Redactor }): unknown {
  const { kind, value } = leaf
  if (kind === 'secret') return REDACTED
  const read = isReadable(leaf, values) ? values.read(leaf) : value
  if (kind === 'data') return hide.value(read)
  if (typeof read !== 'string') return read
  return kind === 'uri' ? redactUri(read) : hide.text(read)
}

function isReadable(leaf: Leaf, values: ConfigValues): boolean {
  try {
    values.read(leaf)
    return true
  } catch {
    return false
  }
}

/** The keys of modules of flows. */
const FLOWS_KEY = /^(boards\..+\.)?flows(\.\d+)?$/

/**
 * Adds the modules that `auto` stands for behind it, each with its package.
 *
 * @param folder the folder of the config file
 * @returns also what is wrong with the packages, each a line
 */
export async function withAutoModules(
  values: readonly ShownValue[],
  folder: string,
): Promise<{ readonly values: readonly ShownValue[]; readonly faults: readonly string[] }> {
  const isAuto = ({ key, value }: ShownValue) => value === AUTO && FLOWS_KEY.test(key)
  if (!values.some(isAuto)) return { values, faults: [] }
  const { modules, faults } = await findAutoModules(folder)
  const found = ({ key }: ShownValue) =>
    modules.map(({ package: name, file }, index): ShownValue => {
      return { key: `${key}.${index}`, value: relative(folder, file), origin: { kind: 'package', package: name } }
    })
  return { values: values.flatMap((value) => (isAuto(value) ? [value, ...found(value)] : [value])), faults }
}

/** Returns the origin for people. */
export function describeOrigin(origin: Origin): string {
  switch (origin.kind) {
    case 'default':
      return 'default'
    case 'environment':
      return origin.variable
    case 'flag':
      return origin.flag
    case 'deployment':
      return `${origin.file}:${origin.line} (deployment ${origin.deployment})`
    case 'file':
      return `${origin.file}:${origin.line}`
    case 'package':
      return `package ${origin.package}`
  }
}
