/** The command `jobboard track`: shows the status of a job by its uuid. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'

export function defineTrack(program: Command, run: RunAction): void {
  program
    .command('track')
    .summary('show the status of a job, and its results')
    .description(
      'Shows the status of a job from board and logbook together: waiting and for what, running where and since when, ' +
        'done with what results, failed with what failure, or trashed. Results are printed: --redact hides the values of ' +
        'the keys that it names.',
    )
    .argument('<uuid>', 'uuid of the job, its beginning or its end')
    .option('--book <uuid>', "uuid of its logbook, if it was posted with one (default: the job's)")
    .option('--json', 'print a JSON object')
    .addHelpText(
      'after',
      '\nExample:\n  $ jobboard track 0199c0de-0000-7000-8000-000000000001 --persistence directory:./logbooks --redact token',
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/track.ts')).track(command.args[0] ?? '', command.optsWithGlobals(), context),
      ),
    )
}
