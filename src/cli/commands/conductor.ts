/** The command `jobboard conductor`: a daemon that claims jobs and runs their flows. */
import type { Command } from 'commander'
import type { RunAction } from '../action.ts'
import { LOG_LEVEL_CHOICES } from '../input/choices.ts'
import { addConductorFlags } from '../input/conductor-flags.ts'
import { choiceParser } from '../input/shared-options.ts'

export function defineConductor(program: Command, run: RunAction): void {
  const command = program
    .command('conductor')
    .summary('run a conductor until it is stopped')
    .description(
      'Claims jobs whose flow the module exports, and runs them. It logs JSON lines to standard error. The first SIGINT or ' +
        'SIGTERM lets running jobs finish, the second aborts them, the third ends the process; unfinished jobs go back to ' +
        'the board. SIGUSR2 pauses it, and resumes it when it is paused: meanwhile running jobs continue, and no job is claimed.',
    )
    .option('--flows <module>', 'module that exports the flows: a path or a package')
  addConductorFlags(command)
  command
    .option(
      '--log-level <level>',
      `one of ${LOG_LEVEL_CHOICES.join(', ')} (default: info)`,
      choiceParser('--log-level', LOG_LEVEL_CHOICES),
    )
    .addHelpText('after', EXAMPLES)
    .action(
      run(async (context, command: Command) =>
        (await import('../actions/conductor.ts')).conductor(command.optsWithGlobals(), context),
      ),
    )
}

const EXAMPLES = `
Examples:
  $ jobboard conductor --flows ./flows.js --persistence directory:./logbooks
  $ jobboard conductor --flows ./flows.js --size large --concurrency 1 --health 0.0.0.0:8080
  $ jobboard conductor --flows ./flows.js --burst`
