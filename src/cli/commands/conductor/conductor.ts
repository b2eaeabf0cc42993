/** The command `jobboard conductor`: a daemon that claims jobs and runs their flows. */
import type { Command } from 'commander'
import type { Conductor, ConductorOptions } from '../../../conductor/index.ts'
import { retry } from '../../../core/async/retry.ts'
import { NotConnected } from '../../../core/errors.ts'
import { Redactor } from '../../../core/redaction.ts'
import { formatDuration, toMilliseconds } from '../../../core/time.ts'
import { redactUri } from '../../../core/uri.ts'
import { describeQueues } from '../../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type FileSettings, type RunAction } from '../../context.ts'
import { BOARD_FLAGS, type BoardFlags, toBoards } from '../../input/board-flags.ts'
import { LOG_FORMAT_CHOICES } from '../../input/choices.ts'
import {
  boardSettingsOf,
  CONDUCTOR_FLAGS,
  type ConductorFlagSettings,
  type ConductorFlags,
  openTelemetryOf,
  toConductorSettings,
  withNamedQueues,
} from '../../input/conductor-flags.ts'
import { type FlagTable, type OptionsOf, oneOf, shared, texts, withFlags } from '../../input/flags.ts'
import { type FlowModules, flowsOption, loadFlowsAndServices, type ModuleNames } from '../../input/flows-module.ts'
import { withHooksOf } from '../../input/hooks-modules.ts'
import { toPool } from '../../input/pool-flags.ts'
import { DEFAULT_TIMEOUT, definedOnly, parseDuration, redactedKeys } from '../../input/shared-options.ts'
import { openBoardsLogbooks, openConductorsLogbooks, openNamedBoard, toConductorBoard } from '../../opening.ts'
import { openLogStream } from '../../output/log-format.ts'
import { escapeUnprintable } from '../../output/render/text.ts'
import { writePidFile } from './pid-file.ts'
import { reloader } from './reload.ts'

const FLAGS = {
  '--flows <module>': ['module that exports the flows: a path, a package, or auto; may be repeated', texts],
  ...BOARD_FLAGS,
  ...CONDUCTOR_FLAGS,
  '--release <name>': "name of the application's release, for hooks that run once for each; JOBBOARD_RELEASE",
  '--pid <file>': 'write the number of the process into this file, and remove the file at the end',
  ...shared('--log-level <level>'),
  '--log-format <format>': [
    `one of ${LOG_FORMAT_CHOICES.join(', ')}; auto: for people on a terminal, if pino-pretty is installed (default: auto)`,
    oneOf(LOG_FORMAT_CHOICES),
  ],
} satisfies FlagTable

interface ConductorCommandOptions
  extends Omit<OptionsOf<typeof FLAGS>, keyof ConductorFlags>,
    ConductorFlags,
    BoardFlags {
  /** The modules of hooks that the config file names. */
  readonly hooks?: ModuleNames
}

export function defineConductor(program: Command, run: RunAction): void {
  withFlags(program.command('conductor'), FLAGS)
    .summary('run a conductor until it is stopped')
    .description(
      'Claims jobs whose flow the module exports, and runs them. It logs to standard error. The first SIGINT or ' +
        'SIGTERM lets running jobs finish, the second aborts them, the third ends the process; unfinished jobs go back to ' +
        'the board. SIGUSR2 pauses it, and resumes it when it is paused: meanwhile running jobs continue, and no job is claimed. ' +
        'SIGHUP reads the config file again. ' +
        'With --burst, the exit code is 1 if a run has failed, or if jobs of its flows and queues are left that were to run by now. ' +
        'With --board repeated it takes jobs of several boards: of the first before those of the next.',
    )
    .argument(
      '[queue...]',
      'queues whose jobs it claims, those of the first before those of the next: as --queue for each',
    )
    .addHelpText('after', EXAMPLES)
    .action(run(conductor))
}

const EXAMPLES = `
Examples:
  $ jobboard conductor --flows ./flows.js --persistence directory:./logbooks
  $ jobboard conductor --flows ./flows.js --queue large --concurrency 1 --health 0.0.0.0:8080
  $ jobboard conductor --flows ./flows.js --burst
  $ jobboard conductor urgent bulk --flows ./flows.js
  $ jobboard conductor --flows ./flows.js --queue urgent=3,bulk=1`

/** The pause between two attempts to reach any of several boards. */
const START_PAUSE_MS = 500

