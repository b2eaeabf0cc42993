/** The command `jobboard logbook list`: lists logbooks. */
import type { Command } from 'commander'
import type { RunAction } from '../../action.ts'
import { DEFAULT_PAGE_SIZE, FLOW_STATE_CHOICES } from '../../input/choices.ts'
import { choicesParser, countParser } from '../../input/shared-options.ts'

export function defineLogbookList(logbook: Command, run: RunAction): void {
  logbook
    .command('list')
    .summary('list logbooks')
    .description(
      'Lists logbooks with the state of their flows. If there is another page, standard error says how to print it. ' +
        'Pages follow the order in which logbooks are stored; on each page, the logbook that changed last comes first.',
    )
    .option('--name <name>', 'only logbooks of this name')
    .option(
      '--state <state>',
      `only logbooks with a flow in this state, one of ${FLOW_STATE_CHOICES.join(', ')}; may be repeated`,
      choicesParser('--state', FLOW_STATE_CHOICES),
    )
    .option('--older-than <duration>', 'only logbooks without a change for longer than this')
    .option('--limit <n>', `number of logbooks on a page (default: ${DEFAULT_PAGE_SIZE})`, countParser('--limit'))
    .option('--after <uuid>', 'the page after this logbook, the last of the page before')
    .option('--json', 'print each logbook as a JSON object on a line of its own')
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard logbook list --state FAILURE --state REVERTED\n  $ jobboard logbook list --older-than 30d --persistence directory:./logbooks',
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../../actions/logbook/list.ts')).logbookList(command.optsWithGlobals(), context),
      ),
    )
}
