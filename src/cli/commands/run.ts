/** The command `jobboard run`: runs one flow now, in the foreground. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import { PRIORITY_CHOICES } from '../input/choices.ts'
import { choiceParser, collectText, countParser } from '../input/shared-options.ts'

export function defineRun(program: Command, run: RunAction): void {
  program
    .command('run')
    .summary('run a flow now, in the foreground')
    .description(
      'Runs FLOW in this process and prints the results of its tasks; its progress goes to standard error. If a board is ' +
        'named, the flow is a job on it, claimed by this process, which waits for its turn and owns its resources; ' +
        'without a board it owns none. Ctrl-C suspends it. The exit code is 0 when it succeeded, 1 when it failed, and 130 ' +
        'when it was suspended.',
    )
    .argument('<flow>', 'name of the flow')
    .option('--flows <module>', 'module that exports the flow: a path or a package')
    .option('--store <json>', "the flow's inputs, a JSON object; - reads it from standard input (default: {})")
    .option('--alone', 'run without a board, although one is named')
    .option(
      '--exclusive <resource>',
      'resource that it owns exclusively while it runs; needs a board; may be repeated',
      collectText,
    )
    .option(
      '--shared <resource>',
      'resource that it owns together with others; needs a board; may be repeated',
      collectText,
    )
    .option('--name <name>', "name of the job, for people (default: the flow's name)")
    .option(
      '--priority <priority>',
      `priority of the job, one of ${PRIORITY_CHOICES.join(', ')} (default: NORMAL)`,
      choiceParser('--priority', PRIORITY_CHOICES),
    )
    .option('--within <duration>', 'how long to wait for its turn (default: for ever)')
    .option('--deadline <duration>', 'how long it may run before it is reverted (default: for ever)')
    .option('--flow-concurrency <n>', 'how many tasks run at once (default: 16)', countParser('--flow-concurrency'))
    .option('--quiet', 'do not print the progress')
    .option('--json', 'print a JSON object with state and results, or failure')
    .addHelpText(
      'after',
      `\nExamples:\n  $ jobboard run hello --flows ./flows.js --store '{"name":"Ada"}'\n  $ jobboard run import --flows ./flows.js --exclusive account-42 --within 10m`,
    )
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/run.ts')).runNow(command.args[0] ?? '', command.optsWithGlobals(), context),
      ),
    )
}
