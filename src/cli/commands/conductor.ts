/** `jobboard conductor`: a daemon that claims jobs and runs their flows. */
import type { Command } from 'commander'
import type { Duration } from '../../core/time.ts'
import type { Run } from '../action.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { loadFlows } from '../flows-module.ts'
import { openConductorsLogbooks, openTheBoard } from '../opening.ts'
import { count, duration, oneOf, type SharedOptions } from '../options.ts'
import { printable } from '../render/text.ts'
import { LEVEL_WORDS } from '../words.ts'

export interface ConductorCommandOptions extends SharedOptions {
  readonly flows: string
  readonly concurrency?: number
  readonly name?: string
  readonly drainTimeout?: string
  readonly logLevel?: (typeof LEVEL_WORDS)[number]
}

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
    .option('--concurrency <n>', 'how many jobs run at once (default: as many as there are processors)', count)
    .option('--name <name>', 'name on the board, unique among living conductors (default: host:pid)')
    .option('--drain-timeout <duration>', 'how long a stop waits for what runs (default: 25s)')
    .option('--log-level <level>', `one of ${LEVEL_WORDS.join(', ')} (default: info)`, oneOf(LEVEL_WORDS))
    .addHelpText('after', '\nExample:\n  $ jobboard conductor --flows ./flows.js --persistence directory:./logbooks')
    .action(run((context, command: Command) => conductor(command.optsWithGlobals(), context)))
}

export async function conductor(options: ConductorCommandOptions, context: CliContext): Promise<ExitCode> {
  const settings = settingsOf(options)
  const flows = await loadFlows(options.flows, context)
  const { daemonLog, runConductor } = await machinery()
  const log = daemonLog({ name: 'jobboard', ...(options.logLevel ? { level: options.logLevel } : {}) })
  await using persistence = await openConductorsLogbooks(options, context)
  await using opened = await openTheBoard(options, context, { log, ...whoOf(options) })
  const { board } = opened
  const names = [...new Set(flows.map((flow) => flow.name))].sort()
  const started = ({ name }: { name: string }) => {
    const line = `conductor ${name} runs ${names.join(', ')} from ${board.uri}, logbooks in ${persistence.uri}`
    context.stdout.write(`${printable(line)}; Ctrl-C stops it\n`)
    log.info({ conductor: name, board: board.uri, persistence: persistence.uri, flows: names }, 'conductor started')
  }
  await runConductor({ board, persistence, flows, log, started, ...settings })
  log.info('conductor stopped')
  return DONE
}

/** In a function of its own: TypeScript 6.0 leaves the `.ts` of an import() as it is beside an `await using`. */
async function machinery() {
  const [{ daemonLog }, { runConductor }] = await Promise.all([
    import('../../core/log.ts'),
    import('../../conductor/index.ts'),
  ])
  return { daemonLog, runConductor }
}

/** Checked before anything is opened. */
function settingsOf({ concurrency, drainTimeout, name }: ConductorCommandOptions): {
  concurrency?: number
  drainTimeout?: Duration
  name?: string
} {
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(drainTimeout === undefined ? {} : { drainTimeout: duration(drainTimeout, '--drain-timeout') }),
    ...(name === undefined ? {} : { name }),
  }
}

/** The board's claims bear the conductor's name. */
function whoOf({ name }: ConductorCommandOptions): { who?: string } {
  return name === undefined ? {} : { who: name }
}
