/** `jobboard cancel`: asks for a job to be given up. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { findJob } from '../finding.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { printable } from '../render/text.ts'

export interface CancelCommandOptions extends SharedOptions {
  readonly reason?: string
  readonly json?: boolean
}

export function defineCancel(program: Command, run: Run): void {
  program
    .command('cancel')
    .summary('ask for a job to be given up')
    .description(
      'Asks for a job to be given up. One that was never run is in the trash at once; one that runs is told, undone, and ' +
        'trashed then; one that waits half done is undone by the conductor that claims it next.',
    )
    .argument('<uuid>', 'uuid of the job, or its beginning')
    .option('--reason <text>', 'for people, and kept in the trash (default: cancelled)')
    .option('--json', 'print a JSON object')
    .addHelpText('after', "\nExample:\n  $ jobboard cancel 0199c0de --reason 'posted by mistake'")
    .action(run((context, command: Command) => cancel(command.args[0] ?? '', command.optsWithGlobals(), context)))
}

/** @throws NotFound when it has left the board */
export async function cancel(uuid: string, options: CancelCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  const job = await findJob(board, uuid)
  await board.cancel(job, options.reason === undefined ? {} : { reason: options.reason })
  const trashed = job.state === 'TRASHED'
  if (options.json) await printJson(context, [{ uuid: job.uuid, name: job.name, state: job.state }])
  else await printLines(context, [printable(`${job} ${trashed ? 'is in the trash' : 'is asked to be given up'}`)])
  return DONE
}
