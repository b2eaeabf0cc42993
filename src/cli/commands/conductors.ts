/** The command `jobboard conductors`: lists the conductors on the board. */
import type { Command } from 'commander'
import { Redactor } from '../../core/redaction.ts'
import { conductorViews } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { eachAsJson, type JsonOptions, withFlags } from '../input/flags.ts'
import { redactedKeys } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printDrawn, printJson, printLines } from '../output/output.ts'

export function defineConductors(program: Command, run: RunAction): void {
  withFlags(program.command('conductors'), { '--json': eachAsJson('conductor') })
    .summary('list the connected conductors')
    .description(
      'Lists the conductors that are connected to the board: where they run, which flows they know, and how many jobs ' +
        'they run, as they reported some seconds ago.',
    )
    .addHelpText('after', '\nExample:\n  $ jobboard conductors --board zookeeper://127.0.0.1:2181/demo')
    .action(run(conductors))
}

async function conductors(options: JsonOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const redaction = new Redactor(redactedKeys(options, context))
  const views = redaction.texts(conductorViews(await board.entities('conductor')))
  if (options.json) await printJson(context, views)
  else if (views.length === 0) await printLines(context, [`no conductors on ${board.uri}`])
  else await printDrawn(context, ({ conductorsTable }, screen) => conductorsTable(views, screen))
  return DONE
}
