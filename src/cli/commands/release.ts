/** The command `jobboard release`: takes jobs away from their owners. */
import type { Command } from 'commander'
import type { Job } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { findJobs, isExact } from '../find.ts'
import { eachAsJson, type FlagTable, type OptionsOf, shared, withFlags } from '../input/flags.ts'
import { confirm, forEachWithProgress } from '../input/for-each.ts'
import { openNamedBoard } from '../opening.ts'
import { escapeUnprintable, toPrintableJson } from '../output/render/text.ts'

const FLAGS = {
  '--run <number>': 'only if this run has the job, as jobboard show prints it',
  '--reason <text>': 'reason for people, kept with the attempt',
  ...shared('--yes'),
  '--json': eachAsJson('job'),
} satisfies FlagTable

type ReleaseCommandOptions = OptionsOf<typeof FLAGS>

export function defineRelease(program: Command, run: RunAction): void {
  withFlags(program.command('release'), FLAGS)
    .summary('take stuck jobs away from their owners')
    .description(
      'Takes jobs away from owners that live and make no progress. A job is unclaimed again, with its attempt uncounted, and any conductor can ' +
        'claim it. Its run is notified that its claim is lost. To end a job instead, cancel it.',
    )
    .argument('<uuid...>', 'uuids of jobs, their first 13 characters or more, or their ends, or references')
    .addHelpText('after', "\nExample:\n  $ jobboard release 0199c0de-85f8 --reason 'hangs since noon'")
    .action(run(release))
}

/**
 * Releases the claims of the named jobs.
 *
 * @throws InvalidArgument for a run that is not a number, or with several jobs
 * @throws NotFound if a named job has left the board
 */
async function release(
  options: ReleaseCommandOptions,
  context: CliContext,
  { args: uuids }: Command,
): Promise<ExitCode> {
  const { reason, yes } = options
  const asked = options.run === undefined ? {} : { run: toRun(options.run, uuids) }
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const jobs = await findJobs(board, uuids, 'change')
  const question = `release ${jobs.join(', ')}?`
  if (!uuids.every(isExact) && !(await confirm(question, { yes, offTerminal: 'proceed' }, context))) return DONE
  const work = async (job: Job) => {
    const { owner, run, trashed } = await board.release(job, { ...asked, ...(reason === undefined ? {} : { reason }) })
    const { uuid, name } = job
    if (options.json)
      return toPrintableJson({ uuid, name, state: trashed ? 'TRASHED' : 'UNCLAIMED', released: { owner, run } })
    const then = trashed ? '; it is in the trash, because it must not survive its owner' : ''
    return escapeUnprintable(`${job} was released: run ${run} of ${owner} has lost it${then}`)
  }
  return await forEachWithProgress(jobs, { what: 'releasing', done: 'released', work }, context)
}

function toRun(text: string, uuids: readonly string[]): number {
  if (uuids.length > 1) throw new InvalidArgument('--run is the number of one run: name one job')
  const run = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(run) && run >= 1) return run
  throw new InvalidArgument(`--run must be the number of a run, from 1, got ${text}`)
}
