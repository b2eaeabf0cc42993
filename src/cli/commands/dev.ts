/** The command `jobboard dev`: the dashboard of a board in a file, with a conductor; or a ZooKeeper for trials. */
import type { Command } from 'commander'
import { rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import type { DevDashboard, DevDashboardOptions } from '../dev/dashboard.ts'
import { MAX_PORT, SERVER_CHOICES } from '../input/choices.ts'
import { count, type FlagTable, type FlagValues, oneOf, texts, withFlags } from '../input/flags.ts'
import { printJson, printLines } from '../output/output.ts'

const FLAGS = {
  '--flows <module>': ['run a conductor with the flows of this module; may be repeated', texts],
  '--fresh': 'begin with an empty board: delete the file of earlier starts',
  '--zookeeper': 'run a ZooKeeper in place of the file',
  '--port <n>': ['with --zookeeper, port to listen on (default: 2181, or a free one)', count({ most: MAX_PORT })],
  '--with <server>': [
    `with --zookeeper, one of ${SERVER_CHOICES.join(', ')} (default: whichever is installed)`,
    oneOf(SERVER_CHOICES),
  ],
  '--ui': 'with --zookeeper, serve the dashboard of the board, too',
  '--json': 'print the address as a JSON object',
} satisfies FlagTable

type DevCommandOptions = FlagValues<typeof FLAGS>

export function defineDev(program: Command, run: RunAction): void {
  withFlags(program.command('dev'), FLAGS)
    .summary('run a board for trials, with a dashboard')
    .description(
      'Serves the dashboard of a board in ./.jobboard/jobs.db until Ctrl-C, and prints the environment variables for other ' +
        'commands. The file has the logbooks, too, and is kept for the next start. With --flows it runs a conductor, which is ' +
        'started anew when code, JSON, YAML or SQL beside the flows changes. With --zookeeper the board is on a ZooKeeper for ' +
        "this machine only, from Debian's package or in Docker, whichever is installed; its data are deleted at the end.",
    )
    .addHelpText('after', '\nExamples:\n  $ jobboard dev --flows ./flows.js\n  $ jobboard dev --zookeeper')
    .action(run(dev))
}

/** Runs a board for trials. @throws InvalidArgument for options that do not fit together */
async function dev(options: DevCommandOptions, context: CliContext): Promise<ExitCode> {
  using interruption = context.listenForInterruption()
  const { signal } = interruption
  const { fresh, zookeeper, port, flows, ui } = options
  const onZooKeeper = zookeeper === true || port !== undefined || options.with !== undefined
  if (onZooKeeper && fresh)
    throw new InvalidArgument('--fresh deletes the file of the board: give it without --zookeeper')
  if (onZooKeeper && flows && !ui) throw new InvalidArgument('--flows runs a conductor beside the dashboard: add --ui')
  try {
    if (onZooKeeper) await serveZooKeeper(options, { context, signal })
    else await serveFile(options, { context, signal })
    return DONE
  } catch (error) {
    if (!signal.aborted) throw error
    return DONE
  }
}

interface Serving {
  readonly context: CliContext
  readonly signal: AbortSignal
}

/** Serves the dashboard of the board in the file until the signal fires. */
async function serveFile(
  { flows = [], fresh = false, json }: DevCommandOptions,
  { context, signal }: Serving,
): Promise<void> {
  const { prepareLocalBoard } = await loadLocalBoard()
  const { uri, file } = prepareLocalBoard({ cwd: context.cwd, fresh })
  await using shown = await startDashboard({ board: uri, persistence: uri, flows, context })
  const about = { board: uri, persistence: uri, ui: shown.url }
  if (json) await printJson(context, [{ ...about, file }])
  else
    await printLines(context, toLines(about, `The board is in ${file}; Ctrl-C ends the dashboard, and keeps the file`))
  await rejectOnAbort(new Promise<never>(() => undefined), signal)
}

/** Runs a ZooKeeper until the signal fires. @throws InvalidArgument if nothing can run it, naming what to install */
async function serveZooKeeper(options: DevCommandOptions, { context, signal }: Serving): Promise<void> {
  const { DevServer, findServer, freePort } = await loadServers()
  const recipe = await findServer(options.with, context)
  const port = await freePort(options.port)
  await using server = new DevServer({ recipe, port, env: context.env })
  await server.start(signal)
  const board = `zookeeper://127.0.0.1:${port}/demo`
  const persistence = `zookeeper://127.0.0.1:${port}/logbooks`
  await using shown = options.ui
    ? await startDashboard({ board, persistence, flows: options.flows ?? [], context })
    : undefined
  const about = { board, persistence, ...(shown ? { ui: shown.url } : {}) }
  if (options.json) await printJson(context, [{ ...about, port, with: recipe.word }])
  else await printLines(context, toLines(about, `ZooKeeper runs, ${recipe.from}; Ctrl-C stops it and deletes its data`))
  await rejectOnAbort(server.ended, signal)
  throw new JobboardError(`the server ended unexpectedly: ${await server.lastOutput()}`)
}

function toLines(
  { board, persistence, ui }: { readonly board: string; readonly persistence: string; readonly ui?: string },
  state: string,
): string[] {
  return [
    ...(ui === undefined ? [] : [`# The dashboard is at ${ui}`]),
    `# ${state}. In another shell:`,
    `export JOBBOARD_BOARD=${board}`,
    `export JOBBOARD_PERSISTENCE=${persistence}`,
  ]
}

/** Imports in separate functions: TypeScript 6.0 does not rewrite the `.ts` of an import() beside a `using`. */
async function loadLocalBoard() {
  return await import('../dev/local-board.ts')
}

async function loadServers() {
  const [server, servers] = await Promise.all([import('../dev/dev-server.ts'), import('../dev/servers.ts')])
  return { ...server, ...servers }
}

async function startDashboard(options: DevDashboardOptions): Promise<DevDashboard> {
  const { startDevDashboard } = await import('../dev/dashboard.ts')
  return await startDevDashboard(options)
}
