/** The command `jobboard exporter`: exports the gauges of boards to Prometheus, from one process. */
import type { Command } from 'commander'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../../context.ts'
import { type BoardFlags, toBoards } from '../../input/board-flags.ts'
import { count, type FlagTable, type OptionsOf, withFlags } from '../../input/flags.ts'

const DEFAULT_PORT = 9_879
const DEFAULT_HOST = '127.0.0.1'
const MAX_PORT = 65_535

const FLAGS = {
  '--port <n>': [`port to listen on; 0 for a free one (default: ${DEFAULT_PORT})`, count({ least: 0, most: MAX_PORT })],
  '--host <name>': `interface to listen on; 0.0.0.0 for all (default: ${DEFAULT_HOST})`,
} satisfies FlagTable

type ExporterCommandOptions = BoardFlags & OptionsOf<typeof FLAGS>

export function defineExporter(program: Command, run: RunAction): void {
  withFlags(program.command('exporter'), FLAGS)
    .summary('export the gauges of boards to Prometheus')
    .description(
      'Serves /metrics with the jobs of the board by flow and state, the age of the oldest waiting job, the trash, limits, conductors and schedules; ' +
        'and /healthz. Run one for each board: conductors export only their own work (--metrics). Repeat --board for several boards; one that is ' +
        'away has jobboard_board_up 0.',
    )
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
