/** `jobboard pause`: stop all conductors from claiming. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printLines } from '../output.ts'

export function definePause(program: Command, run: Run): void {
  program
    .command('pause')
    .summary('stop all conductors from claiming')
    .description(
      'Nobody claims a job of the board from now on, wherever they are, until it is resumed: also when all of them have been restarted meanwhile. What runs goes on.',
    )
    .addHelpText('after', '\nExample:\n  $ jobboard pause --board zookeeper://127.0.0.1:2181/demo')
    .action(run((context, command: Command) => pause(command.optsWithGlobals(), context)))
}

export async function pause(options: SharedOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  await board.pause()
  await printLines(context, [`nobody claims jobs of ${board.uri} any more; jobboard resume lets them again`])
  return DONE
}
