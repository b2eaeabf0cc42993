/** The command `jobboard jobs`: lists the jobs on the board. */
import type { Command } from 'commander'
import type { Job, JobsOptions } from '../../board/index.ts'
import { toJson } from '../../core/json.ts'
import type { JobState } from '../../core/states.ts'
import { type JobView, type LiveJob, LiveJobs } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../context.ts'
import { PRIORITY_CHOICES } from '../input/choices.ts'
import { count, type FlagTable, type OptionsOf, oneOf, QUEUE_FILTER_FLAG, shared, withFlags } from '../input/flags.ts'
import { definedOnly, toQueueFilter } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { render, reportError } from '../output/output.ts'
import { toPrintableJson } from '../output/render/text.ts'
import { type Frame, showFrames, WATCH_FLAGS } from '../output/watch.ts'

/** The states of jobs on a board. */
const STATE_CHOICES = ['UNCLAIMED', 'CLAIMED'] as const satisfies readonly JobState[]

const FLAGS = {
  '--unclaimed': 'only jobs without an owner; short for --state UNCLAIMED',
  '--state <state>': [`only jobs in this state: ${STATE_CHOICES.join(', ')}`, oneOf(STATE_CHOICES)],
  '--owner <owner>': 'only jobs of this owner',
  ...shared('--flow <name>'),
  '--name <name>': 'only jobs of this name',
  '--priority <priority>': [`only jobs of this priority: ${PRIORITY_CHOICES.join(', ')}`, oneOf(PRIORITY_CHOICES)],
  ...QUEUE_FILTER_FLAG,
  '--batch <uuid>': 'only jobs of this batch',
  '--limit <n>': ['only the first n jobs', count()],
  '--json': 'print each job as a JSON object on a line of its own; with --watch, each job when it changes',
  ...WATCH_FLAGS,
} satisfies FlagTable

type JobsCommandOptions = OptionsOf<typeof FLAGS>

export function defineJobs(program: Command, run: RunAction): void {
  withFlags(program.command('jobs'), FLAGS)
    .summary('list the jobs on the board')
    .description(
      'Lists the jobs on the board: higher priority first, then in the order in which they were posted. Jobs that have ended are in the lists of jobboard history and jobboard trash list.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard jobs --unclaimed --board zookeeper://127.0.0.1:2181/demo\n  $ jobboard jobs --flow thumbnail --state CLAIMED\n  $ jobboard jobs --watch --priority HIGH',
    )
    .action(run(jobs))
}

/** Lists the jobs. Reports each posting that cannot be read in one line on standard error, and lists the rest. */
async function jobs(options: JobsCommandOptions, context: CliContext): Promise<ExitCode> {
  const isInQueue = await toQueueFilter(options.queue)
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const [live, changes] = [new LiveJobs(board), new JobChanges()]
  const frame = async (): Promise<Frame> => {
    const fits = ({ view, job }: LiveJob) => isWanted(view, options) && isInQueue?.(job.queue) !== false
    const jobs = await live.read(toFilter(options), { fits, ...definedOnly({ limit: options.limit }) })
    const views = jobs.map(({ view }) => view)
    const content = toJson(views)
    if (options.json) return { content, lines: changes.since(jobs).map(toPrintableJson) }
    if (views.length === 0) return { content, lines: [`no jobs on ${board.uri}`] }
    return { content, lines: await render(context, ({ jobsTable }, screen) => jobsTable(views, screen)) }
  }
  await showFrames(frame, options, context)
  for (const error of opened.unreadable) reportError(error, context)
  return opened.unreadable.length > 0 ? FAILED : DONE
}

/** Returns the part of the filter that the board applies. */
function toFilter({ unclaimed, state, name, priority, queue, batch }: JobsCommandOptions): JobsOptions {
  const onlyUnclaimed = unclaimed || state === 'UNCLAIMED'
  const exact = queue?.endsWith('*') ? undefined : queue
  return { ...(onlyUnclaimed ? { onlyUnclaimed } : {}), ...definedOnly({ name, priority, queue: exact, batch }) }
}

/** Returns whether the job passes the rest of the filter. */
function isWanted(view: JobView, { state, owner, flow }: JobsCommandOptions): boolean {
  const fits = (wanted: string | undefined, value: string | undefined) => wanted === undefined || wanted === value
  return fits(state, view.state) && fits(owner, view.owner) && fits(flow, view.flow)
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
      const json = toJson(view)
      if (this.#known.get(job.uuid)?.json !== json) changed.push(view)
      now.set(job.uuid, { job, json })
    }
    for (const [uuid, { job }] of this.#known)
      if (!now.has(uuid)) changed.push({ uuid, name: job.name, state: job.state })
    this.#known = now
    return changed
  }
}
