/** `jobboard trash list`: what failed for good. */
import type { Command } from 'commander'
import { Redaction } from '../../core/redaction.ts'
import type { Run } from '../action.ts'
import { complain } from '../complaints.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import { redactedKeys, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { trashTable } from '../render/jobs.ts'
import { type TrashView, trashView } from '../views.ts'

export interface TrashListCommandOptions extends SharedOptions {
  readonly json?: boolean
}

export function defineTrashList(trash: Command, run: Run): void {
  trash
    .command('list')
    .summary('list the jobs in the trash')
    .description('Lists the jobs in the trash, oldest first, with who put them there and why.')
    .option('--json', 'print each job as a JSON object on a line of its own')
    .addHelpText('after', '\nExample:\n  $ jobboard trash list --json --board zookeeper://127.0.0.1:2181/demo')
    .action(run((context, command: Command) => trashList(command.optsWithGlobals(), context)))
}

/** Entries that cannot be read are complained of, one line each, and the rest is listed. */
export async function trashList(options: TrashListCommandOptions, context: CliContext): Promise<ExitCode> {
  const redaction = new Redaction(redactedKeys(options, context))
  await using opened = await openTheBoard(options, context, { create: false })
  const views: TrashView[] = []
  for await (const job of opened.board.trashed()) views.push(trashView(job, redaction))
  if (options.json) await printJson(context, views)
  else if (views.length === 0) await printLines(context, [`nothing in the trash of ${opened.board.uri}`])
  else await printLines(context, trashTable(views, { width: context.stdout.columns, now: new Date() }))
  for (const error of opened.unreadable) complain(error, context)
  return opened.unreadable.length > 0 ? FAILED : DONE
}
