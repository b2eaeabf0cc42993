/** The command `jobboard jobs`: lists the jobs on the board. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import { PRIORITY_CHOICES, SIZE_CHOICES } from '../input/choices.ts'
import { choiceParser, countParser } from '../input/shared-options.ts'
import { addWatchFlags } from '../input/watch-flags.ts'

export function defineJobs(program: Command, run: RunAction): void {
  const command = program
    .command('jobs')
    .summary('list the jobs on the board')
    .description('Lists the jobs on the board: higher priority first, then in the order in which they were posted.')
    .option('--unclaimed', 'only jobs without an owner')
    .option('--name <name>', 'only jobs of this name')
    .option(
      '--priority <priority>',
      `only jobs of this priority: ${PRIORITY_CHOICES.join(', ')}`,
      choiceParser('--priority', PRIORITY_CHOICES),
    )
    .option('--size <size>', `only jobs of this size: ${SIZE_CHOICES.join(', ')}`, choiceParser('--size', SIZE_CHOICES))
    .option('--limit <n>', 'only the first n jobs', countParser('--limit'))
    .option('--json', 'print each job as a JSON object on a line of its own; with --watch, each job when it changes')
  addWatchFlags(command)
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard jobs --unclaimed --board zookeeper://127.0.0.1:2181/demo\n  $ jobboard jobs --watch --priority HIGH',
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/jobs.ts')).jobs(command.optsWithGlobals(), context),
      ),
    )
}
