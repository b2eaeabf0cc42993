/** The work of `jobboard doctor`: examines board and logbooks, and prints each finding as soon as it is known. */
import { toMilliseconds } from '../../core/time.ts'
import type { CliContext } from '../context.ts'
import { examine } from '../doctor/examine.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { parseDuration, type SharedOptions } from '../input/shared-options.ts'
import { printJson, printLines } from '../output/output.ts'
import { findingLines, verdictLine } from '../output/render/findings.ts'
import { toScreen } from '../output/render/screen.ts'

export interface DoctorCommandOptions extends SharedOptions {
  readonly stuckAfter?: string
  readonly json?: boolean
}

export const STUCK_AFTER = '1h'

export async function doctor(options: DoctorCommandOptions, context: CliContext): Promise<ExitCode> {
  const stuckAfter = toMilliseconds(parseDuration(options.stuckAfter ?? STUCK_AFTER, '--stuck-after'), '--stuck-after')
  const screen = toScreen(context)
  const counts = { ok: 0, warning: 0, error: 0 }
  for await (const finding of examine({ options, context, stuckAfter })) {
    counts[finding.severity] += 1
    if (options.json) await printJson(context, [finding])
    else await printLines(context, findingLines(finding, screen))
  }
  if (!options.json) await printLines(context, ['', verdictLine(counts, screen)])
  return counts.error > 0 ? FAILED : DONE
}