async function conductor(given: ConductorCommandOptions, context: CliContext, command: Command): Promise<ExitCode> {
  const isQueueTyped = command.getOptionValueSource('queue') === 'cli'
  const options = withNamedQueues(given, { words: command.args, isQueueTyped })
  // The signal reads the file again; it must end the process neither before the conductor has started nor after it has stopped.
  let hangUps = 0
  const onHangUp = () => {
    hangUps += 1
  }
  using _hangUps = context.configFile && context.listenForHangUp?.(onHangUp)
  const settings = toConductorSettings(options)
  const telemetry = await openTelemetryOf(options)
  const boardSettings = { ...boardSettingsOf(options), ...definedOnly({ telemetry }) }
  const boards = toBoards(options, context)
  const module = await loadModules(options, context)
  const { flows, services, hooks, onError } = module
  const release = options.release || context.env['JOBBOARD_RELEASE'] || undefined
  const { daemonLog, redactedLog, runConductor, countLeftJobs, countLeftJobsAt } = await loadConductorModule()
  const stream = await openLogStream(options.logFormat ?? 'auto', context)
  const plain = daemonLog(definedOnly({ level: options.logLevel, stream }))
  const redact = redactedKeys(options, context)
  const log = redactedLog(plain, new Redactor(redact))
  const declarations = await declarationsOf(module, context.configFile)
  await using persistence = await openConductorsLogbooks(options, context, { log })
  await using own = await openBoardsLogbooks(boards, { options, context, log })
  const [first] = boards
  await using opened =
    first && boards.length === 1
      ? await openNamedBoard({ ...options, board: first.uri }, context, { log, ...boardSettings })
      : undefined
  const say = (line: string) => context.stdout.write(`${escapeUnprintable(line)}\n`)
  const flowNames = [...new Set(flows.map((flow) => flow.name))].sort().join(', ')
  using _faults = context.captureFaults()
  await using _pidFile = options.pid === undefined ? undefined : await writePidFile(options.pid, context)
  let hasStarted = false
  let conductor: Conductor | undefined
  const several = opened
    ? []
    : boards.map((each, index) =>
        toConductorBoard(each, { context, ...boardSettings, persistence: own.persistences[index] }),
      )
  const places = opened ? { board: opened.board } : { boards: several }
  const reload = context.configFile && reloader({ command, context, modules: module, log: plain })
  const run = () => {
    // From here on the conductor itself notes the signal.
    const wasHungUp = hangUps > 0
    return runConductor({
      ...places,
      persistence,
      flows,
      ...definedOnly({ services, hooks, onError, release, telemetry, ...declarations }),
      pool: toPool(options, module),
      log: plain,
      redact,
      ...settings,
      started: (started) => {
        const { name, healthUrl } = started
        conductor = started
        hasStarted = true
        if (wasHungUp)
          reload?.(started).catch((err: unknown) =>
            log.error({ err }, 'not everything was reloaded; send SIGHUP again'),
          )
        const health = healthUrl === undefined ? '' : `, health at ${healthUrl}/healthz`
        const from = boards.map(({ uri }) => redactUri(uri)).join(', ')
        const queues = settings.queues ? `, queues ${describeQueues(settings.queues)}` : ''
        say(
          `conductor ${name} runs ${flowNames} from ${from}${queues}, logbooks in ${persistence.uri}${health}; Ctrl-C stops it`,
        )
      },
      stopping: (stopped) => say(stopLine(stopped, settings)),
      ...definedOnly({ reload }),
    })
  }
  // One board is open by now. Of several, one has to be reached within the same time.
  await retry(run, {
    ...{ firstPauseMs: START_PAUSE_MS, maxPauseMs: START_PAUSE_MS, jitter: 'none' },
    limitMs: toMilliseconds(parseDuration(options.timeout ?? DEFAULT_TIMEOUT, '--timeout'), '--timeout'),
    isRetryable: (error) => !opened && !hasStarted && error instanceof NotConnected,
  })
  if (!settings.burst) return DONE
  const served = { flows: new Set(flows.map(({ name }) => name)), queues: settings.queues, sizes: settings.sizes }
  let left = opened ? await countLeftJobs(opened.board, served) : 0
  for (const [index, { options: openOptions = {} }] of several.entries())
    left += await countLeftJobsAt(boards[index]?.uri ?? '', { options: openOptions, served })
  if (left > 0)
    log.warn({ left }, 'the burst has left jobs that it could not run now; jobboard jobs --unclaimed lists them')
  return left > 0 || (conductor?.counts.failed ?? 0) > 0 ? FAILED : DONE
}

/** Loads the modules of flows and of hooks. */
async function loadModules(options: ConductorCommandOptions, context: CliContext): Promise<FlowModules> {
  const flows = await loadFlowsAndServices(flowsOption(options, 'conductor'), context)
  return options.hooks ? withHooksOf(options.hooks, { flows, options: context }) : flows
}

/** Returns what the modules of flows and the config file declare. @throws InvalidArgument */
async function declarationsOf(
  modules: FlowModules,
  file: FileSettings | undefined,
): Promise<{ readonly [K in 'limits' | 'flowSettings' | 'schedules']: ConductorOptions[K] | undefined }> {
  const { limits, flowSettings, schedules } = modules
  if (file)
    return {
      limits: file.limits(limits),
      flowSettings: file.flowSettings(flowSettings),
      schedules: await file.schedules(modules),
    }
  const declare = <T>(declared: T | undefined) => (declared === undefined ? undefined : { declare: declared })
  return { limits: declare(limits), flowSettings: declare(flowSettings), schedules: declare(schedules) }
}

/** Returns the line that says what a signal has started, and what the next signal would do. */
function stopLine({ name, running, state }: Conductor, { drainTimeout }: ConductorFlagSettings): string {
  const [jobs, them] = running === 1 ? ['1 job', 'it'] : [`${running} jobs`, 'them']
  if (running === 0) return `conductor ${name} stops; nothing runs`
  if (state === 'aborting')
    return `conductor ${name} gives ${jobs} back to the board; Ctrl-C again ends the process at once`
  const timeout = formatDuration(drainTimeout)
  return `conductor ${name} claims nothing more and waits up to ${timeout} for ${jobs}; Ctrl-C again gives ${them} back`
}

/**
 * Imports in a separate function: TypeScript 6.0 does not rewrite the `.ts` of an import() beside an `await using`.
 */
async function loadConductorModule() {
  const [{ daemonLog, redactedLog }, { runConductor }, { countLeftJobs, countLeftJobsAt }] = await Promise.all([
    import('../../../core/log.ts'),
    import('../../../conductor/index.ts'),
    import('./left-work.ts'),
  ])
  return { daemonLog, redactedLog, runConductor, countLeftJobs, countLeftJobsAt }
}
