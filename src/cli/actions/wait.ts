/** The work of `jobboard wait`: waits until a job has left the board. */
import type { JobBoard } from '../../board/index.ts'
import { NotFound } from '../../core/errors.ts'
import type { FlowState } from '../../core/states.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { parseDuration, type SharedOptions } from '../input/shared-options.ts'
import type { UnlimitedWait } from '../input/unlimited.ts'
import { readTrash, wholeUuid } from '../locate.ts'
import { type Logbooks, openLogbooks, openNamedBoard } from '../opening.ts'
import { follow, logbooksToFollow } from '../output/follow.ts'
import { printJson, printLines } from '../output/output.ts'

export interface WaitCommandOptions extends SharedOptions, UnlimitedWait {
  readonly within?: string
  readonly json?: boolean
}

interface EndedJob {
  readonly uuid: string
  readonly name: string
  readonly state: 'COMPLETE' | 'TRASHED'
}

/** Waits for a job. @throws NotFound if the job is unknown, Timeout if it is still on the board at the end */
export async function wait(named: string, options: WaitCommandOptions, context: CliContext): Promise<ExitCode> {
  const limits = options.within === undefined ? {} : { timeout: parseDuration(options.within, '--within') }
  await using opened = await openNamedBoard(options, context, { create: false })
  await using logbooks = await logbooksToFollow(options, context)
  const { board } = opened
  const endless = { endless: options.endless ?? false }
  const uuid = await wholeUuid(named, { board, logbooks })
  const onBoard = async (): Promise<EndedJob | undefined> => {
    const job = await board.find(uuid).catch(ignoreNotFound)
    return job && { uuid, name: job.name, state: await follow(job, { logbooks, ...limits, ...endless }, context) }
  }
  // The job may have been restored between the two reads.
  const ended = (await onBoard()) ?? (await findEnded(uuid, { board, logbooks })) ?? (await onBoard())
  if (!ended) throw await notFoundError(uuid, { board, logbooks, options, context })
  if (options.json) await printJson(context, [ended])
  else await printLines(context, [ended.state])
  return ended.state === 'COMPLETE' ? DONE : FAILED
}

interface WaitSources {
  readonly board: JobBoard
  readonly logbooks: Logbooks | undefined
}

/**
 * Returns how a job that has left the board ended, from its logbook or the trash. A job that is done may have been
 * trashed before and posted again, and its old entry may still be in the trash. For an entry in the trash, a logbook
 * that cannot be read is no error.
 */
async function findEnded(uuid: string, { board, logbooks }: WaitSources): Promise<EndedJob | undefined> {
  const trashed = (await readTrash(board, (job) => job.uuid === uuid)).at(-1)
  const flow = await readFlow(uuid, trashed?.book.uuid ?? uuid, logbooks).catch((error: unknown) => {
    if (!trashed) throw error
  })
  if (flow?.state === 'SUCCESS') return { uuid, name: flow.name, state: 'COMPLETE' }
  return trashed && { uuid, name: trashed.name, state: 'TRASHED' }
}

async function readFlow(
  uuid: string,
  book: string,
  logbooks: Logbooks | undefined,
): Promise<{ readonly name: string; readonly state: FlowState } | undefined> {
  const found = await logbooks?.persistence.getBook(book).catch(ignoreNotFound)
  const flow = found?.flows.find((flow) => flow.uuid === uuid)
  return found && flow && { name: found.name, state: flow.state }
}

/**
 * Returns the error for an unknown job.
 *
 * @throws the error of named logbooks that cannot be opened: they could have the answer
 */
async function notFoundError(
  uuid: string,
  { board, logbooks, options, context }: WaitSources & { options: SharedOptions; context: CliContext },
): Promise<NotFound> {
  const looked = `there is no job ${uuid} on ${board.uri}, nor in its trash`
  if (!logbooks) {
    const named = await openLogbooks(options, context, { missing: 'throw' }).catch(ignoreNotFound)
    await named?.[Symbol.asyncDispose]()
    return new NotFound(`${looked}; its logbook shows whether it is done: add --persistence URI`)
  }
  const flow = await readFlow(uuid, uuid, logbooks)
  return new NotFound(
    flow
      ? `${looked}; its logbook says ${flow.state}: jobboard track ${uuid} shows more`
      : `${looked}, and ${logbooks.uri} has no logbook of it`,
  )
}

function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof NotFound)) throw error
}
