/** The command `jobboard history`: lists the jobs that have ended. */
import type { Command } from 'commander'
import type { EndedJob } from '../../board/index.ts'
import { Redactor } from '../../core/redaction.ts'
import { otherQueue } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import {
  count,
  eachAsJson,
  type FlagTable,
  type OptionsOf,
  QUEUE_FILTER_FLAG,
  shared,
  withFlags,
} from '../input/flags.ts'
import { ageLimit, redactedKeys, toQueueFilter } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printDrawn, printJson, printLines } from '../output/output.ts'

/** The most jobs that one read of the history returns. */
const MAX_LIMIT = 10_000
const DEFAULT_LIMIT = 100

const FLAGS = {
  '--limit <n>': [
    `how many jobs are listed (default: 100, with --since or --until ${MAX_LIMIT}; at most ${MAX_LIMIT})`,
    count({ most: MAX_LIMIT }),
  ],
  '--since <time>': 'only jobs that have ended since then: 24h for 24 hours ago, or a time of UTC, such as 2027-03-28',
  '--until <time>': 'only jobs that had ended before then',
  ...shared('--flow <name>'),
  ...QUEUE_FILTER_FLAG,
  '--trashed': 'only jobs that went to the trash',
  '--json': eachAsJson('job'),
} satisfies FlagTable

type HistoryCommandOptions = OptionsOf<typeof FLAGS>

export function defineHistory(program: Command, run: RunAction): void {
  withFlags(program.command('history'), FLAGS)
    .summary('list the jobs that have ended')
    .description(
      'Lists the jobs that have ended last, newest first: the outcome, who ended them, and how long their last run took. A board keeps ' +
        'the last 10,000 of them by default.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard history --flow hello --limit 1000\n  $ jobboard history --since 2027-03-28 --until 2027-03-29',
    )
    .action(run(history))
}

async function history(options: HistoryCommandOptions, context: CliContext): Promise<ExitCode> {
  const isInQueue = await toQueueFilter(options.queue)
  const [since, until] = await Promise.all([toTime(options.since, '--since'), toTime(options.until, '--until')])
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const { flow, trashed = false } = options
  const limit = options.limit ?? (since || until ? MAX_LIMIT : DEFAULT_LIMIT)
  const isFiltered = since || until || flow !== undefined || isInQueue || trashed
  const redaction = new Redactor(redactedKeys(options, context))
  const isAsked = ({ endedAt, ...job }: EndedJob) =>
    (flow === undefined || job.flow === flow) &&
    isInQueue?.(job.queue) !== false &&
    (!trashed || job.outcome === 'TRASHED') &&
    (!since || endedAt >= since) &&
    (!until || endedAt < until)
  const looked = isFiltered ? MAX_LIMIT : limit
  const last = await board.history({ limit: looked })
  const oldest = last.at(-1)?.endedAt
  // Otherwise it would look as if nothing had ended before.
  if (since && oldest && oldest > since && last.length === looked)
    context.stderr.write(
      `only the last ${looked} jobs were looked at: jobs older than ${oldest.toISOString()} are not listed\n`,
    )
  const found = last.filter(isAsked)
  if (since && found.length > limit) context.stderr.write(`only the last ${limit} of ${found.length} jobs are listed\n`)
  const jobs = found.slice(0, limit).map((job) => {
    const { queue, reason } = job
    return { ...job, queue: otherQueue(queue).queue, reason: reason === undefined ? undefined : redaction.text(reason) }
  })
  if (options.json) await printJson(context, jobs)
  else if (jobs.length === 0)
    await printLines(context, [`no ${isFiltered ? 'such ' : ''}jobs in the history of ${board.uri}`])
  else await printDrawn(context, ({ historyTable }, screen) => historyTable(jobs, screen))
  return DONE
}

/** Returns the time: a duration before now, or a time of UTC. @throws InvalidArgument */
async function toTime(text: string | undefined, what: string): Promise<Date | undefined> {
  if (text === undefined) return undefined
  if (/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(text)) return ageLimit(text, what)
  const { toInstant } = await import('../../schedule/internal.ts')
  return new Date(toInstant(text, { zone: 'UTC', what }))
}
