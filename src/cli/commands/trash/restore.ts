/** The command `jobboard trash restore`: puts jobs back on the board. */
import type { Command } from 'commander'
import type { RunAction } from '../../action.ts'
import { addTrashChoice } from '../../input/trash-choice.ts'

export function defineTrashRestore(trash: Command, run: RunAction): void {
  const command = trash
    .command('restore')
    .summary('put jobs back on the board')
    .description(
      'Puts jobs from the trash back on the board, at the end of the queue, with their uuid and without their attempts, and prints the uuid of each. Jobs whose last owners died while running them are excluded, unless they are named by uuid or --poison is given.',
    )
  addTrashChoice(command)
    .option('--poison', 'with --name, --older-than or --all: also jobs whose last owners died while running them')
    .addHelpText('after', '\nExample:\n  $ jobboard trash restore --name hello')
    .action(
      run(async (context, command: Command) =>
        (await import('../../actions/trash/restore.ts')).trashRestore(command.args, command.optsWithGlobals(), context),
      ),
    )
}
