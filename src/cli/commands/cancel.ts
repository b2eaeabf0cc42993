/** The command `jobboard cancel`: requests the cancellation of jobs. */
import type { Command } from 'commander'
import type { Job, JobBoard, JobsOptions } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { findJobs, isExact } from '../find.ts'
import { eachAsJson, type FlagTable, type OptionsOf, once, withFlags } from '../input/flags.ts'
import { confirm, forEachWithProgress } from '../input/for-each.ts'
import { definedOnly } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { escapeUnprintable, toPrintableJson } from '../output/render/text.ts'

const FLAGS = {
  '--name <name>': 'all jobs of this name',
  '--queue <name>': ['all jobs of this queue', once()],
  '--all': 'all jobs on the board',
  '--yes': 'do not ask; needed with --name, --queue and --all where there is no terminal',
  '--reason <text>': 'reason for people, kept in the trash (default: cancelled)',
  '--json': eachAsJson('job'),
} satisfies FlagTable

type CancelCommandOptions = OptionsOf<typeof FLAGS>

export function defineCancel(program: Command, run: RunAction): void {
  withFlags(program.command('cancel'), FLAGS)
    .summary('cancel jobs')
    .description(
      'Cancels jobs. A job that never ran is trashed at once. A running job is notified, reverted, and then trashed. ' +
        'A waiting job that is half done is reverted by the conductor that claims it next.',
    )
    .argument('[uuid...]', 'uuids of jobs, their first 13 characters or more, or their ends, or references')
    .addHelpText(
      'after',
      "\nExamples:\n  $ jobboard cancel 0199c0de-85f8 --reason 'posted by mistake'\n  $ jobboard cancel --name import --yes\n  $ jobboard cancel --queue bulk",
    )
    .action(run(cancel))
}

/**
 * Requests the cancellation of the named jobs.
 *
 * @throws InvalidArgument if no job is selected, or if many are selected without `--yes` and there is no terminal to
 * ask on
 * @throws NotFound if a named job has left the board
 */
async function cancel(options: CancelCommandOptions, context: CliContext, { args: uuids }: Command): Promise<ExitCode> {
  const { name, queue, all = false, yes, reason } = options
  if ([uuids.length > 0, name !== undefined || queue !== undefined, all].filter(Boolean).length !== 1)
    throw new InvalidArgument('select jobs by uuids, by --name NAME or --queue NAME, or by --all: exactly one of them')
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const byUuid = uuids.length > 0
  const jobs = byUuid ? await findJobs(board, uuids, 'change') : await selectJobs(board, definedOnly({ name, queue }))
  if (jobs.length === 0) {
    context.stderr.write(`no matching jobs on ${board.uri}\n`)
    return DONE
  }
  if (!byUuid && !(await confirm(toQuestion(jobs, board), { yes, offTerminal: 'refuse' }, context))) return DONE
  const exact = uuids.every(isExact)
  if (byUuid && !exact && !(await confirm(`cancel ${jobs.join(', ')}?`, { yes, offTerminal: 'proceed' }, context)))
    return DONE
  const work = async (job: Job) => {
    await board.cancel(job, reason === undefined ? {} : { reason })
    const { uuid, state } = job
    if (options.json) return toPrintableJson({ uuid, name: job.name, state })
    return escapeUnprintable(state === 'TRASHED' ? `${job} is in the trash` : `cancellation of ${job} requested`)
  }
  return await forEachWithProgress(jobs, { what: 'cancelling', done: 'cancellation requested:', work }, context)
}

async function selectJobs(board: JobBoard, filter: Pick<JobsOptions, 'name' | 'queue'>): Promise<Job[]> {
  const jobs: Job[] = []
  for await (const job of board.jobs({ ensureFresh: true, ...filter })) jobs.push(job)
  return jobs
}

function toQuestion(jobs: readonly Job[], { uri }: JobBoard): string {
  const running = jobs.filter(({ state }) => state === 'CLAIMED').length
  const many = jobs.length === 1 ? 'cancel 1 job' : `cancel ${jobs.length} jobs`
  return `${many} on ${uri}, ${running} of them running?`
}
