/** Declares the limits and the settings of flows of a conductor on a board, and logs the results; `scheduling.ts` declares its schedules. */
import type { DeclaredFlowSettings, DeclaredLimits, DeclaredSchedules, JobBoard } from '../board/index.ts'
import { boardInternals, type DeclarationReport } from '../board/internal.ts'
import type { Logger } from '../core/log.ts'

/** What a conductor declares on one board, with all options. */
export interface Declarations {
  readonly limits: Required<DeclaredLimits> | undefined
  readonly flowSettings: Required<DeclaredFlowSettings> | undefined
  readonly schedules: Required<DeclaredSchedules> | undefined
}

interface DeclarationContext {
  readonly board: JobBoard
  /** The name of the conductor. */
  readonly name: string
  readonly log: Logger
}

/** Sets limits and settings of flows on the board, except those that were set at run time. @throws the errors of the declarations; NotConnected */
export async function declareRecords(
  { limits, flowSettings }: Partial<Pick<Declarations, 'limits' | 'flowSettings'>>,
  context: DeclarationContext,
): Promise<void> {
  const internals = boardInternals(context.board)
  if (limits) report(await internals.declareLimits(limits), { ...context, key: 'limits', what: 'limits' })
  if (!flowSettings) return
  const declared = await internals.declareFlowSettings(flowSettings)
  report(declared, { ...context, key: 'flows', what: 'settings of flows' })
}

/** Logs what has become of declared records. */
function report(
  { put, pruned, newer, foreign, edited, kept }: DeclarationReport,
  { name, log, key, what }: DeclarationContext & { readonly key: string; readonly what: string },
): void {
  if (put.length > 0 || pruned.length > 0) log.info({ conductor: name, put, pruned }, `${what} declared`)
  const warn = (ids: readonly string[], why: string) => {
    if (ids.length > 0) log.warn({ conductor: name, [key]: ids }, why)
  }
  warn(newer, `a newer version has declared these ${what}: left as they are`)
  warn(foreign, `another owner has declared these ${what}: left as they are; remove them first`)
  warn(
    edited,
    `these ${what} were set at run time: left as they are until their declaration changes; remove them to set what is declared at the next start`,
  )
  warn(kept, `these ${what} are not declared any more, and were not pruned: a newer version has declared them`)
}
