/** What `jobboard wait` does: until a job has left the board. */
import type { JobBoard } from '../../board/index.ts'
import { NotFound } from '../../core/errors.ts'
import type { FlowState } from '../../core/states.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { trashOf, wholeUuid } from '../finding.ts'
import { follow, logbooksToFollow } from '../following.ts'
import { type Logbooks, openTheBoard } from '../opening.ts'
import { duration, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'

export interface WaitCommandOptions extends SharedOptions {
  readonly within?: string
  readonly json?: boolean
}

interface Ended {
  readonly uuid: string
  readonly name: string
  readonly state: 'COMPLETE' | 'TRASHED'
}

/** @throws NotFound when nothing is known of it, Timeout when it is on the board still */
export async function wait(named: string, options: WaitCommandOptions, context: CliContext): Promise<ExitCode> {
  const limits = options.within === undefined ? {} : { timeout: duration(options.within, '--within') }
  await using opened = await openTheBoard(options, context, { create: false })
  await using logbooks = await logbooksToFollow(options, context)
  const { board } = opened
  const uuid = await wholeUuid(named, { board, logbooks })
  const onBoard = async (): Promise<Ended | undefined> => {
    const job = await board.find(uuid).catch(unlessMissing)
    return job && { uuid, name: job.name, state: await follow(job, { logbooks, ...limits }, context) }
  }
  const ended = (await onBoard()) ?? (await endedBefore(uuid, { board, logbooks, onBoard }))
  if (options.json) await printJson(context, [ended])
  else await printLines(context, [ended.state])
  return ended.state === 'COMPLETE' ? DONE : FAILED
}

interface Places {
  readonly board: JobBoard
  readonly logbooks: Logbooks | undefined
  /** Looks there once more. */
  readonly onBoard: () => Promise<Ended | undefined>
}

/**
 * How a job ended that is not on the board any more, from where that is kept. What is done may have been in the trash before,
 * and still lie there when it was posted again; of what lies there a logbook that cannot be read is no reason to know nothing.
 */
async function endedBefore(uuid: string, { board, logbooks, onBoard }: Places): Promise<Ended> {
  const trashed = (await trashOf(board)).findLast((job) => job.uuid === uuid)
  const book = await logbooks?.persistence.getBook(trashed?.book.uuid ?? uuid).catch((error: unknown) => {
    if (!trashed) return unlessMissing(error)
  })
  const flow = book?.flows.find((flow) => flow.uuid === uuid)
  if (book && flow?.state === 'SUCCESS') return { uuid, name: book.name, state: 'COMPLETE' }
  if (trashed) return { uuid, name: trashed.name, state: 'TRASHED' }
  // It may have been restored between the two looks.
  return (await onBoard()) ?? unknown(uuid, flow, { board, logbooks })
}

function unknown(
  uuid: string,
  flow: { readonly state: FlowState } | undefined,
  { board, logbooks }: Pick<Places, 'board' | 'logbooks'>,
): never {
  const looked = `there is no job ${uuid} on ${board.uri}, nor in its trash`
  if (!logbooks) throw new NotFound(`${looked}; whether it is done its logbook knows: add --persistence URI`)
  throw new NotFound(
    flow
      ? `${looked}; its logbook says ${flow.state}: jobboard track ${uuid} tells more`
      : `${looked}, and ${logbooks.uri} has no logbook of it`,
  )
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof NotFound)) throw error
}
