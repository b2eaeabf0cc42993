/** The tree of commands and options that shells need. */
import type { Command, Option } from 'commander'

/** A command, or a group of commands. */
export interface CompletionCommand {
  /** The words of the command: `trash purge`; empty for the program itself. */
  readonly path: string
  readonly commands: readonly { readonly name: string; readonly summary: string }[]
  readonly options: readonly CompletionFlag[]
  /** The possible words of its argument. */
  readonly words: readonly string[]
}

export interface CompletionFlag {
  readonly names: readonly string[]
  readonly summary: string
  /** Whether a value follows. */
  readonly takesValue: boolean
  /** The possible values, if they are a few words. */
  readonly words: readonly string[]
  /** Whether the value names a file. */
  readonly file: boolean
}

const FILE_ARGUMENTS = ['<module>', '<file>']

/** Returns the program first, then each command after its group. */
export function toCompletionTree(program: Command): CompletionCommand[] {
  const globals = toFlags(program)
  const below = (command: Command, path: readonly string[]): CompletionCommand[] => [
    {
      path: path.join(' '),
      commands: command.commands.map((each) => ({ name: each.name(), summary: each.summary() })),
      options:
        command === program ? globals : [...toFlags(command), ...globals.filter(({ names }) => !isVersion(names))],
      words: argumentChoices(command),
    },
    ...command.commands.flatMap((each) => below(each, [...path, each.name()])),
  ]
  return below(program, [])
}

/** Returns the names of the options that take a value, in any command. */
export function valueOptions(branches: readonly CompletionCommand[]): string[] {
  const flags = branches.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue))
  return [...new Set(flags.flatMap(({ names }) => names))]
}

function toFlags(command: Command): CompletionFlag[] {
  return command.createHelp().visibleOptions(command).map(toFlag)
}

function isVersion(names: readonly string[]): boolean {
  return names.includes('--version') || names.includes('--help')
}

function toFlag({ flags, short, long, description, required, parseArg }: Option): CompletionFlag {
  const { words = [] }: { words?: readonly string[] } = Object(parseArg)
  return {
    names: [short, long].filter((name) => name !== undefined),
    summary: description,
    takesValue: required,
    words,
    file: FILE_ARGUMENTS.some((kind) => flags.endsWith(kind)),
  }
}

/** Returns the possible words of a command's argument. */
function argumentChoices(command: Command): readonly string[] {
  const [, words] = /^one of (.*)$/.exec(command.registeredArguments[0]?.description ?? '') ?? []
  return words?.split(', ') ?? []
}
