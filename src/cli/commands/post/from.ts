/** `jobboard post --from FILE`: posts a job for each line of a file, and reports the lines that were not posted. */
import type { JobBoard, PostedJob, PostItem, PostManyResult, PostOptions } from '../../../board/index.ts'
import {
  AccessDenied,
  asError,
  InvalidArgument,
  InvalidState,
  JobboardError,
  NotConnected,
  NotFound,
  OutcomeUnknown,
} from '../../../core/errors.ts'
import type { AnyFlow } from '../../../flow/index.ts'
import { postView } from '../../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, INTERRUPTED } from '../../context.ts'
import { type JsonLine, openLines, readJsonLines } from '../../input/json-lines.ts'
import { oneLine, printLines } from '../../output/output.ts'
import { openRejects } from '../../output/rejects.ts'
import { toPrintableJson } from '../../output/render/text.ts'

export interface PostFromOptions {
  readonly from: string
  /** The number of the first line that is posted. */
  readonly fromLine: number
  /** The file to which the lines that were not posted are written. */
  readonly rejects?: string
  /** Whether lines whose uuid is on the board already are left out. */
  readonly resume: boolean
  readonly json: boolean
  /** The flow of lines that name none. */
  readonly flow: string | undefined
  /** Returns the flow with its inputs, where a module has it: then the store is checked here. */
  readonly toFlow: (name: string) => AnyFlow | string
  /** Returns the options with the defaults that the config file has for a flow whose code is not known. */
  readonly withDefaults: (item: PostOptions, flow: string) => PostOptions
  /** The options of lines that have none of their own. */
  readonly defaults: PostOptions
}

/** The period between two lines about the progress, in milliseconds. */
const PROGRESS_PERIOD_MS = 10_000
/** The maximum number of lines that are reported for the same error; further lines are only counted. */
const MAX_SAME_REFUSALS = 5
/** The maximum number of different errors that are counted separately. */
const MAX_REFUSALS = 100

interface Counts {
  posted: number
  replaced: number
  existed: number
  /** Lines whose job has left the board, and whose key is taken by its window. */
  inWindow: number
  refused: number
}

/** Posts the lines. The exit code is 1 where a line was not posted. */
export async function postFrom(board: JobBoard, options: PostFromOptions, context: CliContext): Promise<ExitCode> {
  const outage = new AbortController()
  // Lines that cannot be read, or are refused from then on, would be lost.
  const onError = (error: Error) => outage.abort(error)
  const source = await openLines(options.from, context, { onError })
  using interruption = context.listenForInterruption()
  await using rejects = await openRejects(options.rejects, {
    ...{ from: options.from, cwd: context.cwd, isContinued: options.fromLine > 1, onError },
  })
  const signal = AbortSignal.any([interruption.signal, outage.signal, context.stdout.failed])
  let next = options.fromLine
  let last = 0
  const counts: Counts = { posted: 0, replaced: 0, existed: 0, inWindow: 0, refused: 0 }
  const items: JsonLine[] = []
  /** The number of refused lines for each message, without uuids. */
  const refusals = new Map<string, number>()
  const refuse = (line: JsonLine, error: unknown) => {
    counts.refused += 1
    // A line that was too long was not kept.
    if (line.bytes.length > 0) rejects?.add(line.bytes)
    const message = oneLine(error)
    const kind = message.replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/gi, '…')
    const known = refusals.get(kind) ?? 0
    if (known > 0 || refusals.size < MAX_REFUSALS) refusals.set(kind, known + 1)
    if (known < MAX_SAME_REFUSALS) context.stderr.write(`line ${line.number}: ${message}\n`)
    else if (known === MAX_SAME_REFUSALS) context.stderr.write('further lines with this error are only counted\n')
  }
  let shownAt = performance.now()
  const onResult = (result: PostManyResult, index: number) => {
    const line = items[index]
    if (!line) return
    delete items[index]
    if ('error' in result) {
      refuse(line, result.error)
      // The lines after it would be refused, too: they are left for the next call.
      if (isOutage(result.error) || isClosedBatch(result.error, line, options)) outage.abort(result.error)
    } else {
      const { job } = result
      counts[toCount(job)] += 1
      if (options.json)
        context.stdout.write(`${toPrintableJson({ line: line.number, uuid: job.uuid, ...postView(job) })}\n`)
    }
    if (performance.now() - shownAt < PROGRESS_PERIOD_MS) return
    shownAt = performance.now()
    context.stderr.write(`${counts.posted} posted, at line ${line.number}\n`)
  }
  const lookUp = (uuid: unknown) =>
    isOnBoard(board, uuid).catch((error: unknown) => {
      if (isOutage(asError(error))) outage.abort(error)
      throw error
    })
  async function* toItems(): AsyncGenerator<PostItem<object>, void, undefined> {
    for await (const line of readJsonLines(source)) {
      signal.throwIfAborted()
      last = line.number
      if (line.number < options.fromLine) continue
      const isThere = options.resume && 'value' in line && (await lookUp(line.value['uuid']))
      // Only a line that is answered, or begun, counts as one: after an abort the call goes on with the others.
      signal.throwIfAborted()
      next = line.number + 1
      if ('error' in line) {
        refuse(line, line.error)
        continue
      }
      if (isThere) {
        counts.existed += 1
        continue
      }
      let item: PostItem<object>
      try {
        item = toItem(line.value, options)
      } catch (error) {
        refuse(line, error)
        continue
      }
      items.push(line)
      yield item
    }
  }
  let isComplete = true
  try {
    await board.postMany(toItems(), { onResult, signal })
  } catch (error) {
    if (!signal.aborted) throw error
    isComplete = false
    const why = interruption.signal.aborted ? 'interrupted' : toReason(signal.reason)
    const message = `${why}: all lines before ${next} were answered; go on with --from-line ${next}`
    // A reader of the output that needs no more of it is a success elsewhere; here, lines are not posted.
    if (context.stdout.failed.aborted) throw new JobboardError(message)
    context.stderr.write(`${message}\n`)
  }
  // The line after the last one is where a call goes on that was interrupted at the end.
  const isBehindEnd = isComplete && options.fromLine > last + 1
  if (isBehindEnd) context.stderr.write(`--from-line ${options.fromLine} is behind the end: there are ${last} lines\n`)
  await rejects?.end()
  await printCounts(counts, options, context)
  if (interruption.signal.aborted) return INTERRUPTED
  return isComplete && counts.refused === 0 && !isBehindEnd ? DONE : FAILED
}

