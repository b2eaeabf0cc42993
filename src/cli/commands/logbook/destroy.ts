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
      'Removes logbooks for good, and prints the uuid of each. --name, --older-than and --all select only logbooks ' +
        'whose flows are over, unless --state says otherwise. A logbook whose job is on the board is needed there, ' +
        'and a logbook of another board may be needed on that board: they are kept, unless --force is given; so a board ' +
        'must be named.',
    )
    .argument('[uuid...]', 'uuids of logbooks, their first 13 characters or more, or their ends')
    .option('--name <name>', 'logbooks of this name')
    .option('--older-than <duration>', 'logbooks without a change for longer than this')
    .option(
      '--state <state>',
      `logbooks with a flow in this state, one of ${FLOW_STATE_CHOICES.join(', ')}; may be repeated`,
      choicesParser('--state', FLOW_STATE_CHOICES),
    )
    .option('--all', 'all logbooks')
    .option('--force', 'also logbooks whose jobs are on the board, and logbooks of other boards; the board is not read')
    .option('--yes', 'do not ask on a terminal for confirmation of a part of a uuid')
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
