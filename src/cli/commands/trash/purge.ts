/** The command `jobboard trash purge`: removes jobs for good. */
import type { Command } from 'commander'
import type { RunAction } from '../../action.ts'
import { addTrashChoice } from '../../input/trash-choice.ts'

export function defineTrashPurge(trash: Command, run: RunAction): void {
  const command = trash
    .command('purge')
    .summary('remove jobs for good')
    .description('Removes jobs from the trash for good, and prints the uuid of each.')
  addTrashChoice(command)
    .addHelpText('after', '\nExample:\n  $ jobboard trash purge --older-than 30d')
    .action(
      run(async (context, command: Command) =>
        (await import('../../actions/trash/purge.ts')).trashPurge(command.args, command.optsWithGlobals(), context),
      ),
    )
}
