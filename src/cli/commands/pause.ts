/** The command `jobboard pause`: stops all conductors from claiming. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'

export function definePause(program: Command, run: RunAction): void {
  program
    .command('pause')
    .summary('stop all conductors from claiming')
    .description(
      'Stops all conductors, on all machines, from claiming jobs of the board until it is resumed, also if they are restarted meanwhile. Running jobs continue.',
    )
    .addHelpText('after', '\nExample:\n  $ jobboard pause --board zookeeper://127.0.0.1:2181/demo')
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/pause.ts')).pause(command.optsWithGlobals(), context),
      ),
    )
}
