/** What `jobboard cancel` does: asks for a job to be given up. */
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { findJob } from '../finding.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { printable } from '../render/text.ts'

export interface CancelCommandOptions extends SharedOptions {
  readonly reason?: string
  readonly json?: boolean
}

/** @throws NotFound when it has left the board */
export async function cancel(uuid: string, options: CancelCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  const job = await findJob(board, uuid)
  await board.cancel(job, options.reason === undefined ? {} : { reason: options.reason })
  const trashed = job.state === 'TRASHED'
  if (options.json) await printJson(context, [{ uuid: job.uuid, name: job.name, state: job.state }])
  else await printLines(context, [printable(trashed ? `${job} is in the trash` : `cancellation of ${job} requested`)])
  return DONE
}
