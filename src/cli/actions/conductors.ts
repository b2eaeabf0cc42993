/** The work of `jobboard conductors`: lists the conductors on the board. */
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import type { SharedOptions } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printJson, printLines } from '../output/output.ts'
import { conductorsTable } from '../output/render/conductors.ts'
import { toScreen } from '../output/render/screen.ts'
import { conductorView } from '../views/conductor-view.ts'

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
