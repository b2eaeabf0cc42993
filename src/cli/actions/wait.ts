/** What `jobboard wait` does: until a job has left the board. */
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { findJob } from '../finding.ts'
import { follow, logbooksToFollow } from '../following.ts'
import { openTheBoard } from '../opening.ts'
import { duration, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'

export interface WaitCommandOptions extends SharedOptions {
  readonly within?: string
  readonly json?: boolean
}

/** @throws NotFound when it has left the board before, Timeout when it has not */
export async function wait(uuid: string, options: WaitCommandOptions, context: CliContext): Promise<ExitCode> {
  const limits = options.within === undefined ? {} : { timeout: duration(options.within, '--within') }
  await using opened = await openTheBoard(options, context, { create: false })
  await using logbooks = await logbooksToFollow(options, context)
  const job = await findJob(opened.board, uuid)
  const state = await follow(job, { logbooks, ...limits }, context)
  if (options.json) await printJson(context, [{ uuid: job.uuid, name: job.name, state }])
  else await printLines(context, [state])
  return state === 'COMPLETE' ? DONE : FAILED
}
