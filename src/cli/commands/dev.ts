/** `jobboard dev`: a ZooKeeper to try things with. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'
import { count, oneOf } from '../options.ts'
import { LAST_PORT, SERVER_WORDS } from '../words.ts'

export function defineDev(program: Command, run: Run): void {
  program
    .command('dev')
    .summary('run a throw-away ZooKeeper, to try things with')
    .description(
      "Runs a ZooKeeper on this machine until Ctrl-C, for this machine only, from Debian's package or in Docker, whichever " +
        'is there, and prints what to put into the environment. What it holds is gone at the end.',
    )
    .option('--port <port>', 'where it listens (default: 2181, or a free one)', count('--port', { most: LAST_PORT }))
    .option(
      '--with <server>',
      `one of ${SERVER_WORDS.join(', ')} (default: what is there)`,
      oneOf('--with', SERVER_WORDS),
    )
    .option('--json', 'print where it is as a JSON object')
    .addHelpText('after', '\nExamples:\n  $ jobboard dev\n  $ jobboard dev --port 2181')
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/dev.ts')).dev(command.optsWithGlobals(), context),
      ),
    )
}
