/** The command `jobboard track`: shows the status of a job by its uuid. */
import type { Command } from 'commander'
import type { Tracked } from '../../conductor/index.ts'
import { Redactor } from '../../core/redaction.ts'
import { trackedView } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { assertUuidPart, unknownJobError, wholeUuid } from '../find.ts'
import { type OptionsOf, shared, withFlags } from '../input/flags.ts'
import { definedOnly, redactedKeys } from '../input/shared-options.ts'
import { openNamedBoard, requireLogbooks } from '../opening.ts'
import { printDrawn, printJson } from '../output/output.ts'

const FLAGS = shared('--book <uuid>', '--json')

type TrackCommandOptions = OptionsOf<typeof FLAGS>

export function defineTrack(program: Command, run: RunAction): void {
  withFlags(program.command('track'), FLAGS)
    .summary('show the status of a job, and its results')
    .description(
      'Shows the status of a job from its board and its logbook: what it waits for, where it runs and since when, its ' +
        'results, its failure, or why it was trashed. Results are printed: --redact hides the values of the keys that it ' +
        'names.',
    )
    .argument('<uuid>', 'uuid of the job, its beginning or its end, or its reference')
    .addHelpText(
      'after',
      '\nExample:\n  $ jobboard track 0199c0de-0000-7000-8000-000000000001 --persistence directory:./logbooks --redact token',
    )
    .action(run(track))
}

/** Prints the status of a job. @throws NotFound if neither board nor logbooks know it */
async function track(
  options: TrackCommandOptions,
  context: CliContext,
  { args: [uuidPart = ''] }: Command,
): Promise<ExitCode> {
  assertUuidPart(uuidPart, 'look')
  const redaction = new Redactor(redactedKeys(options, context))
  await using logbooks = await requireLogbooks(options, context)
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const { persistence } = logbooks
  const { uuid, reference } = await wholeUuid(uuidPart, { board, logbooks })
  const tracked = trackedView(
    await trackJob(reference, { board, persistence, ...definedOnly({ book: options.book }) }),
    redaction,
  )
  if (options.json) await printJson(context, [tracked])
  if (tracked.status === 'unknown') throw await unknownJobError(uuid, { board, logbooks, book: options.book })
  if (options.json) return DONE
  const waitsForTurn = tracked.status === 'waiting' && !tracked.waitingFor
  const hasNoConductors = waitsForTurn && (await board.entities('conductor')).length === 0
  await printDrawn(context, ({ trackedLines }, screen) => trackedLines(tracked, { screen, hasNoConductors }))
  return DONE
}

/** Calls `track`. A separate function: TypeScript 6.0 does not rewrite the `.ts` of an import() beside an `await using`. */
async function trackJob(
  reference: string,
  options: Parameters<typeof import('../../conductor/index.ts')['track']>[1],
): Promise<Tracked> {
  return (await import('../../conductor/index.ts')).track(reference, options)
}
