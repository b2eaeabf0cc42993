/** What `jobboard trash restore` does: put jobs back on the board. */
import type { CliContext } from '../context.ts'
import { eachTrashed } from '../each-trashed.ts'
import type { ExitCode } from '../exit-codes.ts'
import type { SharedOptions } from '../options.ts'
import type { TrashChoice } from '../trash-choice.ts'

export interface TrashRestoreCommandOptions extends SharedOptions, TrashChoice {}

export async function trashRestore(
  uuids: readonly string[],
  options: TrashRestoreCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  return eachTrashed({ uuids, options, what: 'restoring', work: (board, job) => board.restore(job) }, context)
}
