/** Execution of one command line, from its words to its exit code. */
import { CommanderError } from 'commander'
import { InvalidArgument, isError, JobboardError } from '../core/errors.ts'
import { isMisspelt } from '../core/texts.ts'
import { type CliContext, DONE, type ExitCode, WRONG_USAGE } from './context.ts'
import { reportError } from './output/output.ts'
import { commandWords, runProgram } from './program.ts'

/** Runs a command line. Never rejects, and never ends the process. */
export async function run(argv: readonly string[], context: CliContext): Promise<ExitCode> {
  try {
    const exitCode = await runUnderstood(argv, context)
    await context.stdout.flush()
    return exitCode
  } catch (error) {
    const verbose = argv.includes('--verbose')
    if (error !== context.stdout.failed.reason) return reportError(error, context, { verbose })
    // The reader has closed the pipe because it needs no more, as in `| head`.
    if (isBrokenPipe(error)) return DONE
    return reportError(new JobboardError(`the output cannot be written: ${error}`, { cause: error }), context, {
      verbose,
    })
  }
}

/** Runs the program. @throws InvalidArgument for a command line that commander rejects */
async function runUnderstood(argv: readonly string[], context: CliContext): Promise<ExitCode> {
  try {
    return await runProgram(argv, context)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return DONE
    // No command was given, and the help with the list of commands is on standard error.
    if (error.code === 'commander.help') return WRONG_USAGE
    const message = safeMessage(error, commandWords(argv, context)).replace(/\.$/, '')
    const isAnswered = message.includes('; did you mean ')
    throw new InvalidArgument(isAnswered ? message : `${message}${helpHint(error, argv, context)}`)
  }
}

/**
 * Returns the message without secrets. A misspelt option with its value in the same word may contain the value of
 * `--store`. A suggestion of commander may be quite a different word, and is omitted then.
 *
 * @param words the words of the command line that name a command
 */
function safeMessage(error: CommanderError, words: readonly string[]): string {
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split(/\n(?=\(Did you mean)/)
  const bare = error.code === 'commander.unknownOption' ? message.replace(/=.*'/s, "'") : message
  const [, given = ''] = /'(.*)'/s.exec(bare) ?? []
  const meant = words.length === 0 && error.code === 'commander.unknownCommand' && COMMANDS_OF_OTHERS.get(given)
  if (meant) return `${bare}; did you mean ${meant}?`
  const [, similar] = /^\(Did you mean ([\w-]+)\?\)$/.exec(suggestion ?? '') ?? []
  return similar !== undefined && isMisspelt(given, similar) ? `${bare}; did you mean ${similar}?` : bare
}

/** Returns which help lists what there is; nothing for other mistakes. */
function helpHint(error: CommanderError, argv: readonly string[], context: CliContext): string {
  if (!WITH_HELP_HINT.includes(error.code)) return ''
  const words = commandWords(argv, context)
  const inputs =
    words[0] === 'post' && error.code === 'commander.excessArguments' ? '; give the inputs with --store' : ''
  return `${inputs}; see jobboard ${[...words, '--help'].join(' ')}`
}

/** The commands that people type who come from other job systems, by their words there. */
const COMMANDS_OF_OTHERS: ReadonlyMap<string, string> = new Map([
  ['worker', 'conductor'],
  ['work', 'conductor'],
])

const WITH_HELP_HINT = [
  'commander.unknownCommand',
  'commander.unknownOption',
  'commander.missingArgument',
  'commander.excessArguments',
]

function isBrokenPipe(error: unknown): boolean {
  return isError(error) && (error as { code?: unknown }).code === 'EPIPE'
}
