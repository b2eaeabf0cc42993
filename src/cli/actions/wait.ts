/** What `jobboard wait` does: until a job has left the board. */
import type { JobBoard } from '../../board/index.ts'
import { NotFound } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'
import type { EndlessFlag } from '../endless.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { among, findBook, findJob, trashOf } from '../finding.ts'
import { follow, logbooksToFollow } from '../following.ts'
import { type Logbooks, openTheBoard } from '../opening.ts'
import { duration, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'

export interface WaitCommandOptions extends SharedOptions, EndlessFlag {
  readonly within?: string
  readonly json?: boolean
}

interface Ended {
  readonly uuid: string
  readonly name: string
  readonly state: 'COMPLETE' | 'TRASHED'
}

/** @throws NotFound when nothing is known of it, Timeout when it is on the board still */
export async function wait(uuid: string, options: WaitCommandOptions, context: CliContext): Promise<ExitCode> {
  const limits = options.within === undefined ? {} : { timeout: duration(options.within, '--within') }
  await using opened = await openTheBoard(options, context, { create: false })
  await using logbooks = await logbooksToFollow(options, context)
  const { board } = opened
  const job = await findJob(board, uuid).catch(unlessMissing)
  const state = job && (await follow(job, { logbooks, ...limits, endless: options.endless ?? false }, context))
  const ended = job && state ? { uuid: job.uuid, name: job.name, state } : await endedBefore(uuid, { board, logbooks })
  if (options.json) await printJson(context, [ended])
  else await printLines(context, [ended.state])
  return ended.state === 'COMPLETE' ? DONE : FAILED
}

/** How a job ended that is not on the board any more, from where that is kept. */
async function endedBefore(
  uuid: string,
  { board, logbooks }: { readonly board: JobBoard; readonly logbooks: Logbooks | undefined },
): Promise<Ended> {
  const trashed = among(await trashOf(board), uuid).at(-1)
  if (trashed) return { uuid: trashed.uuid, name: trashed.name, state: 'TRASHED' }
  const looked = `there is no job ${uuid} on ${board.uri}, nor in its trash`
  if (!logbooks) throw new NotFound(`${looked}; whether it is done its logbook knows: add --persistence URI`)
  const book = await findBook(logbooks, uuid).catch(unlessMissing)
  const flow = book && (await logbooks.persistence.getBook(book.uuid)).flows.find((flow) => flow.uuid === book.uuid)
  if (book && flow?.state === 'SUCCESS') return { uuid: book.uuid, name: book.name, state: 'COMPLETE' }
  throw new NotFound(
    flow
      ? `${looked}; its logbook says ${flow.state}: jobboard track ${flow.uuid} tells more`
      : `${looked}, and ${logbooks.uri} has no logbook of it`,
  )
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof NotFound)) throw error
}
