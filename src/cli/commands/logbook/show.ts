/** The command `jobboard logbook show`: shows one logbook with all its records. */
import type { Command } from 'commander'
import type { RunAction } from '../../action.ts'

export function defineLogbookShow(logbook: Command, run: RunAction): void {
  logbook
    .command('show')
    .summary('show a logbook')
    .description(
      "Shows a logbook: its flows, their atoms with state and duration, and failures with their causes. A job's logbook " +
        "has the job's uuid, unless the job was posted with another.",
    )
    .argument('<uuid>', 'uuid of the logbook, its beginning or its end')
    .option('--json', 'print a JSON object')
    .addHelpText('after', '\nExample:\n  $ jobboard logbook show 0199c0de --persistence directory:./logbooks')
    .action(
      run(async (context, command: Command) =>
        (await import('../../actions/logbook/show.ts')).logbookShow(
          command.args[0] ?? '',
          command.optsWithGlobals(),
          context,
        ),
      ),
    )
}
