/** An operation on each of the selected jobs in the trash. */
import type { JobBoard, TrashedJob } from '../../board/index.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { isWholeUuid } from '../locate.ts'
import { openNamedBoard } from '../opening.ts'
import { confirm } from './confirm.ts'
import { forEachWithProgress } from './for-each.ts'
import type { SharedOptions } from './shared-options.ts'
import { chooseTrashed, type TrashChoice } from './trash-choice.ts'

export interface ForEachTrashedOptions {
  readonly uuids: readonly string[]
  readonly options: SharedOptions & TrashChoice
  /** The operation, for example `purging`, and its participle `purged`: see {@link Each}. */
  readonly what: string
  readonly done: string
  /** The verb for the question on a terminal, for example `purge`. */
  readonly verb: string
  /** Excludes jobs that were not named by a uuid, and reports which and why. */
  readonly keep?: (chosen: readonly TrashedJob[]) => readonly TrashedJob[]
  readonly work: (board: JobBoard, job: TrashedJob) => Promise<void>
}

/** Does the work for each job and prints its uuid; if no job was selected, says that on standard error. */
export async function forEachTrashed(
  { uuids, options, what, done, verb, work, keep = (chosen) => chosen }: ForEachTrashedOptions,
  context: CliContext,
): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const found = await chooseTrashed(board, uuids, options)
  const chosen = uuids.length > 0 ? found : keep(found)
  if (found.length > 0 && chosen.length === 0) return DONE
  if (chosen.length === 0) {
    context.stderr.write(`no matching jobs in the trash of ${board.uri}\n`)
    return DONE
  }
  if (!uuids.every(isWholeUuid)) {
    const sure = await confirm(`${verb} ${chosen.join(', ')}?`, { yes: options.yes, offTerminal: 'proceed' }, context)
    if (!sure) return DONE
  }
  const doIt = async (job: TrashedJob) => {
    await work(board, job)
    return true
  }
  return await forEachWithProgress(chosen, { what, done, work: doIt }, context)
}
