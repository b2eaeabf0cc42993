/** The command `jobboard conductors`: lists the conductors on the board. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'

export function defineConductors(program: Command, run: RunAction): void {
  program
    .command('conductors')
    .summary('list the connected conductors')
    .description(
      'Lists the conductors that are connected to the board: where they run, which flows they know, and how many jobs ' +
        'they run, as they reported some seconds ago.',
    )
    .option('--json', 'print each conductor as a JSON object on a line of its own')
    .addHelpText('after', '\nExample:\n  $ jobboard conductors --board zookeeper://127.0.0.1:2181/demo')
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/conductors.ts')).conductors(command.optsWithGlobals(), context),
      ),
    )
}
