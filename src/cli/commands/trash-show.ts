/** `jobboard trash show`: one job in the trash, with what failed. */
import type { Command } from 'commander'
import { Redaction } from '../../core/redaction.ts'
import type { Run } from '../action.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { findTrashed } from '../finding.ts'
import { openTheBoard } from '../opening.ts'
import { redactedKeys, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { reportLines } from '../render/report.ts'
import { particulars, trashView } from '../views.ts'

export interface TrashShowCommandOptions extends SharedOptions {
  readonly json?: boolean
}

export function defineTrashShow(trash: Command, run: Run): void {
  trash
    .command('show')
    .summary('show a job in the trash')
    .description('Shows a job in the trash: who put it there and why, with what failure, and every attempt.')
    .argument('<uuid>', 'uuid of the job, or its beginning')
    .option('--json', 'print a JSON object')
    .addHelpText('after', '\nExample:\n  $ jobboard trash show 0199c0de')
    .action(run((context, command: Command) => trashShow(command.args[0] ?? '', command.optsWithGlobals(), context)))
}

/** @throws NotFound when it is not in the trash */
export async function trashShow(
  uuid: string,
  options: TrashShowCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  const redaction = new Redaction(redactedKeys(options, context))
  await using opened = await openTheBoard(options, context, { create: false })
  const trashed = await findTrashed(opened.board, uuid)
  const job = { ...trashView(trashed, redaction), ...particulars(trashed, redaction) }
  if (options.json) await printJson(context, [job])
  else await printLines(context, reportLines(job.uuid, { job }, { width: context.stdout.columns, now: new Date() }))
  return DONE
}
