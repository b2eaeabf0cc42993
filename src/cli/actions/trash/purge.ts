/** The work of `jobboard trash purge`: removes jobs for good. */
import type { CliContext } from '../../context.ts'
import type { ExitCode } from '../../exit-codes.ts'
import { forEachTrashed } from '../../input/for-each-trashed.ts'
import type { SharedOptions } from '../../input/shared-options.ts'
import type { TrashChoice } from '../../input/trash-choice.ts'

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
