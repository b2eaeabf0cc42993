/** `jobboard jobs`: what is on the board. */
import type { Command } from 'commander'
import type { JobBoard, JobsOptions, Priority, Size } from '../../board/index.ts'
import type { Run } from '../action.ts'
import { complain } from '../complaints.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import { oneOf, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { jobsTable } from '../render/jobs.ts'
import { type JobView, jobView } from '../views.ts'
import { PRIORITY_WORDS, SIZE_WORDS } from '../words.ts'

export interface JobsCommandOptions extends SharedOptions {
  readonly unclaimed?: boolean
  readonly name?: string
  readonly priority?: Priority
  readonly size?: Size
  readonly json?: boolean
}

export function defineJobs(program: Command, run: Run): void {
  program
    .command('jobs')
    .summary('list the jobs on the board')
    .description('Lists the jobs on the board: higher priority first, then in the order in which they were posted.')
    .option('--unclaimed', 'only jobs that nobody runs')
    .option('--name <name>', 'only jobs of this name')
    .option(
      '--priority <priority>',
      `only jobs of this priority: ${PRIORITY_WORDS.join(', ')}`,
      oneOf('--priority', PRIORITY_WORDS),
    )
    .option('--size <size>', `only jobs of this size: ${SIZE_WORDS.join(', ')}`, oneOf('--size', SIZE_WORDS))
    .option('--json', 'print each job as a JSON object on a line of its own')
    .addHelpText('after', '\nExample:\n  $ jobboard jobs --unclaimed --board zookeeper://127.0.0.1:2181/demo')
    .action(run((context, command: Command) => jobs(command.optsWithGlobals(), context)))
}

/** Postings that cannot be read are complained of, one line each, and the rest is listed. */
export async function jobs(options: JobsCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const views = await viewsOf(opened.board, filterOf(options))
  if (options.json) await printJson(context, views)
  else if (views.length === 0) await printLines(context, [`no jobs on ${opened.board.uri}`])
  else await printLines(context, jobsTable(views, { width: context.stdout.columns, now: new Date() }))
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
