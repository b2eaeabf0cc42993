/** The command line for commander. A command loads what is heavy when it runs: `--help` must stay fast. */
import { Command } from 'commander'
import { InvalidArgument } from '../core/errors.ts'
import { packageVersion } from '../core/package-version.ts'
import { defineBatch } from './commands/batch/batch.ts'
import { defineBoard } from './commands/board/board.ts'
import { defineCancel } from './commands/cancel.ts'
import { defineCompletion } from './commands/completion.ts'
import { defineConductor } from './commands/conductor/conductor.ts'
import { defineConductors } from './commands/conductors.ts'
import { defineConfig } from './commands/config.ts'
import { defineDemo } from './commands/demo.ts'
import { defineDev } from './commands/dev.ts'
import { defineDoctor } from './commands/doctor.ts'
import { defineExporter } from './commands/exporter/exporter.ts'
import { defineFlows } from './commands/flows/flows.ts'
import { defineHistory } from './commands/history.ts'
import { defineInfo } from './commands/info.ts'
import { defineInit } from './commands/init.ts'
import { defineJobs } from './commands/jobs.ts'
import { defineLimits } from './commands/limits.ts'
import { defineLogbook } from './commands/logbook/logbook.ts'
import { definePause, defineResume } from './commands/pause.ts'
import { definePost } from './commands/post/post.ts'
import { defineRelease } from './commands/release.ts'
import { defineResult } from './commands/result.ts'
import { defineRun } from './commands/run.ts'
import { defineSchedule } from './commands/schedule.ts'
import { defineShow } from './commands/show.ts'
import { defineSqlite } from './commands/sqlite/sqlite.ts'
import { defineTrack } from './commands/track.ts'
import { defineTrash } from './commands/trash.ts'
import { defineUi } from './commands/ui/ui.ts'
import { defineWait } from './commands/wait.ts'
import type { CliContext, ExitCode, RunAction } from './context.ts'
import { DEFAULT_TIMEOUT } from './input/shared-options.ts'

const HELP_FOOTER = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted with Ctrl-C.

Logbooks are in sqlite:FILE or directory:DIR, on one machine; on many, in
postgres:// (or postgresql://)
user:password@host:port/database?schema=jobboard&sslmode=verify-full, or
zookeeper://host:port,host:port/path.

Credentials: zookeeper://user:password@host:port/path in JOBBOARD_BOARD and
JOBBOARD_PERSISTENCE, or user:password in JOBBOARD_ZOOKEEPER_AUTH. With TLS:
zookeepers://host:port/path?ca=FILE. The key of encrypted logbooks in
JOBBOARD_LOGBOOK_KEY: openssl rand -base64 32

