/** The work of `jobboard logbook show`: shows one logbook, whether its job still exists or not. */
import { Redactor } from '../../../core/redaction.ts'
import type { CliContext } from '../../context.ts'
import { DONE, type ExitCode } from '../../exit-codes.ts'
import { redactedKeys, type SharedOptions } from '../../input/shared-options.ts'
import { findBook } from '../../locate.ts'
import { requireLogbooks } from '../../opening.ts'
import { printJson, printLines } from '../../output/output.ts'
import { logbookReport } from '../../output/render/logbooks.ts'
import { toScreen } from '../../output/render/screen.ts'
import { bookReport } from '../../views/logbook-view.ts'

export interface LogbookShowCommandOptions extends SharedOptions {
  readonly json?: boolean
}

/** Shows one logbook. @throws NotFound if there is none */
export async function logbookShow(
  uuid: string,
  options: LogbookShowCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  await using logbooks = await requireLogbooks(options, context, { missing: 'throw' })
  const { uuid: found } = await findBook(logbooks, uuid, 'look')
  const report = bookReport(await logbooks.persistence.getBook(found), redaction)
  if (options.json) await printJson(context, [report])
  else await printLines(context, logbookReport(report, toScreen(context)))
  return DONE
}
