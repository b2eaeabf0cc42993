/** The options of the command line. */
import { readdir, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { printableText } from './printable.ts'

export const USAGE = `\
npm run demo -- [DIR] [options]

(The first -- keeps npm from taking the options for its own.)

Archives every file below DIR (node_modules/pino by default): one job per file on a
board, done by conductors: hashed, compressed, verified, recorded in a manifest.

  --out OUT          where to; must be absent or empty    (archives/<date and time>)
  --board URI        sqlite:FILE, zookeeper://HOST:PORT/PATH, memory:,
                     postgres://HOST/DATABASE, redis://HOST:PORT/0
                     (JOBBOARD_BOARD, or a file that is deleted at the end)
  --persistence URI  where logbooks are kept                (directory:OUT/logbooks)
  --conductors N     N conductors, each in a process of its own
                                                       (one, inside this process)
  --concurrency N    jobs that each conductor runs at once                       (4)
  --isolate          run every task in a child process of its conductor
  --verbose          show where errors came from
  --help             show this

Ctrl-C ends what runs and reports what is done; a second one does not wait for it.
`

const DEFAULT_FOLDER = 'node_modules/pino'
const MOST_CONDUCTORS = 64
/** The options that npm does not know. */
const OWN_OPTIONS = ['out', 'board', 'persistence', 'conductors', 'concurrency', 'isolate'] as const

export interface Options {
  /** The absolute path. */
  readonly folder: string
  /** The path as given. */
  readonly out: string | undefined
  /** The URI; undefined for a file that is deleted at the end. */
  readonly board: string | undefined
  readonly persistence: string | undefined
  /** The number of processes; undefined for one conductor in this process. */
  readonly conductors: number | undefined
  readonly concurrency: number
  /** Whether tasks run in child processes of their conductor. */
  readonly isolate: boolean
  readonly verbose: boolean
}

/** The command line is invalid. */
export class UsageError extends Error {}

/**
 * Reads the command line.
 *
 * @param env the environment, which may name the board, and where npm stores the options that it took for its own
 * @throws UsageError that says what to type instead
 */
export function readOptions(args: readonly string[], env: NodeJS.ProcessEnv = {}): 'help' | Options {
  const taken = OWN_OPTIONS.find((option) => env[`npm_config_${option}`] !== undefined)
  if (taken !== undefined)
    throw new UsageError(
      `npm has kept --${taken} for itself: put -- before the options, as in npm run demo -- DIR --${taken} …`,
    )
  const { values, positionals } = parse(args)
  if (values.help) return 'help'
  const [folder = DEFAULT_FOLDER, ...more] = positionals
  if (more.length > 0) throw new UsageError(`one DIR at a time, please: ${printableText(more.join(' '))} is too much`)
  const { out, persistence } = values
  const board = values.board ?? (env['JOBBOARD_BOARD'] || undefined)
  const conductors = values.conductors === undefined ? undefined : wholeNumber('--conductors', values.conductors)
  const concurrency = wholeNumber('--concurrency', values.concurrency ?? '4')
  if (conductors !== undefined) assertShareable({ board, persistence, conductors })
  const { isolate = false, verbose = false } = values
  return { folder: resolve(folder), out, board, persistence, conductors, concurrency, isolate, verbose }
}

/** Checks the folder. @throws UsageError unless DIR is a folder that can be listed */
export async function assertFolder(folder: string): Promise<void> {
  const name = printableText(folder)
  const found = await stat(folder).catch((error: NodeJS.ErrnoException) => error)
  if (found instanceof Error && found.code !== 'ENOENT')
    throw new UsageError(`${name}: ${printableText(found.message)}`)
  if (found instanceof Error && folder === resolve(DEFAULT_FOLDER))
    throw new UsageError(`${name} is not there: run npm ci, or name a folder: npm run demo -- DIR`)
  if (found instanceof Error) throw new UsageError(`${name} is not there: name a folder to archive`)
  if (!found.isDirectory()) throw new UsageError(`${name} is a file: name the folder it is in`)
  await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${name} cannot be listed (${error.code}): name a folder that you may read`)
  })
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const options = {
    out: text,
    board: text,
    persistence: text,
    conductors: text,
    concurrency: text,
    isolate: flag,
    verbose: flag,
    help: flag,
  }
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    const [sentence = ''] = error instanceof Error ? error.message.split(/[.\n]/, 1) : []
    throw new UsageError(`${printableText(sentence)}; npm run demo -- --help shows what there is`)
  }
}

function wholeNumber(option: string, text: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= MOST_CONDUCTORS) return number
  throw new UsageError(`${option} has to be a whole number from 1 to ${MOST_CONDUCTORS}, not ${printableText(text)}`)
}

interface Shared {
  readonly board: string | undefined
  readonly persistence: string | undefined
  readonly conductors: number
}

function assertShareable(options: Shared): void {
  if (isMemory(options.board ?? ''))
    throw new UsageError(
      `--conductors ${options.conductors} needs a board that processes can share, and memory: is none: name another, as in --board sqlite:./archive.db`,
    )
  if (isMemory(options.persistence ?? ''))
    throw new UsageError(
      `--conductors ${options.conductors} needs logbooks that processes can share, and memory: is none: leave --persistence out`,
    )
}

export function isMemory(uri: string): boolean {
  return /^memory:/i.test(uri)
}
