/** `jobboard wait`: until a job has left the board. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { findJob } from '../finding.ts'
import { openTheBoard } from '../opening.ts'
import { duration, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'

export interface WaitCommandOptions extends SharedOptions {
  readonly within?: string
  readonly json?: boolean
}

export function defineWait(program: Command, run: Run): void {
  program
    .command('wait')
    .summary('wait until a job is done, or in the trash')
    .description(
      'Waits until a job has left the board and prints how: COMPLETE, or TRASHED. The exit code is 0 for COMPLETE and 1 ' +
        'for TRASHED, and for a job that is on the board still when --within is over.',
    )
    .argument('<uuid>', 'uuid of the job, or its beginning')
    .option('--within <duration>', 'how long to wait (default: for ever)')
    .option('--json', 'print a JSON object')
    .addHelpText('after', '\nExample:\n  $ jobboard wait 0199c0de --within 10m')
    .action(run((context, command: Command) => wait(command.args[0] ?? '', command.optsWithGlobals(), context)))
}

/** @throws NotFound when it has left the board before, Timeout when it has not */
export async function wait(uuid: string, options: WaitCommandOptions, context: CliContext): Promise<ExitCode> {
  const limits = options.within === undefined ? {} : { timeout: duration(options.within, '--within') }
  await using opened = await openTheBoard(options, context, { create: false })
  const job = await findJob(opened.board, uuid)
  const state = await job.wait(limits)
  if (options.json) await printJson(context, [{ uuid: job.uuid, name: job.name, state }])
  else await printLines(context, [state])
  return state === 'COMPLETE' ? DONE : FAILED
}
