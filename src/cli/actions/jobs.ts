/** What `jobboard jobs` does: what is on the board. */
import type { JobBoard, JobsOptions, Priority, Size } from '../../board/index.ts'
import { complain } from '../complaints.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { jobsTable } from '../render/jobs.ts'
import { screenOf } from '../render/screen.ts'
import { type JobView, jobView } from '../views.ts'

export interface JobsCommandOptions extends SharedOptions {
  readonly unclaimed?: boolean
  readonly name?: string
  readonly priority?: Priority
  readonly size?: Size
  readonly json?: boolean
}

/** Postings that cannot be read are complained of, one line each, and the rest is listed. */
export async function jobs(options: JobsCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const views = await viewsOf(opened.board, filterOf(options))
  if (options.json) await printJson(context, views)
  else if (views.length === 0) await printLines(context, [`no jobs on ${opened.board.uri}`])
  else await printLines(context, jobsTable(views, screenOf(context)))
  for (const error of opened.unreadable) complain(error, context)
  return opened.unreadable.length > 0 ? FAILED : DONE
}

function filterOf({ unclaimed, name, priority, size }: JobsCommandOptions): JobsOptions {
  return {
    ...(unclaimed ? { onlyUnclaimed: true } : {}),
    ...(name === undefined ? {} : { name }),
    ...(priority === undefined ? {} : { priority }),
    ...(size === undefined ? {} : { size }),
  }
}

async function viewsOf(board: JobBoard, filter: JobsOptions): Promise<JobView[]> {
  const views: JobView[] = []
  for await (const job of board.jobs(filter)) {
    const view = jobView(job)
    if (view) views.push(view)
  }
  return views
}
