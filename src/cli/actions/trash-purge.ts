/** What `jobboard trash purge` does: remove jobs for good. */
import type { CliContext } from '../context.ts'
import { forEachTrashed } from '../each-trashed.ts'
import type { ExitCode } from '../exit-codes.ts'
import type { SharedOptions } from '../options.ts'
import type { TrashChoice } from '../trash-choice.ts'

export interface TrashPurgeCommandOptions extends SharedOptions, TrashChoice {}

export async function trashPurge(
  uuids: readonly string[],
  options: TrashPurgeCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  return forEachTrashed(
    { uuids, options, what: 'purging', done: 'purged', verb: 'purge', work: (board, job) => board.purge(job) },
    context,
  )
}
