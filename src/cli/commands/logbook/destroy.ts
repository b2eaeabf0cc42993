/** The command `jobboard logbook destroy`: removes logbooks for good. */
import type { Command } from 'commander'
import type { RunAction } from '../../action.ts'
import { FLOW_STATE_CHOICES } from '../../input/choices.ts'
import { choicesParser } from '../../input/shared-options.ts'

export function defineLogbookDestroy(logbook: Command, run: RunAction): void {
  logbook
    .command('destroy')
    .summary('remove logbooks for good')
    .description(
      'Removes logbooks for good. Each uuid that was destroyed is printed. By name, age or --all only those are meant ' +
        'whose flows are over, unless --state says otherwise. A logbook whose job is on the board is needed there, ' +
        'and one of another board may be needed on that: they are left alone, unless --force is given; so a board has ' +
        'to be named.',
    )
    .argument('[uuid...]', 'uuids of logbooks, their first 13 characters or more, or their ends')
    .option('--name <name>', 'those of this name')
    .option('--older-than <duration>', 'those in which nothing has changed for longer')
    .option(
      '--state <state>',
      `those with a flow in this state, one of ${FLOW_STATE_CHOICES.join(', ')}; may be repeated`,
      choicesParser('--state', FLOW_STATE_CHOICES),
    )
    .option('--all', 'all of them')
    .option('--force', 'also those whose job is on the board, which is not asked then, and those of other boards')
    .option('--yes', 'do not ask on a terminal, where only a part of a uuid is given')
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard logbook destroy --older-than 30d\n  $ jobboard logbook destroy 0199c0de --force',
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../../actions/logbook/destroy.ts')).logbookDestroy(
          command.args,
          command.optsWithGlobals(),
          context,
        ),
      ),
    )
}
