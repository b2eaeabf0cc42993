/** The command `jobboard demo`: shows in ten seconds how a board works. */
import type { Command } from 'commander'
import type { Job } from '../../board/index.ts'
import { abortAfter, openOrAbort } from '../../core/async/abort.ts'
import { JobboardError } from '../../core/errors.ts'
import { redactUri } from '../../core/uri.ts'
import { type CliContext, DONE, type ExitCode, FAILED, INTERRUPTED, type RunAction } from '../context.ts'
import type { DemoEvent, DemoScenario, Timeline } from '../dev/demo/play.ts'
import { TAG_VARIABLE } from '../dev/demo/script.ts'
import type { DemoEnvironment } from '../dev/demo/stage.ts'
import type { DemoSummary } from '../dev/demo/summary.ts'
import { type FlagTable, type OptionsOf, withFlags } from '../input/flags.ts'
import { openConductorsLogbooks, openNamedBoard } from '../opening.ts'
import { printJson, printLines, reportError } from '../output/output.ts'
import { toPrintableJson } from '../output/render/text.ts'

const FLAGS = {
  '--zookeeper': "start a ZooKeeper for the demo, from Debian's package or in Docker",
  '--json': 'print a JSON object for each event, one a line, and one for the summary',
} satisfies FlagTable

type DemoCommandOptions = OptionsOf<typeof FLAGS>

export function defineDemo(program: Command, run: RunAction): void {
  withFlags(program.command('demo'), FLAGS)
    .summary('show in ten seconds how a board works')
    .description(
      'Posts six jobs, runs them with two conductors in processes of their own, and kills one of them in the middle of a ' +
        'task: the other continues from there. Board and logbooks are in an SQLite file, which is deleted at the end; ' +
        'with --zookeeper, in a ZooKeeper that is started for the demo. If a board is named, the demo uses that one, and ' +
        'removes its jobs from it at the end. Ctrl-C stops the demo. The exit code is 0 when all jobs are done.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard demo\n  $ jobboard demo --zookeeper\n  $ jobboard demo --board redis://127.0.0.1:6379/0 --persistence directory:./logbooks',
    )
    .action(run(demo))
}

/** The limit from the first conductor to the last job: five times the duration on a slow machine. */
const DEMO_TIMEOUT = '60s'

/**
 * Runs the demo.
 *
 * @throws InvalidArgument if no server can be started, naming what to install; and what board and logbooks throw
 */
async function demo(options: DemoCommandOptions, context: CliContext): Promise<ExitCode> {
  using interruption = context.listenForInterruption()
  const { failed } = context.stdout
  const signal = AbortSignal.any([interruption.signal, failed])
  const modules = await loadModules()
  const printing = { options, context, modules }
  const timeline = new modules.Timeline((event) => printEvent(event, printing))
  try {
    await using stage = await modules.openDemoEnvironment(options, context, signal)
    const summary = await runScenario(stage, { ...printing, timeline, signal })
    await printSummary(summary, stage, printing)
    return summary.complete === summary.jobs ? DONE : FAILED
  } catch (error) {
    if (failed.aborted) throw failed.reason
    if (!interruption.signal.aborted) throw error
    context.stderr.write('jobboard: interrupted: the jobs and files of the demo are removed\n')
    return INTERRUPTED
  }
}

interface Printing {
  readonly options: DemoCommandOptions
  readonly context: CliContext
  readonly modules: Awaited<ReturnType<typeof loadModules>>
}

interface ScenarioContext extends Printing {
  readonly timeline: Timeline
  readonly signal: AbortSignal
}

async function runScenario(
  stage: DemoEnvironment,
  { options, context, modules, timeline, signal }: ScenarioContext,
): Promise<DemoSummary> {
  const { board, persistence, place } = stage
  const named = { ...options, board, persistence }
  await using opened = await openOrAbort(signal, openNamedBoard(named, context))
  await using logbooks = await openOrAbort(signal, openConductorsLogbooks(named, context))
  timeline.emit({
    ...{ event: 'board', board: opened.board.uri, persistence: redactUri(persistence) },
    ...(place === undefined ? {} : { place }),
  })
  const play = new modules.DemoScenario({
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
    if (place === undefined)
      await modules.removeJobs(opened.board, play.jobs).catch((error) => {
        reportRemaining(modules.filterOnBoard(play.jobs), error, context)
      })
  }
  return await modules.toSummary(play, { persistence: logbooks, took: timeline.now })
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

function reportRemaining(jobs: readonly Job[], cause: unknown, context: CliContext): void {
  const uuids = jobs.map(({ uuid }) => uuid).join(' ')
  const message = `jobs of the demo are left on the board: ${uuids}; jobboard cancel removes them`
  reportError(new JobboardError(message, { cause }), context)
}

function printEvent(event: DemoEvent, { options, context, modules }: Printing): void {
  const line = options.json ? toPrintableJson(event) : modules.eventLine(event, modules.toScreen(context))
  if (line !== undefined) context.stdout.write(`${line}\n`)
}

async function printSummary(
  summary: DemoSummary,
  { board, kept, place }: DemoEnvironment,
  { options, context, modules }: Printing,
): Promise<void> {
  if (options.json) return printJson(context, [{ event: 'summary', ...summary }])
  const shown = kept && { board: redactUri(kept.board), persistence: redactUri(kept.persistence) }
  const deleted = board.startsWith('sqlite:') ? 'file' : 'server'
  const state = { kept: shown, deleted: place === undefined ? undefined : deleted } as const
  await printLines(context, modules.demoSummaryLines(summary, state, modules.toScreen(context)))
}

/** Imports in a separate function: TypeScript 6.0 does not rewrite the `.ts` of an import() beside a `using`. */
async function loadModules() {
  const [play, { filterOnBoard, openDemoEnvironment, removeJobs }, { toSummary }, demo, paint] = await Promise.all([
    import('../dev/demo/play.ts'),
    import('../dev/demo/stage.ts'),
    import('../dev/demo/summary.ts'),
    import('../output/render/demo.ts'),
    import('../output/render/paint.ts'),
  ])
  return { ...play, filterOnBoard, openDemoEnvironment, removeJobs, toSummary, ...demo, ...paint }
}
