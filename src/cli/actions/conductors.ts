/** What `jobboard conductors` does: who works on the board. */
import { conductorView } from '../conductor-view.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { openNamedBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printJson, printLines } from '../output.ts'
import { conductorsTable } from '../render/conductors.ts'
import { toScreen } from '../render/screen.ts'

export interface ConductorsCommandOptions extends SharedOptions {
  readonly json?: boolean
}

export async function conductors(options: ConductorsCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const views = (await board.entities('conductor')).map(conductorView)
  views.sort((a, b) => (a.name < b.name ? -1 : 1))
  if (options.json) await printJson(context, views)
  else if (views.length === 0) await printLines(context, [`no conductors on ${board.uri}`])
  else await printLines(context, conductorsTable(views, toScreen(context)))
  return DONE
}
