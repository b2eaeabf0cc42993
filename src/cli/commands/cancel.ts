/** `jobboard cancel`: asks for a job to be given up. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'

export function defineCancel(program: Command, run: Run): void {
  program
    .command('cancel')
    .summary('ask for a job to be given up')
    .description(
      'Asks for a job to be given up. One that was never run is in the trash at once; one that runs is told, undone, and ' +
        'trashed then; one that waits half done is undone by the conductor that claims it next.',
    )
    .argument('<uuid>', 'uuid of the job, its beginning or its end')
    .option('--reason <text>', 'for people, and kept in the trash (default: cancelled)')
    .option('--json', 'print a JSON object')
    .addHelpText('after', "\nExample:\n  $ jobboard cancel 0199c0de --reason 'posted by mistake'")
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/cancel.ts')).cancel(command.args[0] ?? '', command.optsWithGlobals(), context),
      ),
    )
}
