/** The command `jobboard dev`: runs a ZooKeeper for trials. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import { MAX_PORT, SERVER_CHOICES } from '../input/choices.ts'
import { choiceParser, countParser } from '../input/shared-options.ts'

export function defineDev(program: Command, run: RunAction): void {
  program
    .command('dev')
    .summary('run a throw-away ZooKeeper for trials')
    .description(
      "Runs a ZooKeeper until Ctrl-C, for this machine only, from Debian's package or in Docker, whichever is " +
        'installed, and prints the environment variables to set. Its data are deleted at the end.',
    )
    .option(
      '--port <port>',
      'port to listen on (default: 2181, or a free one)',
      countParser('--port', { most: MAX_PORT }),
    )
    .option(
      '--with <server>',
      `one of ${SERVER_CHOICES.join(', ')} (default: whichever is installed)`,
      choiceParser('--with', SERVER_CHOICES),
    )
    .option('--json', 'print its address as a JSON object')
    .addHelpText('after', '\nExamples:\n  $ jobboard dev\n  $ jobboard dev --port 2181')
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/dev.ts')).dev(command.optsWithGlobals(), context),
      ),
    )
}
