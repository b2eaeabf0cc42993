/**
 * The work of `jobboard demo`: runs the demo, prints its events as they happen, and removes everything that it made.
 */
import { abortAfter, openOrAbort } from '../../core/async/abort.ts'
import { JobboardError } from '../../core/errors.ts'
import { redactUri } from '../../core/uri.ts'
import type { CliContext } from '../context.ts'
import { filterOnBoard, removeJobs } from '../dev/demo/clear-away.ts'
import { type DemoEvent, Timeline } from '../dev/demo/events.ts'
import { DemoScenario } from '../dev/demo/play.ts'
import { TAG_VARIABLE } from '../dev/demo/script.ts'
import { type DemoEnvironment, openDemoEnvironment } from '../dev/demo/stage.ts'
import { type DemoSummary, toSummary } from '../dev/demo/summary.ts'
import { DONE, type ExitCode, FAILED, INTERRUPTED } from '../exit-codes.ts'
import type { SharedOptions } from '../input/shared-options.ts'
import { openConductorsLogbooks, openNamedBoard } from '../opening.ts'
import { reportError } from '../output/error-report.ts'
import { printJson, printLines } from '../output/output.ts'
import { demoSummaryLines, eventLine } from '../output/render/demo.ts'
import { toScreen } from '../output/render/screen.ts'
import { toPrintableJson } from '../output/render/text.ts'

export interface DemoCommandOptions extends SharedOptions {
  readonly json?: boolean
}

/** The limit from the first conductor to the last job: five times the duration on a slow machine. */
const DEMO_TIMEOUT = '60s'

/**
 * Runs the demo.
 *
 * @throws InvalidArgument if no server can be started, naming what to install; and what board and logbooks throw
 */
export async function demo(options: DemoCommandOptions, context: CliContext): Promise<ExitCode> {
  using interruption = context.listenForInterruption()
  const { failed } = context.stdout
  const signal = AbortSignal.any([interruption.signal, failed])
  const timeline = new Timeline((event) => printEvent(event, options, context))
  try {
    await using stage = await openDemoEnvironment(options, context, signal)
    const summary = await runScenario(stage, { options, context, timeline, signal })
    await printSummary(summary, stage, { options, context })
    return summary.complete === summary.jobs ? DONE : FAILED
  } catch (error) {
    if (failed.aborted) throw failed.reason
    if (!interruption.signal.aborted) throw error
    context.stderr.write('jobboard: interrupted: the jobs and files of the demo are removed\n')
    return INTERRUPTED
  }
}

interface ScenarioContext {
  readonly options: DemoCommandOptions
  readonly context: CliContext
  readonly timeline: Timeline
  readonly signal: AbortSignal
}

async function runScenario(
  stage: DemoEnvironment,
  { options, context, timeline, signal }: ScenarioContext,
): Promise<DemoSummary> {
  const { board, persistence, from } = stage
  const named = { ...options, board, persistence }
  await using opened = await openOrAbort(signal, openNamedBoard(named, context))
  await using logbooks = await openOrAbort(signal, openConductorsLogbooks(named, context))
  timeline.emit({
    ...{ event: 'board', board: opened.board.uri, persistence: redactUri(persistence) },
    ...(from === undefined ? {} : { from }),
  })
  const play = new DemoScenario({
    environment: stage,
    board: opened.board,
    timeline,
    env: toConductorEnv(stage, options, context),
    cwd: context.cwd,
  })
  try {
    await withinTimeout(play, signal)
  } finally {
    await play[Symbol.asyncDispose]()
    if (from === undefined)
      await removeJobs(opened.board, play.jobs).catch((error) => reportRemaining(play, error, context))
  }
  return await toSummary(play, { persistence: logbooks, took: timeline.now })
}

async function withinTimeout(play: DemoScenario, signal: AbortSignal): Promise<void> {
  const tooLong = new AbortController()
  using _timer = abortAfter(
    tooLong,
    DEMO_TIMEOUT,
    (time) => new JobboardError(`the demo did not finish within ${time}`),
  )
  await play.run(AbortSignal.any([signal, tooLong.signal]))
}

/** Returns the environment of a conductor's process: all of its settings except its name. */
function toConductorEnv(stage: DemoEnvironment, { codec }: DemoCommandOptions, { env }: CliContext): CliContext['env'] {
  return {
    ...env,
    JOBBOARD_BOARD: stage.board,
    JOBBOARD_PERSISTENCE: stage.persistence,
    JOBBOARD_CONFIG: stage.config,
    [TAG_VARIABLE]: stage.tag,
    ...(codec === undefined ? {} : { JOBBOARD_CODEC: codec }),
  }
}

function reportRemaining({ jobs }: DemoScenario, cause: unknown, context: CliContext): void {
  const left = filterOnBoard(jobs).map(({ uuid }) => uuid)
  const message = `jobs of the demo are left on the board: ${left.join(' ')}; jobboard cancel removes them`
  reportError(new JobboardError(message, { cause }), context)
}

function printEvent(event: DemoEvent, { json }: DemoCommandOptions, context: CliContext): void {
  const line = json ? toPrintableJson(event) : eventLine(event, toScreen(context))
  if (line !== undefined) context.stdout.write(`${line}\n`)
}

async function printSummary(
  summary: DemoSummary,
  { kept, from }: DemoEnvironment,
  { options, context }: Pick<ScenarioContext, 'options' | 'context'>,
): Promise<void> {
  if (options.json) return printJson(context, [{ event: 'summary', ...summary }])
  const shown = kept && { board: redactUri(kept.board), persistence: redactUri(kept.persistence) }
  await printLines(
    context,
    demoSummaryLines(summary, { kept: shown, thrownAway: from !== undefined }, toScreen(context)),
  )
}
