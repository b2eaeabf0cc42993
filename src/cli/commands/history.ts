/** The command `jobboard history`: lists the jobs that have ended. */
import type { Command } from 'commander'
import type { EndedJob } from '../../board/index.ts'
import { Redactor } from '../../core/redaction.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { countParser, definedOnly, redactedKeys, type SharedOptions } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printJson, printLines, render } from '../output/output.ts'

interface HistoryCommandOptions extends SharedOptions {
  readonly limit?: number
  readonly flow?: string
  readonly trashed?: boolean
  readonly json?: boolean
}

/** The most jobs that one read of the history returns. */
const MAX_LIMIT = 10_000

export function defineHistory(program: Command, run: RunAction): void {
  program
    .command('history')
    .summary('list the jobs that have ended')
    .description(
      'Lists the jobs that have ended last, newest first: the outcome, who ended them, and how long their last run took. A board keeps ' +
        'the last 10,000 of them by default.',
    )
    .option(
      '--limit <n>',
      `how many jobs are looked at (default: 100, at most ${MAX_LIMIT})`,
      countParser('--limit', { most: MAX_LIMIT }),
    )
    .option('--flow <name>', 'only jobs of this flow')
    .option('--trashed', 'only jobs that went to the trash')
    .option('--json', 'print each job as a JSON object on a line of its own')
    .addHelpText('after', '\nExample:\n  $ jobboard history --flow hello --limit 1000')
    .action(run(history))
}

async function history(options: HistoryCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const { flow, trashed = false, limit } = options
  const redaction = new Redactor(redactedKeys(options, context))
  const isAsked = (job: EndedJob) =>
    (flow === undefined || job.flow === flow) && (!trashed || job.outcome === 'TRASHED')
  const jobs = (await board.history(definedOnly({ limit })))
    .filter(isAsked)
    .map((job) => (job.reason === undefined ? job : { ...job, reason: redaction.text(job.reason) }))
  if (options.json) await printJson(context, jobs)
  else if (jobs.length === 0) await printLines(context, [`no jobs in the history of ${board.uri}`])
  else await printLines(context, await render(context, ({ historyTable }, screen) => historyTable(jobs, screen)))
  return DONE
}
