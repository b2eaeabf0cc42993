/** The command `jobboard doctor`: finds problems, and prints how to solve them. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'

export function defineDoctor(program: Command, run: RunAction): void {
  program
    .command('doctor')
    .summary('find problems, and what to do about them')
    .description(
      'Examines board and logbooks: whether they can be reached, the versions, clocks and rights, claims that are stuck, ' +
        'jobs that kill their owners, postings that cannot be read, jobs of flows that no conductor knows, and ' +
        'numbers that run out. Each finding says what to do. The exit code is 1 where there is an error. It changes ' +
        'nothing.',
    )
    .option('--stuck-after <duration>', 'age from which on a claim is examined (default: 1h)')
    .option('--json', 'print each finding as a JSON object on a line of its own')
    .addHelpText(
      'after',
      '\nExample:\n  $ jobboard doctor --board zookeeper://127.0.0.1:2181/demo --persistence directory:./logbooks',
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/doctor.ts')).doctor(command.optsWithGlobals(), context),
      ),
    )
}
