/** The command `jobboard info`: shows the state of the board on one screen. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import { addWatchFlags } from '../input/watch-flags.ts'

export function defineInfo(program: Command, run: RunAction): void {
  const command = program
    .command('info')
    .summary('show the state of the board')
    .description(
      'Shows how many jobs wait and run, by priority, how many are in the trash, which conductors are connected, how many of ' +
        'their slots are in use, and the jobs that have been running longest.',
    )
    .option('--json', 'print a JSON object')
  addWatchFlags(command)
    .addHelpText('after', '\nExamples:\n  $ jobboard info\n  $ jobboard info --watch --interval 5s')
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/info.ts')).info(command.optsWithGlobals(), context),
      ),
    )
}
