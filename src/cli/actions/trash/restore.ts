/** The work of `jobboard trash restore`: puts jobs back on the board. */
import type { TrashedJob } from '../../../board/index.ts'
import type { CliContext } from '../../context.ts'
import type { ExitCode } from '../../exit-codes.ts'
import { forEachTrashed } from '../../input/for-each-trashed.ts'
import type { SharedOptions } from '../../input/shared-options.ts'
import type { TrashChoice } from '../../input/trash-choice.ts'

export interface TrashRestoreCommandOptions extends SharedOptions, TrashChoice {
  readonly poison?: boolean
}

/** The number of deaths in a row from which on it is likely that the job killed its owners. */
const POISON_DEATHS = 2

export async function trashRestore(
  uuids: readonly string[],
  options: TrashRestoreCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  const keep = (chosen: readonly TrashedJob[]) => (options.poison ? chosen : excludePoison(chosen, context))
  return forEachTrashed(
    {
      ...{ uuids, options, what: 'restoring', done: 'restored', verb: 'restore', keep },
      work: (board, job) => board.restore(job),
    },
    context,
  )
}

/**
 * Excludes jobs that would kill conductors again, and reports that: a caller who restores everything hardly means
 * those.
 */
function excludePoison(chosen: readonly TrashedJob[], { stderr }: CliContext): readonly TrashedJob[] {
  const kept = chosen.filter((job) => countTrailingDeaths(job) < POISON_DEATHS)
  const left = chosen.length - kept.length
  if (left > 0) {
    const jobs = left === 1 ? '1 job stays in the trash: its' : `${left} jobs stay in the trash: their`
    stderr.write(`${jobs} last owners died while running it; restore it by its uuid, or add --poison\n`)
  }
  return kept
}

/** Returns how many attempts at the end of the list have no end: their owners died. */
function countTrailingDeaths({ attempts }: TrashedJob): number {
  return attempts.length - 1 - attempts.findLastIndex(({ ended }) => ended !== undefined)
}