Examples:
  $ export JOBBOARD_BOARD=sqlite:./jobs.db JOBBOARD_PERSISTENCE=sqlite:./jobs.db
  $ jobboard conductor --flows ./flows.js
  $ jobboard post hello --flows ./flows.js --store '{"name":"Ada"}'
  $ jobboard jobs`

/** Runs a command line. @throws CommanderError for a wrong command line, and after help or version was printed */
export async function runProgram(argv: readonly string[], context: CliContext): Promise<ExitCode> {
  let exitCode: ExitCode = 0
  const run: RunAction =
    (work) =>
    async (...args) => {
      const command = args.at(-1)
      if (!(command instanceof Command)) return
      assertBoardCount(command)
      const settled = await applySettings(command, context)
      exitCode = await work(command.optsWithGlobals(), settled, command)
    }
  await createProgram(context, run).parseAsync([...argv], { from: 'user' })
  return exitCode
}

/** Returns the words of the command line that name its command, as in `limits set`, whatever else is wrong with it. */
export function commandWords(argv: readonly string[], context: CliContext): readonly string[] {
  const words: string[] = []
  let at = createProgram(context, () => async () => undefined)
  for (const word of argv) {
    const next = at.commands.find((command) => command.name() === word)
    if (!next) continue
    words.push(word)
    at = next
  }
  return words
}

/** Refuses several boards for a command that uses one. @throws InvalidArgument */
function assertBoardCount(command: Command): void {
  const { board } = command.optsWithGlobals<{ board?: string | readonly string[] }>()
  if (!Array.isArray(board) || SEVERAL_BOARDS.includes(command.name())) return
  throw new InvalidArgument(
    `--board was given ${board.length} times: jobboard ${command.name()} uses one board; only jobboard conductor, exporter and ui take several`,
  )
}

/** Commands for which `--board` may be repeated. */
const SEVERAL_BOARDS: readonly string[] = ['conductor', 'exporter', 'ui']

/** Commands that use no board. */
const WITHOUT_CONFIG = ['init', 'dev', 'completion', 'preview', 'password']

/**
 * Puts the settings of the config file where no option was typed; its settings for the environment are in the context.
 */
async function applySettings(command: Command, context: CliContext): Promise<CliContext> {
  // The commands about the file read it by themselves.
  if (WITHOUT_CONFIG.includes(command.name())) return context
  if (['board', 'config', 'sqlite'].includes(command.parent?.name() ?? '')) return context
  const { resolveSettings: settle } = await import('./input/config/settings.ts')
  const { options, own, env, assertModule, chosenByFile, configFile, ...several } = await settle(
    command.optsWithGlobals(),
    { ...context, isChecked: command.name() === 'conductor' },
  )
  const takesSeveral = SEVERAL_BOARDS.includes(command.name())
  const mine: Readonly<Record<string, unknown>> = {
    ...own(command.name()),
    ...(takesSeveral && several.boards ? { boards: several.boards } : {}),
  }
  for (let at: Command | null = command; at; at = at.parent) {
    for (const option of at.options) {
      const name = option.attributeName()
      const value = mine[name] ?? options[name]
      const isNamed = NAMED_OPTIONS.includes(name) || at.getOptionValue(name) === undefined
      if (value !== undefined && isNamed) at.setOptionValueWithSource(name, value, 'config')
    }
  }
  // Settings that no option has as a whole.
  const known = new Set(command.options.map((option) => option.attributeName()))
  for (const [name, value] of Object.entries(mine))
    if (!known.has(name)) command.setOptionValueWithSource(name, value, 'config')
  return {
    ...context,
    env,
    assertModule,
    chosenByFile,
    configFile,
    boardChoices: several.boardChoices,
    logbookAuth: several.logbookAuth,
  }
}

/** Options whose typed value may be a name that the config file defines. */
const NAMED_OPTIONS: readonly string[] = ['board', 'persistence']

/** The commands in the order of the help. */
const COMMANDS = [
  ...[definePost, defineJobs, defineShow, defineTrack, defineWait, defineResult, defineCancel, defineRelease],
  ...[defineRun, defineConductor, defineConductors, defineUi, defineInfo, defineDoctor, defineExporter],
  ...[definePause, defineResume],
  ...[
    defineFlows,
    defineSchedule,
    defineLimits,
    defineBatch,
    defineTrash,
    defineHistory,
    defineLogbook,
    defineBoard,
    defineSqlite,
    defineConfig,
    defineInit,
    defineDev,
    defineDemo,
    defineCompletion,
  ],
]

function createProgram(context: CliContext, run: RunAction): Command {
  const program = new Command('jobboard')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
      // Errors are thrown, and reported in one place.
      outputError: () => undefined,
      getOutHelpWidth: () => context.stdout.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => context.stderr.columns ?? HELP_WIDTH,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({ showGlobalOptions: true })
    .description('Posts jobs, and runs each of them by exactly one owner at a time.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .option(
      '--board <uri>',
      'where the jobs are, a name in jobboard.yaml or a URI: sqlite:FILE, zookeeper://host:port,host:port/path, postgres://user@host/database?board=NAME or redis://host:port/0 (or JOBBOARD_BOARD)',
      collectBoards,
    )
    .option(
      '--persistence <uri>',
      'where the logbooks are, a name or a URI: sqlite:FILE, directory:DIR, postgres://user:password@host/database or ' +
        'zookeeper://host:port/path (or JOBBOARD_PERSISTENCE)',
    )
    .option(
      '--config <file>',
      'file that names boards and logbooks (or JOBBOARD_CONFIG; default: jobboard.yaml here or above)',
    )
    .option('--deployment <name>', 'deployment of that file, whose changes apply (or JOBBOARD_DEPLOYMENT)')
    .option('--codec <module>', "module that exports the logbooks' codec (or JOBBOARD_CODEC)")
    .option('--redact <keys>', 'hide the values of these keys, as in password,token (or JOBBOARD_REDACT)')
    .option('--timeout <duration>', `how long to try to open the board (default: ${DEFAULT_TIMEOUT})`)
    .option('--verbose', 'print the stack trace of an error, and its causes')
    .addHelpText('after', HELP_FOOTER)
  for (const define of COMMANDS) define(program, run)
  return program
}

/** Collects the boards of an option that is repeated; a text if there is one. */
function collectBoards(board: string, before?: string | readonly string[]): string | readonly string[] {
  return before === undefined ? board : [before, board].flat()
}

/** The width of help without a terminal. */
const HELP_WIDTH = 80
