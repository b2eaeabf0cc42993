/** The command `jobboard trash list`: lists the jobs in the trash. */
import type { Command } from 'commander'
import type { RunAction } from '../../action.ts'

export function defineTrashList(trash: Command, run: RunAction): void {
  trash
    .command('list')
    .summary('list the jobs in the trash')
    .description('Lists the jobs in the trash, oldest first, with who put them there and why.')
    .option('--json', 'print each job as a JSON object on a line of its own')
    .addHelpText('after', '\nExample:\n  $ jobboard trash list --json --board zookeeper://127.0.0.1:2181/demo')
    .action(
      run(async (context, command: Command) =>
        (await import('../../actions/trash/list.ts')).trashList(command.optsWithGlobals(), context),
      ),
    )
}
