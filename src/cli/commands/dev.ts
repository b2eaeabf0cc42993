/** The command `jobboard dev`: runs a ZooKeeper for trials; with `--ui`, a conductor and the dashboard, too. */
import type { Command } from 'commander'
import { rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import type { DevDashboard, DevDashboardOptions } from '../dev/dashboard.ts'
import type { ServerWord } from '../dev/servers.ts'
import { MAX_PORT, SERVER_CHOICES } from '../input/choices.ts'
import { choiceParser, collectText, countParser } from '../input/shared-options.ts'
import { printJson, printLines } from '../output/output.ts'

interface DevCommandOptions {
  readonly port?: number
  readonly with?: ServerWord
  readonly ui?: boolean
  readonly flows?: readonly string[]
  readonly json?: boolean
}

export function defineDev(program: Command, run: RunAction): void {
  program
    .command('dev')
    .summary('run a throw-away ZooKeeper for trials')
    .description(
      "Runs a ZooKeeper until Ctrl-C, for this machine only, from Debian's package or in Docker, whichever is " +
        'installed, and prints the environment variables to set. Its data are deleted at the end. With --ui it also serves the ' +
        'dashboard of the board; with --flows it runs a conductor, which is started anew when code, JSON, YAML or SQL beside the flows changes.',
    )
    .option(
      '--port <port>',
      'port to listen on (default: 2181, or a free one)',
      countParser('--port', { most: MAX_PORT }),
    )
    .option(
      '--with <server>',
      `one of ${SERVER_CHOICES.join(', ')} (default: whichever is installed)`,
      choiceParser('--with', SERVER_CHOICES),
    )
    .option('--ui', 'serve the dashboard of the board, too')
    .option(
      '--flows <module>',
      'with --ui, run a conductor with the flows of this module; may be repeated',
      collectText,
    )
    .option('--json', 'print its address as a JSON object')
    .addHelpText('after', '\nExamples:\n  $ jobboard dev\n  $ jobboard dev --ui --flows ./flows.js')
    .action(run(dev))
}

/** Runs a ZooKeeper. @throws InvalidArgument if nothing can run it, naming what to install */
async function dev(options: DevCommandOptions, context: CliContext): Promise<ExitCode> {
  using interruption = context.listenForInterruption()
  const { signal } = interruption
  if (options.flows && !options.ui) throw new InvalidArgument('--flows runs a conductor beside the dashboard: add --ui')
  const { DevServer, findServer, freePort } = await loadServers()
  const recipe = await findServer(options.with, context)
  const port = await freePort(options.port)
  await using server = new DevServer({ recipe, port, env: context.env })
  try {
    await server.start(signal)
    const board = `zookeeper://127.0.0.1:${port}/demo`
    const persistence = `zookeeper://127.0.0.1:${port}/logbooks`
    await using shown = options.ui
      ? await startDashboard({ board, persistence, flows: options.flows ?? [], context })
      : undefined
    const url = shown ? { ui: shown.url } : {}
    if (options.json) await printJson(context, [{ board, persistence, port, with: recipe.word, ...url }])
    else await printLines(context, toLines({ board, persistence, from: recipe.from, ...url }))
    await rejectOnAbort(server.ended, signal)
    throw new JobboardError(`the server ended unexpectedly: ${await server.lastOutput()}`)
  } catch (error) {
    if (!signal.aborted) throw error
    return DONE
  }
}

function toLines({
  board,
  persistence,
  from,
  ui,
}: {
  board: string
  persistence: string
  from: string
  ui?: string
}): string[] {
  return [
    ...(ui === undefined ? [] : [`# The dashboard is at ${ui}`]),
    `# ZooKeeper runs, ${from}; Ctrl-C stops it and deletes its data. In another shell:`,
    `export JOBBOARD_BOARD=${board}`,
    `export JOBBOARD_PERSISTENCE=${persistence}`,
  ]
}

/** Imports in a separate function: TypeScript 6.0 does not rewrite the `.ts` of an import() beside a `using`. */
async function loadServers() {
  const [server, servers] = await Promise.all([import('../dev/dev-server.ts'), import('../dev/servers.ts')])
  return { ...server, ...servers }
}

async function startDashboard(options: DevDashboardOptions): Promise<DevDashboard> {
  const { startDevDashboard } = await import('../dev/dashboard.ts')
  return await startDevDashboard(options)
}
