/** The command `jobboard post`: posts one job. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import type { PostCommandOptions } from '../actions/post.ts'
import { MAX_ATTEMPTS, PRIORITY_CHOICES, SIZE_CHOICES } from '../input/choices.ts'
import { choiceParser, collectText, countParser } from '../input/shared-options.ts'
import { toUnlimitedWait } from '../input/unlimited.ts'

export function definePost(program: Command, run: RunAction): void {
  program
    .command('post')
    .summary('post a job')
    .description(
      'Posts a job that runs FLOW, and prints its uuid. With --flows the store is checked here against the inputs that the ' +
        'flow requires; without it, the conductor that runs the job checks it.',
    )
    .argument('<flow>', 'name of the flow')
    .option('--flows <module>', 'module that exports the flow: a path or a package')
    .option('--store <json>', "the flow's inputs, a JSON object; - reads it from standard input (default: {})")
    .option('--name <name>', "name of the job, for people (default: the flow's name)")
    .option(
      '--priority <priority>',
      `one of ${PRIORITY_CHOICES.join(', ')} (default: NORMAL)`,
      choiceParser('--priority', PRIORITY_CHOICES),
    )
    .option(
      '--size <size>',
      `one of ${SIZE_CHOICES.join(', ')} (default: medium)`,
      choiceParser('--size', SIZE_CHOICES),
    )
    .option(
      '--max-attempts <n>',
      `how many runs may fail before the job is trashed (default: 3, at most ${MAX_ATTEMPTS})`,
      countParser('--max-attempts', { most: MAX_ATTEMPTS }),
    )
    .option('--exclusive <resource>', 'resource that it owns exclusively while it runs; may be repeated', collectText)
    .option(
      '--shared <resource>',
      'resource that it owns together with others while it runs; may be repeated',
      collectText,
    )
    .option(
      '--key <key>',
      'at most one job with this key is on the board: if there is one already, its uuid is printed',
    )
    .option('--delay <duration>', 'time until it can be claimed (default: none)')
    .option('--deadline <duration>', 'how long one run may take before it fails (default: for ever)')
    .option('--uuid <uuid>', 'uuid of the job, to post again after an unknown outcome (default: a new one)')
    .option('--wait', 'wait until it is done, and print its progress if logbooks are named; exit code as of wait')
    .option('--within <duration>', 'with --wait, how long (default: for ever)')
    .option('--json', 'print the job as a JSON object; with --wait, once it is done')
    .addHelpText(
      'after',
      `\nExamples:\n  $ jobboard post hello --flows ./flows.js --store '{"name":"Ada"}' --priority HIGH\n  $ jobboard post hello --store - --wait --within 10m < store.json\n  $ jobboard post tidy --exclusive disk --key tidy --delay 1h`,
    )
    .action(
      run(async (context, command: Command) => {
        const options = { ...command.optsWithGlobals<PostCommandOptions>(), ...toUnlimitedWait(command) }
        return (await import('../actions/post.ts')).post(command.args[0] ?? '', options, context)
      }),
    )
}
