/** The work of `jobboard trash show`: shows one job in the trash, with its failure. */
import { Redactor } from '../../../core/redaction.ts'
import type { CliContext } from '../../context.ts'
import { DONE, type ExitCode } from '../../exit-codes.ts'
import { redactedKeys, type SharedOptions } from '../../input/shared-options.ts'
import { findTrashed } from '../../locate.ts'
import { openNamedBoard } from '../../opening.ts'
import { printJson, printLines } from '../../output/output.ts'
import { reportLines } from '../../output/render/report.ts'
import { toScreen } from '../../output/render/screen.ts'
import { toJobDetails, trashView } from '../../views/views.ts'

export interface TrashShowCommandOptions extends SharedOptions {
  readonly json?: boolean
}

/** Shows one trashed job. @throws NotFound if it is not in the trash */
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
