/** `jobboard conductors`: who works on the board. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'
import { conductorView } from '../conductor-view.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { conductorsTable } from '../render/conductors.ts'

export interface ConductorsCommandOptions extends SharedOptions {
  readonly json?: boolean
}

export function defineConductors(program: Command, run: Run): void {
  program
    .command('conductors')
    .summary('list the conductors that live')
    .description(
      'Lists the conductors that are connected to the board: where they run, what they can run, and what they do, as of ' +
        'some seconds ago.',
    )
    .option('--json', 'print each conductor as a JSON object on a line of its own')
    .addHelpText('after', '\nExample:\n  $ jobboard conductors --board zookeeper://127.0.0.1:2181/demo')
    .action(run((context, command: Command) => conductors(command.optsWithGlobals(), context)))
}

export async function conductors(options: ConductorsCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  const views = (await board.entities('conductor')).map(conductorView)
  views.sort((a, b) => (a.name < b.name ? -1 : 1))
  if (options.json) await printJson(context, views)
  else if (views.length === 0) await printLines(context, [`no conductors on ${board.uri}`])
  else await printLines(context, conductorsTable(views, { width: context.stdout.columns, now: new Date() }))
  return DONE
}
