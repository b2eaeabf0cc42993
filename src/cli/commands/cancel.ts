/** The command `jobboard cancel`: requests the cancellation of jobs. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'

export function defineCancel(program: Command, run: RunAction): void {
  program
    .command('cancel')
    .summary('cancel jobs')
    .description(
      'Cancels jobs. A job that never ran is trashed at once. A running job is notified, reverted, and then trashed. ' +
        'A waiting job that is half done is reverted by the conductor that claims it next.',
    )
    .argument('[uuid...]', 'uuids of jobs, their first 13 characters or more, or their ends')
    .option('--name <name>', 'all jobs of this name')
    .option('--all', 'all jobs on the board')
    .option('--yes', 'do not ask; needed with --name and --all where there is no terminal')
    .option('--reason <text>', 'reason for people, kept in the trash (default: cancelled)')
    .option('--json', 'print a JSON object for each job')
    .addHelpText(
      'after',
      "\nExamples:\n  $ jobboard cancel 0199c0de-85f8 --reason 'posted by mistake'\n  $ jobboard cancel --name import --yes",
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/cancel.ts')).cancel(command.args, command.optsWithGlobals(), context),
      ),
    )
}