async function printCounts(counts: Counts, { json }: PostFromOptions, context: CliContext): Promise<void> {
  if (json) await context.stdout.flush()
  else await printLines(context, [describeCounts(counts)])
}

/** Returns why no line is posted any more. */
function toReason(error: unknown): string {
  // A batch that is sealed takes none of the lines.
  if (error instanceof InvalidArgument || error instanceof InvalidState) return oneLine(error)
  return isOutage(asError(error)) ? 'the board cannot be reached' : 'the output cannot be written'
}

/** Returns whether the board, and not the line, is the cause. */
function isOutage(error: Error): boolean {
  return [NotConnected, OutcomeUnknown, AccessDenied].some((kind) => error instanceof kind)
}

/**
 * Returns whether the batch of the command line is the cause. A line with other reasons for the same error is refused alone: it names a batch of its
 * own, a job in the trash after which it would be run, or a key whose job it would replace.
 */
function isClosedBatch(error: Error, line: JsonLine, { defaults }: PostFromOptions): boolean {
  if (!(error instanceof InvalidState) || defaults.batch === undefined || defaults.after) return false
  const { batch, after, key } = 'value' in line ? line.value : {}
  return batch === undefined && after === undefined && typeof key !== 'object'
}

function toItem(
  value: Readonly<Record<string, unknown>>,
  { flow, defaults, toFlow, withDefaults }: PostFromOptions,
): PostItem<object> {
  const { flow: named = flow, ...given } = value
  if (named === undefined)
    throw new InvalidArgument(
      'it names no flow: add "flow" to it, or give one for all lines: jobboard post FLOW --from FILE',
    )
  // The board checks all fields, and names a wrong one: what a line contains is not known here.
  const item = { ...defaults, ...given } as PostOptions
  const known = typeof named === 'string' ? toFlow(named) : (named as string)
  const options = typeof known === 'string' ? withDefaults(item, known) : item
  return { ...options, flow: known } as PostItem<object>
}

async function isOnBoard(board: JobBoard, uuid: unknown): Promise<boolean> {
  if (typeof uuid !== 'string') return false
  try {
    await board.find(uuid)
    return true
  } catch (error) {
    if (error instanceof NotFound || error instanceof InvalidArgument) return false
    throw error
  }
}

/** Returns what a post counts as. */
function toCount({ created, because, replaced }: PostedJob): keyof Counts {
  if (created) return 'posted'
  if (replaced) return 'replaced'
  return because === 'window' ? 'inWindow' : 'existed'
}

function describeCounts({ posted, replaced, existed, inWindow, refused }: Counts): string {
  const parts = [`${posted} posted`]
  if (replaced > 0) parts.push(`${replaced} replaced`)
  if (existed > 0) parts.push(`${existed} on the board already`)
  if (inWindow > 0) parts.push(`${inWindow} in the window of their key`)
  if (refused > 0) parts.push(`${refused} not posted`)
  return parts.join(', ')
}
