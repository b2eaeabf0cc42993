/** What `jobboard demo` does: plays it, tells it as it happens, and leaves nothing behind. */
import { abortAfter, openedUnless } from '../../core/abort.ts'
import { JobboardError } from '../../core/errors.ts'
import { redactUri } from '../../core/uri.ts'
import { complain } from '../complaints.ts'
import type { CliContext } from '../context.ts'
import { clearAway, onBoard } from '../demo/clear-away.ts'
import { type DemoEvent, Timeline } from '../demo/events.ts'
import { Play } from '../demo/play.ts'
import { TAG_VARIABLE } from '../demo/script.ts'
import { openStage, type Stage } from '../demo/stage.ts'
import { type DemoSummary, summaryOf } from '../demo/summary.ts'
import { DONE, type ExitCode, FAILED, INTERRUPTED } from '../exit-codes.ts'
import { openConductorsLogbooks, openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { demoSummaryLines, eventLine } from '../render/demo.ts'
import { screenOf } from '../render/screen.ts'
import { printableJson } from '../render/text.ts'

export interface DemoCommandOptions extends SharedOptions {
  readonly json?: boolean
}

/** From the first conductor to the last job: five times as long as it takes where everything is slow. */
const LONGEST = '60s'

/** @throws InvalidArgument saying what to install, where no server can be had; what board and logbooks throw */
export async function demo(options: DemoCommandOptions, context: CliContext): Promise<ExitCode> {
  using interruption = context.interruption()
  const { failed } = context.stdout
  const signal = AbortSignal.any([interruption.signal, failed])
  const timeline = new Timeline((event) => tellEvent(event, options, context))
  try {
    await using stage = await openStage(options, context, signal)
    const summary = await played(stage, { options, context, timeline, signal })
    await tellSummary(summary, stage, { options, context })
    return summary.complete === summary.jobs ? DONE : FAILED
  } catch (error) {
    if (failed.aborted) throw failed.reason
    if (!interruption.signal.aborted) throw error
    context.stderr.write('jobboard: interrupted: what was under way is cleared away\n')
    return INTERRUPTED
  }
}

interface Playing {
  readonly options: DemoCommandOptions
  readonly context: CliContext
  readonly timeline: Timeline
  readonly signal: AbortSignal
}

async function played(stage: Stage, { options, context, timeline, signal }: Playing): Promise<DemoSummary> {
  const { board, persistence, from } = stage
  const named = { ...options, board, persistence }
  await using opened = await openedUnless(signal, openTheBoard(named, context))
  await using logbooks = await openedUnless(signal, openConductorsLogbooks(named, context))
  timeline.tell({
    ...{ event: 'board', board: opened.board.uri, persistence: redactUri(persistence) },
    ...(from === undefined ? {} : { from }),
  })
  const play = new Play({ stage, board: opened.board, timeline, env: envOf(stage, options, context), cwd: context.cwd })
  try {
    await inTime(play, signal)
  } finally {
    await play[Symbol.asyncDispose]()
    if (from === undefined)
      await clearAway(opened.board, play.jobs).catch((error) => complainOfRest(play, error, context))
  }
  return await summaryOf(play, { persistence: logbooks, took: timeline.now })
}

async function inTime(play: Play, signal: AbortSignal): Promise<void> {
  const tooLong = new AbortController()
  using _timer = abortAfter(
    tooLong,
    LONGEST,
    (time) => new JobboardError(`the demo has not come to its end in ${time}`),
  )
  await play.run(AbortSignal.any([signal, tooLong.signal]))
}

/** All that a conductor's process is told, but for its name. */
function envOf(stage: Stage, { codec }: DemoCommandOptions, { env }: CliContext): CliContext['env'] {
  return {
    ...env,
    JOBBOARD_BOARD: stage.board,
    JOBBOARD_PERSISTENCE: stage.persistence,
    JOBBOARD_CONFIG: stage.config,
    [TAG_VARIABLE]: stage.tag,
    ...(codec === undefined ? {} : { JOBBOARD_CODEC: codec }),
  }
}

function complainOfRest({ jobs }: Play, cause: unknown, context: CliContext): void {
  const left = onBoard(jobs).map(({ uuid }) => uuid)
  const message = `jobs of the demo are left on the board: ${left.join(' ')}; jobboard cancel takes them away`
  complain(new JobboardError(message, { cause }), context)
}

function tellEvent(event: DemoEvent, { json }: DemoCommandOptions, context: CliContext): void {
  const line = json ? printableJson(event) : eventLine(event, screenOf(context))
  if (line !== undefined) context.stdout.write(`${line}\n`)
}

async function tellSummary(
  summary: DemoSummary,
  { kept, from }: Stage,
  { options, context }: Pick<Playing, 'options' | 'context'>,
): Promise<void> {
  if (options.json) return printJson(context, [{ event: 'summary', ...summary }])
  const shown = kept && { board: redactUri(kept.board), persistence: redactUri(kept.persistence) }
  await printLines(
    context,
    demoSummaryLines(summary, { kept: shown, thrownAway: from !== undefined }, screenOf(context)),
  )
}
