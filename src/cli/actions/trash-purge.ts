/** What `jobboard trash purge` does: remove jobs for good. */
import type { TrashedJob } from '../../board/index.ts'
import type { CliContext } from '../context.ts'
import { each } from '../each.ts'
import type { ExitCode } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { chooseTrashed, type TrashChoice } from '../trash-choice.ts'

export interface TrashPurgeCommandOptions extends SharedOptions, TrashChoice {}

export async function trashPurge(
  uuids: readonly string[],
  options: TrashPurgeCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  const chosen = await chooseTrashed(board, uuids, options)
  const work = async (job: TrashedJob) => {
    await board.purge(job)
    return true
  }
  return await each(chosen, { what: 'purging', work }, context)
}
