/** The command `jobboard show`: shows one job, on the board, in the trash, or in its logbook. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import { GRAPH_FORMATS } from '../input/choices.ts'
import { choiceParser } from '../input/shared-options.ts'

export function defineShow(program: Command, run: RunAction): void {
  program
    .command('show')
    .summary('show a job and its logbook')
    .description(
      'Shows a job on the board or in the trash: its state, owner and attempts, and the names of the keys of its store. ' +
        'With --persistence also its logbook: the state of the flow and of each task. A job that is done has left the ' +
        'board; only its logbook remains.',
    )
    .argument('<uuid>', 'uuid of the job, its beginning or its end')
    .option('--json', 'print a JSON object')
    .option('--graph', 'draw the flow instead, its atoms coloured by their states; needs --flows')
    .option('--flows <module>', 'with --graph, module that exports the flow: a path or a package')
    .option(
      '--format <format>',
      'format of the drawing: mermaid or dot',
      choiceParser('--format', GRAPH_FORMATS),
      'mermaid',
    )
    .addHelpText(
      'after',
      '\nExample:\n  $ jobboard show 0199c0de-0000-7000-8000-000000000001 --persistence directory:./logbooks',
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/show.ts')).show(command.args[0] ?? '', command.optsWithGlobals(), context),
      ),
    )
}
