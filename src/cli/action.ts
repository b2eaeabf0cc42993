/** The type that binds a command's work to commander. */
import type { Command } from 'commander'
import type { CliContext } from './context.ts'
import type { ExitCode } from './exit-codes.ts'

/** Makes commander's action from the work of a command; the exit code of the work becomes the program's. */
export type RunAction = (
  work: (context: CliContext, command: Command) => Promise<ExitCode>,
) => (...args: unknown[]) => Promise<void>
