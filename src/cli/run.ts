/** One command line from its words to its exit code. */
import { CommanderError } from 'commander'
import { InvalidArgument, JobboardError } from '../core/errors.ts'
import { isMisspelt } from '../core/spelling.ts'
import type { CliContext } from './context.ts'
import { DONE, type ExitCode, WRONG_USAGE } from './exit-codes.ts'
import { reportError } from './output/error-report.ts'
import { runProgram } from './program.ts'

/** Never rejects, and never ends the process. */
export async function run(argv: readonly string[], context: CliContext): Promise<ExitCode> {
  try {
    const exitCode = await runUnderstood(argv, context)
    await context.stdout.flush()
    return exitCode
  } catch (error) {
    const verbose = argv.includes('--verbose')
    if (error !== context.stdout.failed.reason) return reportError(error, context, { verbose })
    // Whoever read our output has seen enough, as in `| head`.
    if (isBrokenPipe(error)) return DONE
    return reportError(new JobboardError(`the output cannot be written: ${error}`, { cause: error }), context, {
      verbose,
    })
  }
}

/** @throws InvalidArgument for what commander cannot understand */
async function runUnderstood(argv: readonly string[], context: CliContext): Promise<ExitCode> {
  try {
    return await runProgram(argv, context)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return DONE
    // No command was given, and the help that says which there are is on standard error.
    if (error.code === 'commander.help') return WRONG_USAGE
    throw new InvalidArgument(safeMessage(error))
  }
}

/**
 * A misspelt option with its value in the same word may hold what was meant for `--store`. What commander takes for
 * similar may be another word altogether, and is left out then.
 */
function safeMessage(error: CommanderError): string {
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split(/\n(?=\(Did you mean)/)
  const bare = error.code === 'commander.unknownOption' ? message.replace(/=.*'/s, "'") : message
  const [, given = ''] = /'(.*)'/s.exec(bare) ?? []
  const [, similar] = /^\(Did you mean ([\w-]+)\?\)$/.exec(suggestion ?? '') ?? []
  return similar !== undefined && isMisspelt(given, similar) ? `${bare}; did you mean ${similar}?` : bare
}

function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === 'EPIPE'
}
