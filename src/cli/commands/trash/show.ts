/** The command `jobboard trash show`: shows one job in the trash, with its failure. */
import type { Command } from 'commander'
import type { RunAction } from '../../action.ts'

export function defineTrashShow(trash: Command, run: RunAction): void {
  trash
    .command('show')
    .summary('show a job in the trash')
    .description('Shows a job in the trash: who put it there and why, its failure, and every attempt.')
    .argument('<uuid>', 'uuid of the job, its beginning or its end')
    .option('--json', 'print a JSON object')
    .addHelpText('after', '\nExample:\n  $ jobboard trash show 0199c0de')
    .action(
      run(async (context, command: Command) =>
        (await import('../../actions/trash/show.ts')).trashShow(
          command.args[0] ?? '',
          command.optsWithGlobals(),
          context,
        ),
      ),
    )
}
