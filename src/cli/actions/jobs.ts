/** The work of `jobboard jobs`: lists the jobs on the board. */
import type { Job, JobsOptions, Priority, Size } from '../../board/index.ts'
import type { JobState } from '../../core/states.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import type { SharedOptions } from '../input/shared-options.ts'
import type { WatchFlags } from '../input/watch-flags.ts'
import { openNamedBoard } from '../opening.ts'
import { reportError } from '../output/error-report.ts'
import { jobsTable } from '../output/render/jobs.ts'
import { toScreen } from '../output/render/screen.ts'
import { toPrintableJson } from '../output/render/text.ts'
import { type Frame, showFrames } from '../output/watch.ts'
import { type LiveJob, LiveJobs } from '../views/live-jobs.ts'
import type { JobView } from '../views/views.ts'

export interface JobsCommandOptions extends SharedOptions, WatchFlags {
  readonly unclaimed?: boolean
  readonly name?: string
  readonly priority?: Priority
  readonly size?: Size
  readonly limit?: number
  readonly json?: boolean
}

/** Lists the jobs. Reports each posting that cannot be read in one line on standard error, and lists the rest. */
export async function jobs(options: JobsCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const [live, changes] = [new LiveJobs(board), new JobChanges()]
  const frame = async (): Promise<Frame> => {
    const jobs = await live.read(toFilter(options), options.limit === undefined ? {} : { limit: options.limit })
    const views = jobs.map(({ view }) => view)
    const content = JSON.stringify(views)
    if (options.json) return { content, lines: changes.since(jobs).map(toPrintableJson) }
    return { content, lines: views.length === 0 ? [`no jobs on ${board.uri}`] : jobsTable(views, toScreen(context)) }
  }
  await showFrames(frame, options, context)
  for (const error of opened.unreadable) reportError(error, context)
  return opened.unreadable.length > 0 ? FAILED : DONE
}

function toFilter({ unclaimed, name, priority, size }: JobsCommandOptions): JobsOptions {
  return {
    ...(unclaimed ? { onlyUnclaimed: true } : {}),
    ...(name === undefined ? {} : { name }),
    ...(priority === undefined ? {} : { priority }),
    ...(size === undefined ? {} : { size }),
  }
}

interface EndedJobLine {
  readonly uuid: string
  readonly name: string
  readonly state: JobState
}

/**
 * The changes between two lists: jobs that are new or different, and jobs that left, with how they ended; at first all
 * jobs.
 */
class JobChanges {
  #known = new Map<string, { readonly job: Job; readonly json: string }>()

  since(jobs: readonly LiveJob[]): (JobView | EndedJobLine)[] {
    const now = new Map<string, { readonly job: Job; readonly json: string }>()
    const changed: (JobView | EndedJobLine)[] = []
    for (const { job, view } of jobs) {
      const json = JSON.stringify(view)
      if (this.#known.get(job.uuid)?.json !== json) changed.push(view)
      now.set(job.uuid, { job, json })
    }
    for (const [uuid, { job }] of this.#known)
      if (!now.has(uuid)) changed.push({ uuid, name: job.name, state: job.state })
    this.#known = now
    return changed
  }
}
