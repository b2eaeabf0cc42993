/** What `jobboard jobs` does: what is on the board. */
import type { Job, JobsOptions, Priority, Size } from '../../board/index.ts'
import type { JobState } from '../../core/states.ts'
import { complain } from '../complaints.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { type LiveJob, LiveJobs } from '../live-jobs.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { jobsTable } from '../render/jobs.ts'
import { screenOf } from '../render/screen.ts'
import { printableJson } from '../render/text.ts'
import type { JobView } from '../views.ts'
import type { WatchFlags } from '../watch-flags.ts'
import { type Frame, show } from '../watching.ts'

export interface JobsCommandOptions extends SharedOptions, WatchFlags {
  readonly unclaimed?: boolean
  readonly name?: string
  readonly priority?: Priority
  readonly size?: Size
  readonly limit?: number
  readonly json?: boolean
}

/** Postings that cannot be read are complained of, one line each, and the rest is listed. */
export async function jobs(options: JobsCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  const [live, changes] = [new LiveJobs(board), new Changes()]
  const frame = async (): Promise<Frame> => {
    const jobs = await live.read(filterOf(options), options.limit === undefined ? {} : { limit: options.limit })
    const views = jobs.map(({ view }) => view)
    const content = JSON.stringify(views)
    if (options.json) return { content, lines: changes.since(jobs).map(printableJson) }
    return { content, lines: views.length === 0 ? [`no jobs on ${board.uri}`] : jobsTable(views, screenOf(context)) }
  }
  await show(frame, options, context)
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

interface Left {
  readonly uuid: string
  readonly name: string
  readonly state: JobState
}

/** The jobs that are new or different, and those that are gone, with how they ended; at first all that are there. */
class Changes {
  #known = new Map<string, { readonly job: Job; readonly told: string }>()

  since(jobs: readonly LiveJob[]): (JobView | Left)[] {
    const now = new Map<string, { readonly job: Job; readonly told: string }>()
    const changed: (JobView | Left)[] = []
    for (const { job, view } of jobs) {
      const told = JSON.stringify(view)
      if (this.#known.get(job.uuid)?.told !== told) changed.push(view)
      now.set(job.uuid, { job, told })
    }
    for (const [uuid, { job }] of this.#known)
      if (!now.has(uuid)) changed.push({ uuid, name: job.name, state: job.state })
    this.#known = now
    return changed
  }
}
