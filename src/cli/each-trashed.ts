/** The same for jobs in the trash that somebody has chosen. */
import type { JobBoard, TrashedJob } from '../board/index.ts'
import type { CliContext } from './context.ts'
import { each } from './each.ts'
import { DONE, type ExitCode } from './exit-codes.ts'
import { openTheBoard } from './opening.ts'
import type { SharedOptions } from './options.ts'
import { chooseTrashed, type TrashChoice } from './trash-choice.ts'

export interface EachTrashed {
  readonly uuids: readonly string[]
  readonly options: SharedOptions & TrashChoice
  /** `purging`, say. */
  readonly what: string
  readonly work: (board: JobBoard, job: TrashedJob) => Promise<void>
}

/** Prints the uuid of each with which it was done; where none was meant, it is said on standard error. */
export async function eachTrashed({ uuids, options, what, work }: EachTrashed, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  const chosen = await chooseTrashed(board, uuids, options)
  if (chosen.length === 0) {
    context.stderr.write(`there are no such jobs in the trash of ${board.uri}\n`)
    return DONE
  }
  const done = async (job: TrashedJob) => {
    await work(board, job)
    return true
  }
  return await each(chosen, { what, work: done }, context)
}
