/** The work of `jobboard post`: posts one job. */
import { validate } from 'uuid'
import type { Job, JobBoard, PostOptions, Priority, Size } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { flowNamed } from '../input/flows-module.ts'
import { type ResourceFlags, toResourceOptions } from '../input/requested-resources.ts'
import { jsonObject, parseDuration, type SharedOptions } from '../input/shared-options.ts'
import { checkStore, readStoreText } from '../input/store-option.ts'
import type { UnlimitedWait } from '../input/unlimited.ts'
import { openNamedBoard } from '../opening.ts'
import { follow, logbooksToFollow } from '../output/follow.ts'
import { printJson, printLines } from '../output/output.ts'
import { escapeUnprintable } from '../output/render/text.ts'
import { postedView } from '../views/views.ts'

export interface PostCommandOptions extends SharedOptions, ResourceFlags, UnlimitedWait {
  readonly flows?: string
  readonly store?: string
  readonly name?: string
  readonly priority?: Priority
  readonly size?: Size
  readonly maxAttempts?: number
  readonly key?: string
  readonly delay?: string
  readonly deadline?: string
  readonly uuid?: string
  readonly wait?: boolean
  readonly within?: string
  readonly json?: boolean
}

export async function post(name: string, options: PostCommandOptions, context: CliContext): Promise<ExitCode> {
  const store = jsonObject(await readStoreText(options, context), '--store', { fromStdin: options.store === '-' })
  if (options.uuid !== undefined && !validate(options.uuid))
    throw new InvalidArgument(`--uuid must be a UUID, got '${options.uuid}'`)
  const flow = options.flows === undefined ? name : await flowNamed(name, options.flows, context)
  if (typeof flow !== 'string') checkStore(flow, store)
  const limits = options.within === undefined ? {} : { timeout: parseDuration(options.within, '--within') }
  const posting = postOptions(options)
  await using opened = await openNamedBoard(options, context)
  await using logbooks = options.wait ? await logbooksToFollow(options, context) : undefined
  const job = await postToBoard(opened.board, { flow, store, options: posting })
  if (!job.created)
    context.stderr.write(`a job with this key is on the board already: ${escapeUnprintable(String(job))}\n`)
  if (!options.json) await printLines(context, [job.uuid])
  else if (!options.wait) await printJson(context, [postedView(job)])
  await warnOfUnknownFlow(job, opened.board, context)
  if (!options.wait) return DONE
  const state = await follow(job, { logbooks, ...limits, endless: options.endless ?? false }, context)
  if (options.json) await printJson(context, [{ ...postedView(job), state }])
  else await printLines(context, [state])
  return state === 'COMPLETE' ? DONE : FAILED
}

/** Warns of a flow that no conductor knows: the job of a misspelt name is posted like any other, and is never run. */
async function warnOfUnknownFlow(job: Job, board: JobBoard, { stderr }: CliContext): Promise<void> {
  const held = await board.waitingFor(job).catch(() => undefined)
  if (held?.kind === 'flow') stderr.write(`${escapeUnprintable(`${held.text}; it waits for one that does`)}\n`)
}

function postToBoard(
  board: JobBoard,
  { flow, store, options }: { flow: AnyFlow | string; store: object; options: PostOptions },
): ReturnType<JobBoard['post']> {
  return typeof flow === 'string' ? board.post(flow, store, options) : board.post(flow, store, options)
}

function postOptions(options: PostCommandOptions): PostOptions {
  const { name, priority, size, maxAttempts, uuid, key, delay, deadline } = options
  return {
    ...toResourceOptions(options),
    ...(name === undefined ? {} : { name }),
    ...(priority === undefined ? {} : { priority }),
    ...(size === undefined ? {} : { size }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(uuid === undefined ? {} : { uuid }),
    ...(key === undefined ? {} : { key }),
    ...(delay === undefined ? {} : { delay: parseDuration(delay, '--delay') }),
    ...(deadline === undefined ? {} : { deadline: parseDuration(deadline, '--deadline') }),
  }
}
