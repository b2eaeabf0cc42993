/** `jobboard resume`: let conductors claim again. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printLines } from '../output.ts'

export function defineResume(program: Command, run: Run): void {
  program
    .command('resume')
    .summary('let conductors claim again')
    .description('Lets conductors claim again after a pause.')
    .addHelpText('after', '\nExample:\n  $ jobboard resume --board zookeeper://127.0.0.1:2181/demo')
    .action(run((context, command: Command) => resume(command.optsWithGlobals(), context)))
}

export async function resume(options: SharedOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  await board.resume()
  await printLines(context, [`jobs of ${board.uri} are claimed again`])
  return DONE
}
