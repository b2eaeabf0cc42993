/** The command `jobboard wait`: waits until a job has left the board. */
import type { Command } from 'commander'
import type { Located } from '../../conductor/internal.ts'
import { NotFound } from '../../core/errors.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../context.ts'
import { locateJob, type SearchedPlaces, unknownJobError, wholeUuid } from '../find.ts'
import { type OptionsOf, shared, withFlags } from '../input/flags.ts'
import { parseDuration, redactedKeys, type SharedOptions, toUnlimitedWait } from '../input/shared-options.ts'
import { openLogbooks, openNamedBoard } from '../opening.ts'
import { follow, logbooksToFollow } from '../output/follow.ts'
import { printJson, printLines } from '../output/output.ts'

const FLAGS = shared('--within <duration>', '--json')

type WaitCommandOptions = OptionsOf<typeof FLAGS>

export function defineWait(program: Command, run: RunAction): void {
  withFlags(program.command('wait'), FLAGS)
    .summary('wait until a job is done, or in the trash')
    .description(
      'Waits until a job has left the board and prints how: COMPLETE, or TRASHED. The exit code is 0 for COMPLETE, and 1 ' +
        'for TRASHED and for a job that is still on the board when --within is over. For a job that left the board before, ' +
        'the trash and the logbook are read. If logbooks are named, the progress is printed on standard error.',
    )
    .argument('<uuid>', 'uuid of the job, its beginning or its end, or its reference')
    .addHelpText('after', '\nExample:\n  $ jobboard wait 0199c0de --within 10m')
    .action(run(wait))
}

/** Waits for a job. @throws NotFound if the job is unknown, Timeout if it is still on the board at the end */
async function wait(options: WaitCommandOptions, context: CliContext, command: Command): Promise<ExitCode> {
  const limits = options.within === undefined ? {} : { timeout: parseDuration(options.within, '--within') }
  await using opened = await openNamedBoard(options, context, { create: false })
  await using logbooks = await logbooksToFollow(options, context)
  const places = { board: opened.board, logbooks }
  const { uuid, reference } = await wholeUuid(command.args[0] ?? '', places)
  const located = await locateLeniently(reference, places)
  if (!located && !logbooks) await assertNoLogbooks(options, context)
  if (!located) throw await unknownJobError(uuid, places)
  const name = nameOf(located)
  const state =
    located.place === 'board'
      ? await follow(
          located.job,
          { logbooks, ...limits, ...toUnlimitedWait(command), redact: redactedKeys(options, context) },
          context,
        )
      : await endOf(located, places)
  if (options.json) await printJson(context, [{ uuid, name, state }])
  else await printLines(context, [state])
  return state === 'COMPLETE' ? DONE : FAILED
}

/** Finds the job. For a job on the board or in the trash, logbooks that cannot be read are no error. */
async function locateLeniently(reference: string, places: SearchedPlaces): Promise<Located | undefined> {
  try {
    return await locateJob(reference, places)
  } catch (error) {
    const located = await locateJob(reference, { ...places, logbooks: undefined })
    if (located) return located
    throw error
  }
}

/** Opens named logbooks that could not be opened before. @throws the error: they could have the answer */
async function assertNoLogbooks(options: SharedOptions, context: CliContext): Promise<void> {
  const named = await openLogbooks(options, context, { missing: 'throw' }).catch((error: unknown) => {
    if (!(error instanceof NotFound)) throw error
  })
  await named?.[Symbol.asyncDispose]()
}

function nameOf(located: Located): string {
  if (located.place === 'logbook') return located.record.book.name
  return located.place === 'board' ? located.job.name : located.trashed.name
}

/** Returns how a job that has left the board ended. @throws NotFound if its logbook does not say that it is done */
async function endOf(
  located: Exclude<Located, { place: 'board' }>,
  places: SearchedPlaces,
): Promise<'COMPLETE' | 'TRASHED'> {
  if (located.place === 'trash') return 'TRASHED'
  const { uuid, state } = located.record.flow
  if (state === 'SUCCESS') return 'COMPLETE'
  throw await unknownJobError(uuid, places)
}
