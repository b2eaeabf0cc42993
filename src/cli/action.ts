/** What happens when a command is given. */
import type { Command } from 'commander'
import type { CliContext } from './context.ts'
import type { ExitCode } from './exit-codes.ts'

/** Makes commander's action of what a command does; its exit code becomes the program's. */
export type RunAction = (
  work: (context: CliContext, command: Command) => Promise<ExitCode>,
) => (...args: unknown[]) => Promise<void>
