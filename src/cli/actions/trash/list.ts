/** The work of `jobboard trash list`: lists the jobs in the trash. */
import { Redactor } from '../../../core/redaction.ts'
import type { CliContext } from '../../context.ts'
import { DONE, type ExitCode, FAILED } from '../../exit-codes.ts'
import { redactedKeys, type SharedOptions } from '../../input/shared-options.ts'
import { openNamedBoard } from '../../opening.ts'
import { reportError } from '../../output/error-report.ts'
import { printJson, printLines } from '../../output/output.ts'
import { type TrashRow, trashRow, trashTable } from '../../output/render/jobs.ts'
import { toScreen } from '../../output/render/screen.ts'
import { trashView } from '../../views/views.ts'

export interface TrashListCommandOptions extends SharedOptions {
  readonly json?: boolean
}

/** Lists the trash. Reports each entry that cannot be read in one line on standard error, and lists the rest. */
export async function trashList(options: TrashListCommandOptions, context: CliContext): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  await using opened = await openNamedBoard(options, context, { create: false })
  const rows: TrashRow[] = []
  for await (const job of opened.board.trashed()) {
    const view = trashView(job, redaction)
    if (options.json) await printJson(context, [view])
    else rows.push(trashRow(view))
  }
  if (!options.json && rows.length === 0) await printLines(context, [`nothing in the trash of ${opened.board.uri}`])
  else if (!options.json) await printLines(context, trashTable(rows, toScreen(context)))
  for (const error of opened.unreadable) reportError(error, context)
  return opened.unreadable.length > 0 ? FAILED : DONE
}
