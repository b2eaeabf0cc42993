/** The command `jobboard demo`: shows in ten seconds how a board works. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'

export function defineDemo(program: Command, run: RunAction): void {
  program
    .command('demo')
    .summary('show in ten seconds how a board works')
    .description(
      'Posts six jobs, runs them with two conductors in processes of their own, and kills one of them in the middle of a ' +
        'task: the other continues from there. It uses a throw-away ZooKeeper, like the one of `dev`; or, if a board is ' +
        'named, that board, and removes its jobs from it at the end. Ctrl-C stops the demo. The exit code ' +
        'is 0 when all jobs are done.',
    )
    .option('--json', 'print a JSON object for each event, one a line, and one for the summary')
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard demo\n  $ jobboard demo --board redis://127.0.0.1:6379/0 --persistence directory:./logbooks',
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/demo.ts')).demo(command.optsWithGlobals(), context),
      ),
    )
}
