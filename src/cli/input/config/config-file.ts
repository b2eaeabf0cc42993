/** The config file `jobboard.yaml`: found, read, and checked; errors in it are reported with file, line and column. */
import { readFile, realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { type Document, isMap, isPair, isScalar, LineCounter, type Node, parseDocument } from 'yaml'
import type { z } from 'zod'
import { InvalidArgument } from '../../../core/errors.ts'
import { isMisspelt } from '../../../core/texts.ts'
import type { FoundConfig } from './nearest.ts'
import { CONFIG, type Config } from './schema.ts'

type Path = readonly PropertyKey[]

export interface ConfigFile {
  /**
   * The path of the file, absolute and without symbolic links; relative names in the file are resolved against its
   * folder.
   */
  readonly file: string
  /** The path for people. */
  readonly shown: string
  readonly config: Config
  /** Returns an error about a place in the file: `jobboard.yaml:3:7: …` */
  problem(path: Path, message: string): InvalidArgument
}

/**
 * Reads a file that was named. Relative names in it are resolved against the folder of the file itself, also if a
 * symbolic link was named: the files beside a link need not belong to the author of the config file.
 *
 * @throws InvalidArgument for a file that cannot be read, is not YAML, or has invalid content
 */
export async function readConfig(named: string, { cwd }: { cwd: string }): Promise<ConfigFile> {
  const unreadable = (cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? 'does not exist' : `cannot be read: ${cause.message}`
    throw new InvalidArgument(`config file ${toDisplayPath(named, cwd)} ${why}; correct --config or JOBBOARD_CONFIG`, {
      cause,
    })
  }
  const file = await realpath(named).catch(unreadable)
  return parseConfig(await readFile(file, 'utf8').catch(unreadable), { file, shown: toDisplayPath(named, cwd) })
}

/** Parses a file that was found and read. @throws as {@link readConfig} */
export function parseFoundConfig({ file, real, text }: FoundConfig, { cwd }: { cwd: string }): ConfigFile {
  return parseConfig(text, { file: real, shown: toDisplayPath(file, cwd) })
}

function parseConfig(text: string, { file, shown }: Pick<ConfigFile, 'file' | 'shown'>): ConfigFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const at = (offset: number | undefined) => {
    const { line, col } = lines.linePos(offset ?? 0)
    return `${shown}:${line}:${col}`
  }
  const [broken] = document.errors
  if (broken) {
    const advice = 'check the indentation and the colons here, and put a value that holds ": " in quotes'
    throw new InvalidArgument(`${at(broken.pos[0])}: this is not valid YAML (${firstLine(broken.message)}); ${advice}`)
  }
  const problem = (path: Path, message: string) => new InvalidArgument(`${at(findOffset(document, path))}: ${message}`)
  const found = CONFIG.safeParse(document.toJS() ?? {})
  if (found.success) return { file, shown, config: found.data, problem }
  const { path, message } = toMessage(deepestIssue(found.error.issues))
  throw problem(path, message)
}

function toDisplayPath(file: string, cwd: string): string {
  const near = relative(cwd, file)
  return near.length < file.length ? near : file
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text
}

type Issue = z.core.$ZodIssue

/** Returns the issue of the form that was written, for a value that may be a text or a map. */
function deepestIssue(
  issues: readonly Issue[],
  above: Path = [],
): { readonly issue: Issue | undefined; readonly path: Path } {
  const [issue] = issues
  if (!issue) return { issue, path: above }
  const path = [...above, ...issue.path]
  if (issue.code !== 'invalid_union') return { issue, path }
  const tried = issue.errors.filter((each) => each.some(({ path, code }) => path.length > 0 || code !== 'invalid_type'))
  return tried[0] ? deepestIssue(tried[0], path) : { issue, path }
}

function toMessage({ issue, path }: ReturnType<typeof deepestIssue>): { path: Path; message: string } {
  const where = path.length === 0 ? 'it' : path.join('.')
  if (issue?.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys
    const known = knownKeysAt(path)
    const similar = known.find((name) => isMisspelt(key, name))
    const hint =
      similar === undefined
        ? known.length > 0
          ? `; the keys are ${known.join(', ')}`
          : ''
        : `; did you mean ${similar}?`
    return { path: [...path, key], message: `unknown key ${key}${hint}` }
  }
  if (issue?.code === 'invalid_union') return { path, message: `${where} must be a text, or a map with uri` }
  // This is the library's text: it names the expected types and words, and never the value.
  const message = (issue?.message ?? 'is invalid').replace(/^Invalid (input|option): /, '')
  return { path, message: `${where}: ${message}` }
}

/** Returns the keys that a map of the file may have. */
function knownKeysAt([first, second]: Path): readonly string[] {
  if (first === undefined) return Object.keys(CONFIG.shape)
  if (first === 'boards' && second !== undefined) return ['uri', 'auth', 'persistence', 'flows']
  if (first === 'persistences' && second !== undefined) return ['uri', 'key', 'codec', 'require']
  return first === 'conductor' || first === 'pool' ? Object.keys(CONFIG.shape[first].unwrap().shape) : []
}

/** Returns the position of a key if it is in a map; else of its value; else of the value around it. */
function findOffset(document: Document, path: Path): number | undefined {
  let at: unknown = document.contents
  let offset = (document.contents as Node | null)?.range?.[0]
  for (const part of path) {
    if (!isMap(at)) break
    const pair = at.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(part))
    if (!pair) break
    offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? offset) : offset
    at = pair.value
  }
  return offset
}
