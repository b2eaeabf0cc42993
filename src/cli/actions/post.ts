/** What `jobboard post` does: one job onto the board. */
import { validate } from 'uuid'
import type { JobBoard, PostOptions, Priority, Size } from '../../board/index.ts'
import { InvalidArgument, MissingDependencies } from '../../core/errors.ts'
import { type AnyFlow, missingInputs } from '../../flow/index.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { chooseFlow, loadFlows } from '../flows-module.ts'
import { openTheBoard } from '../opening.ts'
import { jsonObject, type SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { postedView } from '../views.ts'

export interface PostCommandOptions extends SharedOptions {
  readonly flows?: string
  readonly store?: string
  readonly name?: string
  readonly priority?: Priority
  readonly size?: Size
  readonly maxAttempts?: number
  readonly uuid?: string
  readonly json?: boolean
}

export async function post(name: string, options: PostCommandOptions, context: CliContext): Promise<ExitCode> {
  const text = options.store === '-' ? await context.readStdin() : options.store
  const store = jsonObject(text ?? '{}', '--store')
  if (options.uuid !== undefined && !validate(options.uuid))
    throw new InvalidArgument(`--uuid: ${options.uuid} is no uuid`)
  const flow = options.flows === undefined ? name : await flowOf(name, options.flows, context)
  if (typeof flow !== 'string') checkStore(flow, store)
  await using opened = await openTheBoard(options, context)
  const job = await postOn(opened.board, { flow, store, options: postOptions(options) })
  if (options.json) await printJson(context, [postedView(job)])
  else await printLines(context, [job.uuid])
  return DONE
}

async function flowOf(name: string, module: string, context: CliContext): Promise<AnyFlow> {
  return chooseFlow(name, await loadFlows(module, context), module)
}

/** The board would say so too, but only once it can be reached. */
function checkStore(flow: AnyFlow, store: object): void {
  const missing = missingInputs(flow, store)
  if (missing.length === 0) return
  throw new MissingDependencies(`flow ${flow.name} requires ${missing.join(', ')}: add it to --store`)
}

function postOn(
  board: JobBoard,
  { flow, store, options }: { flow: AnyFlow | string; store: object; options: PostOptions },
): ReturnType<JobBoard['post']> {
  return typeof flow === 'string' ? board.post(flow, store, options) : board.post(flow, store, options)
}

function postOptions({ name, priority, size, maxAttempts, uuid }: PostCommandOptions): PostOptions {
  return {
    ...(name === undefined ? {} : { name }),
    ...(priority === undefined ? {} : { priority }),
    ...(size === undefined ? {} : { size }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(uuid === undefined ? {} : { uuid }),
  }
}
