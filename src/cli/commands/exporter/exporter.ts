/** The command `jobboard exporter`: exports the gauges of boards to Prometheus, from one process. */
import type { Command } from 'commander'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../../context.ts'
import { type BoardFlags, toBoards } from '../../input/board-flags.ts'
import { countParser, type SharedOptions } from '../../input/shared-options.ts'

interface ExporterCommandOptions extends SharedOptions, BoardFlags {
  readonly port?: number
  readonly host?: string
}

const DEFAULT_PORT = 9_879
const DEFAULT_HOST = '127.0.0.1'
const MAX_PORT = 65_535

export function defineExporter(program: Command, run: RunAction): void {
  program
    .command('exporter')
    .summary('export the gauges of boards to Prometheus')
    .description(
      'Serves /metrics with the jobs of the board by flow and state, the age of the oldest waiting job, the trash, limits, conductors and schedules; ' +
        'and /healthz. Run one for each board: conductors export only their own work (--metrics). Repeat --board for several boards; one that is ' +
        'away has jobboard_board_up 0.',
    )
    .option(
      '--port <n>',
      `port to listen on; 0 for any (default: ${DEFAULT_PORT})`,
      countParser('--port', { least: 0, most: MAX_PORT }),
    )
    .option('--host <name>', `interface to listen on; 0.0.0.0 for all (default: ${DEFAULT_HOST})`)
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard exporter --host 0.0.0.0\n  $ jobboard exporter --board urgent --board bulk --port 9100',
    )
    .action(run(exporter))
}

async function exporter(options: ExporterCommandOptions, context: CliContext): Promise<ExitCode> {
  const boards = toBoards(options, context)
  const { port = DEFAULT_PORT, host = DEFAULT_HOST } = options
  const { serveExporter } = await import('./serve.ts')
  await serveExporter(boards, { options, context, address: { port, host } })
  return DONE
}
