/** The command `jobboard wait`: waits until a job has left the board. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import { toUnlimitedWait } from '../input/unlimited.ts'

export function defineWait(program: Command, run: RunAction): void {
  program
    .command('wait')
    .summary('wait until a job is done, or in the trash')
    .description(
      'Waits until a job has left the board and prints how: COMPLETE, or TRASHED. The exit code is 0 for COMPLETE, and 1 ' +
        'for TRASHED and for a job that is still on the board when --within is over. For a job that left the board before, ' +
        'the trash and the logbook are read. If logbooks are named, the progress is printed on standard error.',
    )
    .argument('<uuid>', 'uuid of the job, its beginning or its end')
    .option('--within <duration>', 'how long to wait (default: for ever)')
    .option('--json', 'print a JSON object')
    .addHelpText('after', '\nExample:\n  $ jobboard wait 0199c0de --within 10m')
    .action(
      run(async (context, command: Command) => {
        const options = { ...command.optsWithGlobals(), ...toUnlimitedWait(command) }
        return (await import('../actions/wait.ts')).wait(command.args[0] ?? '', options, context)
      }),
    )
}
