/** The work of `jobboard track`: shows the status of a job by its uuid. */
import type { Tracked } from '../../conductor/index.ts'
import { NotFound } from '../../core/errors.ts'
import { Redactor } from '../../core/redaction.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { redactedKeys, type SharedOptions } from '../input/shared-options.ts'
import { assertUuidPart, wholeUuid } from '../locate.ts'
import { openNamedBoard, requireLogbooks } from '../opening.ts'
import { printJson, printLines } from '../output/output.ts'
import { toScreen } from '../output/render/screen.ts'
import { trackedLines } from '../output/render/tracked.ts'
import { trackedView } from '../views/tracked-view.ts'

export interface TrackCommandOptions extends SharedOptions {
  readonly json?: boolean
  readonly book?: string
}

/** Prints the status of a job. @throws NotFound if neither board nor logbooks know it */
export async function track(named: string, options: TrackCommandOptions, context: CliContext): Promise<ExitCode> {
  assertUuidPart(named, 'look')
  const redaction = new Redactor(redactedKeys(options, context))
  await using logbooks = await requireLogbooks(options, context)
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const { persistence } = logbooks
  const uuid = await wholeUuid(named, { board, logbooks })
  const book = options.book === undefined ? {} : { book: options.book }
  const tracked = trackedView(await trackJob(uuid, { board, persistence, ...book }), redaction)
  if (options.json) await printJson(context, [tracked])
  if (tracked.status === 'unknown') {
    const looked = `job ${uuid} is not on ${board.uri} nor in its trash, and ${logbooks.uri} has no logbook of it`
    throw new NotFound(`${looked}: it was never posted, or it ended and its logbook was removed`)
  }
  if (options.json) return DONE
  const turn = tracked.status === 'waiting' && !tracked.waitingFor
  const deserted = turn && (await board.entities('conductor')).length === 0
  await printLines(context, trackedLines(tracked, { screen: toScreen(context), hasNoConductors: deserted }))
  return DONE
}

/** Tracks in a function of its own: TypeScript 6.0 leaves the `.ts` of an import() as it is beside an `await using`. */
async function trackJob(
  uuid: string,
  options: Parameters<typeof import('../../conductor/index.ts')['track']>[1],
): Promise<Tracked> {
  return (await import('../../conductor/index.ts')).track(uuid, options)
}
