/** What `jobboard trash show` does: one job in the trash, with what failed. */
import { Redactor } from '../../core/redaction.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { findTrashed } from '../finding.ts'
import { openNamedBoard } from '../opening.ts'
import { redactedKeys, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { reportLines } from '../render/report.ts'
import { toScreen } from '../render/screen.ts'
import { toJobDetails, trashView } from '../views.ts'

export interface TrashShowCommandOptions extends SharedOptions {
  readonly json?: boolean
}

/** @throws NotFound when it is not in the trash */
export async function trashShow(
  uuid: string,
  options: TrashShowCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  await using opened = await openNamedBoard(options, context, { create: false })
  const trashed = await findTrashed(opened.board, uuid)
  const job = { ...trashView(trashed, redaction), ...toJobDetails(trashed, redaction) }
  if (options.json) await printJson(context, [job])
  else await printLines(context, reportLines(job.uuid, { job }, toScreen(context)))
  return DONE
}
