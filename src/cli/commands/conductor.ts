/** `jobboard conductor`: a daemon that claims jobs and runs their flows. */
import type { Command } from 'commander'
import type { Conductor } from '../../conductor/index.ts'
import { Redaction } from '../../core/redaction.ts'
import { type Duration, printableDuration } from '../../core/time.ts'
import type { Run } from '../action.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { loadFlows } from '../flows-module.ts'
import { openConductorsLogbooks, openTheBoard } from '../opening.ts'
import { count, duration, oneOf, redactedKeys, type SharedOptions } from '../options.ts'
import { printable } from '../render/text.ts'
import { LEVEL_WORDS } from '../words.ts'

export interface ConductorCommandOptions extends SharedOptions {
  readonly flows: string
  readonly concurrency?: number
  readonly name?: string
  readonly drainTimeout?: string
  readonly logLevel?: (typeof LEVEL_WORDS)[number]
}

const DRAIN_TIMEOUT = '25s'

export function defineConductor(program: Command, run: Run): void {
  program
    .command('conductor')
    .summary('run a conductor until it is told to stop')
    .description(
      'Claims jobs whose flow the module exports, and runs them. It logs JSON lines to standard error. The first SIGINT or ' +
        'SIGTERM lets what runs finish, the second aborts it, the third ends the process; unfinished jobs go back to the ' +
        'board.',
    )
    .requiredOption('--flows <module>', 'module that exports the flows: a path or a package')
    .option(
      '--concurrency <n>',
      'how many jobs run at once (default: as many as there are processors)',
      count('--concurrency'),
    )
    .option('--name <name>', 'name on the board, unique among living conductors (default: host:pid)')
    .option('--drain-timeout <duration>', `how long a stop waits for what runs (default: ${DRAIN_TIMEOUT})`)
    .option(
      '--log-level <level>',
      `one of ${LEVEL_WORDS.join(', ')} (default: info)`,
      oneOf('--log-level', LEVEL_WORDS),
    )
    .addHelpText('after', '\nExample:\n  $ jobboard conductor --flows ./flows.js --persistence directory:./logbooks')
    .action(run((context, command: Command) => conductor(command.optsWithGlobals(), context)))
}

export async function conductor(options: ConductorCommandOptions, context: CliContext): Promise<ExitCode> {
  const settings = settingsOf(options)
  const flows = await loadFlows(options.flows, context)
  const { daemonLog, redactedLog, runConductor } = await machinery()
  const plain = daemonLog({ name: 'jobboard', ...(options.logLevel ? { level: options.logLevel } : {}) })
  const log = redactedLog(plain, new Redaction(redactedKeys(options, context)))
  await using persistence = await openConductorsLogbooks(options, context)
  await using opened = await openTheBoard(options, context, { log, ...whoOf(options) })
  const { board } = opened
  const say = (line: string) => context.stdout.write(`${printable(line)}\n`)
  const flowNames = [...new Set(flows.map((flow) => flow.name))].sort().join(', ')
  await runConductor({
    board,
    persistence,
    flows,
    log,
    ...settings,
    started: ({ name }) => {
      say(`conductor ${name} runs ${flowNames} from ${board.uri}, logbooks in ${persistence.uri}; Ctrl-C stops it`)
    },
    stopping: (stopped) => say(stopLine(stopped, settings)),
  })
  return DONE
}

/** What a signal has brought about, and what the next one would. */
function stopLine({ name, running, state }: Conductor, { drainTimeout }: Settings): string {
  const [jobs, them] = running === 1 ? ['1 job', 'it'] : [`${running} jobs`, 'them']
  if (running === 0) return `conductor ${name} stops; nothing runs`
  if (state === 'aborting') return `conductor ${name} gives ${jobs} back to the board; Ctrl-C once more just ends it`
  const patience = printableDuration(drainTimeout)
  return `conductor ${name} claims nothing more and waits up to ${patience} for ${jobs}; Ctrl-C again gives ${them} back`
}

/** In a function of its own: TypeScript 6.0 leaves the `.ts` of an import() as it is beside an `await using`. */
async function machinery() {
  const [{ daemonLog, redactedLog }, { runConductor }] = await Promise.all([
    import('../../core/log.ts'),
    import('../../conductor/index.ts'),
  ])
  return { daemonLog, redactedLog, runConductor }
}

interface Settings {
  readonly drainTimeout: Duration
  readonly concurrency?: number
  readonly name?: string
}

/** Checked before anything is opened. */
function settingsOf({ concurrency, drainTimeout = DRAIN_TIMEOUT, name }: ConductorCommandOptions): Settings {
  return {
    drainTimeout: duration(drainTimeout, '--drain-timeout'),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(name === undefined ? {} : { name }),
  }
}

/** The board's claims bear the conductor's name. */
function whoOf({ name }: ConductorCommandOptions): { who?: string } {
  return name === undefined ? {} : { who: name }
}
