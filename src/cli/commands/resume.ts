/** The command `jobboard resume`: lets conductors claim again. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'

export function defineResume(program: Command, run: RunAction): void {
  program
    .command('resume')
    .summary('let conductors claim again')
    .description('Lets conductors claim again after a pause.')
    .addHelpText('after', '\nExample:\n  $ jobboard resume --board zookeeper://127.0.0.1:2181/demo')
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/resume.ts')).resume(command.optsWithGlobals(), context),
      ),
    )
}
