/** The config file `jobboard.yaml`: read, and checked against its schema; errors in it have file, line and column. */
import { readFile, realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { z } from 'zod'
import { InvalidArgument } from '../../../core/errors.ts'
import { isMisspelt } from '../../../core/texts.ts'
import { deploy, deploymentNames } from './deployment.ts'
import { YamlDocument } from './document.ts'
import { type Fault, InvalidConfig, type Path } from './faults.ts'
import { describeKind, kindOf } from './kinds.ts'
import type { FoundConfig } from './nearest.ts'
import { CONFIG, type Config, DOCUMENT } from './schema.ts'
import { schemaAt } from './walk.ts'

/** The file with one of its deployments, or without one. */
export interface ConfigFile {
  /**
   * The path of the file, absolute and without symbolic links; relative names in the file are resolved against its
   * folder.
   */
  readonly file: string
  /** The path for people. */
  readonly shown: string
  readonly deployment: string | undefined
  readonly config: Config
  /** Returns the place of a value: `jobboard.yaml:3:7`. */
  place(path: Path): string
  /** Returns where a value comes from: its line, and whether the deployment has it. */
  origin(path: Path): { readonly line: number; readonly isDeployed: boolean }
  /** Returns an error about a place in the file: `jobboard.yaml:3:7: …` */
  problem(path: Path, message: string): InvalidArgument
}

/** A file that was read, of which each deployment can be looked at. */
export interface ReadConfig {
  readonly file: string
  readonly shown: string
  readonly deployments: readonly string[]
  /** @throws InvalidArgument for a deployment that does not exist; InvalidConfig with all mistakes of form */
  open(deployment: string | undefined): ConfigFile
}

/**
 * Reads a file that was named. Relative names in it are resolved against the folder of the file itself, also if a
 * symbolic link was named: the files beside a link need not belong to the author of the config file.
 *
 * @throws InvalidArgument for a file that cannot be read
 */
export async function readConfig(named: string, { cwd }: { cwd: string }): Promise<ReadConfig> {
  const unreadable = (cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? 'does not exist' : `cannot be read: ${cause.message}`
    throw new InvalidArgument(`config file ${toDisplayPath(named, cwd)} ${why}; correct --config or JOBBOARD_CONFIG`, {
      cause,
    })
  }
  const file = await realpath(named).catch(unreadable)
  return parseConfig(await readFile(file, 'utf8').catch(unreadable), { file, shown: toDisplayPath(named, cwd) })
}

/** Parses a file that was found and read. */
export function parseFoundConfig({ file, real, text }: FoundConfig, { cwd }: { cwd: string }): ReadConfig {
  return parseConfig(text, { file: real, shown: toDisplayPath(file, cwd) })
}

function parseConfig(text: string, { file, shown }: Pick<ConfigFile, 'file' | 'shown'>): ReadConfig {
  const document = new YamlDocument(text, { shown })
  const { data } = document
  return {
    ...{ file, shown, deployments: deploymentNames(data) },
    open: (deployment) => {
      if (data === undefined) throw new InvalidConfig(document.faults)
      const written = DOCUMENT.safeParse(data)
      const faults = toFaults(written.error?.issues, { schema: DOCUMENT, data })
      const deployed = deploy(data, { name: deployment, shown })
      const place = (path: Path) => document.place(deployed.toFilePath(path))
      const found = CONFIG.safeParse(deployed.data)
      // What is wrong in the file as it is written is wrong with each deployment.
      const known = new Set(faults.map(({ path }) => document.place(path)))
      const merged = toFaults(found.error?.issues, { schema: CONFIG, data: deployed.data }).filter(
        ({ path }) => !known.has(place(path)),
      )
      const all = [
        ...document.faults,
        ...faults.map(({ path, message }) => `${document.place(path)}: ${message}`),
        ...merged.map(({ path, message }) => `${place(path)}: ${message}`),
      ]
      if (!found.success || all.length > 0) throw new InvalidConfig(sortPlaces([...new Set(all)]))
      return {
        ...{ file, shown, deployment, config: found.data, place },
        origin: (path) => {
          const filePath = deployed.toFilePath(path)
          return { line: document.line(filePath), isDeployed: filePath !== path }
        },
        problem: (path, message) => new InvalidArgument(`${place(path)}: ${message}`),
      }
    },
  }
}

function toDisplayPath(file: string, cwd: string): string {
  const near = relative(cwd, file)
  return near.length < file.length ? near : file
}

/** Sorts `FILE:LINE:COLUMN: …` by line and column. */
export function sortPlaces(faults: readonly string[]): string[] {
  const place = (fault: string) => /:(\d+):(\d+): /.exec(fault)?.slice(1).map(Number) ?? [0, 0]
  return [...faults].sort((a, b) => {
    const [[lineA = 0, columnA = 0], [lineB = 0, columnB = 0]] = [place(a), place(b)]
    return lineA - lineB || columnA - columnB
  })
}

type Issue = z.core.$ZodIssue

/** What was checked. */
interface Checked {
  readonly schema: z.ZodType
  readonly data: unknown
}

function toFaults(issues: readonly Issue[] | undefined, checked: Checked): Fault[] {
  return (issues ?? []).flatMap((issue) => formFaults(issue, checked, []))
}

/** Returns the faults of the form that was written, for a value that may have several. */
function formFaults(issue: Issue, checked: Checked, above: Path): Fault[] {
  const path = [...above, ...issue.path]
  if (issue.code === 'unrecognized_keys') return unknownKeys(issue.keys, checked, path)
  if (issue.code === 'invalid_union') {
    const tried = issue.errors.filter((each) =>
      each.some(({ path, code }) => path.length > 0 || code !== 'invalid_type'),
    )
    if (tried[0]) return tried[0].flatMap((each) => formFaults(each, checked, path))
  }
  const where = path.length === 0 ? 'it' : path.join('.')
  if (issue.code === 'invalid_union' || issue.code === 'invalid_type') {
    const must = describeForm(schemaAt(checked.schema, checked.data, path))
    const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined')
    if (must !== undefined)
      return [{ path, message: isMissing ? `${where} is missing: it must be ${must}` : `${where} must be ${must}` }]
  }
  // This is the library's text: it names the expected types and words, and never the value.
  const message = (issue.message ?? 'is invalid').replace(/^Invalid (input|option): /, '')
  return [{ path, message: `${where}: ${message}` }]
}

function unknownKeys(keys: readonly string[], { schema, data }: Checked, path: Path): Fault[] {
  const at = schemaAt(schema, data, path)
  const known = at instanceof z.ZodObject ? Object.keys(at.shape) : []
  return keys.map((key) => {
    const similar = known.find((name) => isMisspelt(key, name))
    const all = known.length > 0 ? `; the keys are ${known.join(', ')}` : ''
    const hint = similar === undefined ? all : `; did you mean ${similar}?`
    return { path: [...path, key], message: `unknown key ${key}${hint}` }
  })
}

/** Returns what a value must be; undefined where the library's own text says it. */
function describeForm(schema: z.ZodType | undefined): string | undefined {
  if (!schema) return undefined
  const kind = kindOf(schema)
  if (kind) return describeKind(kind)
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
