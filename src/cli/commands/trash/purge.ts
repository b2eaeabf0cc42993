/** The command `jobboard trash purge`: removes jobs for good. */
import type { Command } from 'commander'
import type { RunAction } from '../../action.ts'
import { addTrashChoice } from '../../input/trash-choice.ts'

export function defineTrashPurge(trash: Command, run: RunAction): void {
  const command = trash
    .command('purge')
    .summary('remove jobs for good')
    .description('Removes jobs out of the trash for good. Each uuid that was purged is printed.')
  addTrashChoice(command)
    .addHelpText('after', '\nExample:\n  $ jobboard trash purge --older-than 30d')
    .action(
      run(async (context, command: Command) =>
        (await import('../../actions/trash/purge.ts')).trashPurge(command.args, command.optsWithGlobals(), context),
      ),
    )
}
