/** Declares the limits of a conductor on a board, and logs what has become of them. */
import type { DeclaredLimits, JobBoard } from '../board/index.ts'
import { boardInternals } from '../board/internal.ts'
import type { Logger } from '../core/log.ts'

/** Sets the limits on the board, except the limits that were set at run time. @throws the errors of the declaration; NotConnected */
export async function declareLimits(
  declared: Required<DeclaredLimits>,
  { board, name, log }: { readonly board: JobBoard; readonly name: string; readonly log: Logger },
): Promise<void> {
  const { put, pruned, newer, foreign, edited, kept } = await boardInternals(board).declareLimits(declared)
  if (put.length > 0 || pruned.length > 0) log.info({ conductor: name, put, pruned }, 'limits declared')
  const warn = (limits: readonly string[], why: string) => {
    if (limits.length > 0) log.warn({ conductor: name, limits }, why)
  }
  warn(newer, 'a newer version has declared these limits: left as they are')
  warn(foreign, 'another owner has declared these limits: left as they are; remove them first')
  warn(
    edited,
    'these limits were set at run time: left as they are until their declaration changes; remove them to set what is declared at the next start',
  )
  warn(kept, 'these limits are not declared any more, and were not pruned: a newer version has declared them')
}
