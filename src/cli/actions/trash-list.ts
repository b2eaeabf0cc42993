/** What `jobboard trash list` does: what failed for good. */
import { Redaction } from '../../core/redaction.ts'
import { complain } from '../complaints.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import { redactedKeys, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { trashTable } from '../render/jobs.ts'
import { screenOf } from '../render/screen.ts'
import { type TrashView, trashView } from '../views.ts'

export interface TrashListCommandOptions extends SharedOptions {
  readonly json?: boolean
}

/** Entries that cannot be read are complained of, one line each, and the rest is listed. */
export async function trashList(options: TrashListCommandOptions, context: CliContext): Promise<ExitCode> {
  const redaction = new Redaction(redactedKeys(options, context))
  await using opened = await openTheBoard(options, context, { create: false })
  const views: TrashView[] = []
  for await (const job of opened.board.trashed()) views.push(trashView(job, redaction))
  if (options.json) await printJson(context, views)
  else if (views.length === 0) await printLines(context, [`nothing in the trash of ${opened.board.uri}`])
  else await printLines(context, trashTable(views, screenOf(context)))
  for (const error of opened.unreadable) complain(error, context)
  return opened.unreadable.length > 0 ? FAILED : DONE
}
