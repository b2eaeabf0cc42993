/**
 * The flags of commands, as tables: how a flag is written, its text in the help, and the kind of its value. The types of the options follow from
 * the tables.
 */
import type { Command } from 'commander'
import { InvalidArgument } from '../../core/errors.ts'
import { isMisspelt } from '../../core/texts.ts'
import { GRAPH_FORMATS, LOG_LEVEL_CHOICES, MAX_ATTEMPTS, PRIORITY_CHOICES, SIZE_CHOICES } from './choices.ts'
import type { SharedOptions } from './shared-options.ts'

/** A parser of a value. For a flag that may be repeated, it also receives the values that were parsed before. */
type Parser = (text: string, before?: never) => unknown

/** A kind of values: makes the parser of a flag, whose name is in its errors. */
type Kind = (flag: string) => Parser

/** Flags by how they are written, as in `--limit <n>` or `-Q <names>`: their texts in the help, and the kinds of values that are not just a text. */
export type FlagTable = Readonly<Record<`-${string}`, string | readonly [text: string, kind: Kind]>>

/** The options of a command with these flags, and those of every command. */
export type OptionsOf<Table> = SharedOptions & FlagValues<Table>

/** The values of flags by the names that commander gives them: `maxAttempts` of `--max-attempts <n>`. */
export type FlagValues<Table> = {
  readonly [Flag in keyof Table as CamelCase<NameOf<Flag>>]?: ValueOf<Flag, Table[Flag]>
}

type NameOf<Flag> = Flag extends `--${infer Name} ${string}`
  ? Name
  : Flag extends `--${infer Name}`
    ? Name
    : Flag extends `-${infer Letter} ${string}`
      ? Letter
      : never

type CamelCase<Name extends string> = Name extends `${infer Word}-${infer Rest}`
  ? `${Word}${Capitalize<CamelCase<Rest>>}`
  : Name

type ValueOf<Flag, Declared> = Declared extends readonly [string, (flag: string) => (...args: never) => infer Value]
  ? Value
  : Flag extends `${string} ${string}`
    ? string
    : boolean

/** Adds flags to a command, in the order of the table. */
export function withFlags(command: Command, table: FlagTable): Command {
  for (const [flag, declared] of Object.entries(table)) {
    if (typeof declared === 'string') command.option(flag, declared)
    else {
      const [text, kind] = declared
      const [name = ''] = flag.split(' ')
      command.option(flag, text, kind(name) as (text: string, before: unknown) => unknown)
    }
  }
  return command
}

/**
 * Returns the kind of a whole number from 1, or from `least`. A text that is no number is not repeated in the error: it may have been meant for
 * `--store`.
 *
 * @throws InvalidArgument
 */
export function count(limits: { least?: number; most?: number } = {}) {
  const { least = 1, most = Number.MAX_SAFE_INTEGER } = limits
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${limits.most}`
  return (flag: string) =>
    (text: string): number => {
      const value = Number(text)
      if (/^\d+$/.test(text) && value >= least && value <= most) return value
      const given = /^-?\d+(\.\d+)?$/.test(text) ? `, got ${text}` : ''
      throw new InvalidArgument(`${flag} must be a whole number ${range}${given}`)
    }
}

/**
 * Returns the kind of one of a few words, in any case. Other words are not repeated in the error: they may hold secrets. The parser lists the words,
 * so that shells can complete them.
 *
 * @throws InvalidArgument
 */
export function oneOf<const T extends string>(words: readonly T[]) {
  return (flag: string) => {
    const parse = (text: string): T => {
      const found = words.find((word) => word.toLowerCase() === text.toLowerCase())
      if (found) return found
      const similar = words.find((word) => isMisspelt(text, word))
      const hint = similar === undefined ? '' : `; did you mean ${similar}?`
      throw new InvalidArgument(`${flag} must be one of ${words.join(', ')}${hint}`)
    }
    return Object.assign(parse, { words })
  }
}

/** Returns the kind of some of a few words, of a flag that may be repeated. @throws InvalidArgument */
export function someOf<const T extends string>(words: readonly T[]) {
  return (flag: string) => {
    const parse = oneOf(words)(flag)
    return Object.assign((text: string, before: readonly T[] = []): readonly T[] => [...before, parse(text)], { words })
  }
}

/** Makes the parser of a flag that names one thing, for commands where the same flag of others may be repeated. @throws InvalidArgument the second time */
export function once() {
  return (flag: string) =>
    (text: string, before?: string): string => {
      if (before === undefined) return text
      throw new InvalidArgument(`${flag} is given twice, with ${before} and ${text}: name one, and repeat the command`)
    }
}

/** Makes the parser of the texts of a flag that may be repeated. */
export function texts() {
  return (text: string, before: readonly string[] = []): readonly string[] => [...before, text]
}

/** The flags that several commands have. */
const SHARED_FLAGS = {
  '--book <uuid>': "uuid of its logbook, if it was posted with one (default: the job's)",
  '--deadline <duration>': 'how long one run may take before it fails (default: for ever)',
  '--expires-after <duration>': 'trash a job if nobody has started it after this time (default: never)',
  '--flow <name>': 'only jobs of this flow',
  '--flows <module>': ['module that exports the flow: a path, a package, or auto; may be repeated', texts],
  '--format <format>': ['format of the drawing: mermaid, dot or svg (default: "mermaid")', oneOf(GRAPH_FORMATS)],
  '--json': 'print a JSON object',
  '--log-level <level>': [`one of ${LOG_LEVEL_CHOICES.join(', ')} (default: info)`, oneOf(LOG_LEVEL_CHOICES)],
  '--max-attempts <n>': [
    `how many runs of a job may fail before it is trashed (default: 3, at most ${MAX_ATTEMPTS})`,
    count({ most: MAX_ATTEMPTS }),
  ],
  '--name <name>': "name of the job, for people (default: the flow's name)",
  '--priority <priority>': [`one of ${PRIORITY_CHOICES.join(', ')} (default: NORMAL)`, oneOf(PRIORITY_CHOICES)],
  '--queue <name>': ['queue of the job (default: default)', once()],
  '--size <size>': [`deprecated: --queue with one of ${SIZE_CHOICES.join(', ')}`, oneOf(SIZE_CHOICES)],
  '--store <json>': "the flow's inputs, a JSON object; - reads it from standard input (default: {})",
  '--within <duration>': 'how long to wait (default: for ever)',
  '--yes': 'do not ask on a terminal for confirmation of a part of a uuid',
} satisfies FlagTable

type SharedFlags = typeof SHARED_FLAGS

/** The flag that selects the jobs of a queue, or of the queues of a pattern, in lists: see `toQueueFilter`. */
export const QUEUE_FILTER_FLAG = {
  '--queue <name>': ['only jobs of this queue; NAME* for all queues that begin with NAME', once()],
} satisfies FlagTable

/** The options of a command that prints JSON on request. */
export type JsonOptions = OptionsOf<Pick<SharedFlags, '--json'>>

/** Returns flags that several commands have, to spread into the table of one. */
export function shared<Flag extends keyof SharedFlags>(...flags: readonly Flag[]): Pick<SharedFlags, Flag> {
  return Object.fromEntries(flags.map((flag) => [flag, SHARED_FLAGS[flag]])) as Pick<SharedFlags, Flag>
}

/** Returns the text of `--json` for a list. */
export function eachAsJson(what: string): string {
  return `print each ${what} as a JSON object on a line of its own`
}
