/** The command `jobboard conductors`: lists the conductors on the board. */
import type { Command } from 'commander'
import { conductorView } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import type { SharedOptions } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printJson, printLines, render } from '../output/output.ts'

interface ConductorsCommandOptions extends SharedOptions {
  readonly json?: boolean
}

export function defineConductors(program: Command, run: RunAction): void {
  program
    .command('conductors')
    .summary('list the connected conductors')
    .description(
      'Lists the conductors that are connected to the board: where they run, which flows they know, and how many jobs ' +
        'they run, as they reported some seconds ago.',
    )
    .option('--json', 'print each conductor as a JSON object on a line of its own')
    .addHelpText('after', '\nExample:\n  $ jobboard conductors --board zookeeper://127.0.0.1:2181/demo')
    .action(run(conductors))
}

async function conductors(options: ConductorsCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const views = (await board.entities('conductor')).map(conductorView)
  views.sort((a, b) => (a.name < b.name ? -1 : 1))
  if (options.json) await printJson(context, views)
  else if (views.length === 0) await printLines(context, [`no conductors on ${board.uri}`])
  else await printLines(context, await render(context, ({ conductorsTable }, screen) => conductorsTable(views, screen)))
  return DONE
}
