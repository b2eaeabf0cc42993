/** The command `jobboard flows`: lists the flows that conductors have, and draws one. `settings.ts` has its subcommands. */
import type { Command } from 'commander'
import type { ListedFlow } from '../../../board/index.ts'
import { NotFound } from '../../../core/errors.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../../context.ts'
import { eachAsJson, type FlagTable, type OptionsOf, shared, withFlags } from '../../input/flags.ts'
import { openNamedBoard } from '../../opening.ts'
import { drawAs } from '../../output/drawing.ts'
import { printDrawn, printJson, printLines } from '../../output/output.ts'
import { defineFlowSettings } from './settings.ts'

const FLAGS = {
  '--graph': 'draw the flow NAME instead, in its newest version',
  ...shared('--format <format>'),
  '--json': eachAsJson('flow'),
} satisfies FlagTable

type FlowsCommandOptions = OptionsOf<typeof FLAGS>

export function defineFlows(program: Command, run: RunAction): void {
  const command = withFlags(program.command('flows'), FLAGS)
    .summary('list the flows that conductors have, and set how their jobs are treated')
    .description(
      'Lists the flows that conductors of the board have, or have had, with their tasks; with NAME, only those of this name. Needs no code.',
    )
    .argument('[name]', 'name of a flow')
    .addHelpText('after', '\nExamples:\n  $ jobboard flows\n  $ jobboard flows report --graph')
    .helpCommand(false)
    .action(run(flows))
  defineFlowSettings(command, run)
}

async function flows(options: FlowsCommandOptions, context: CliContext, { args: [name] }: Command): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const [known, conductors] = await Promise.all([board.flows(), board.entities('conductor')])
  const listed = known.filter((flow) => name === undefined || flow.name === name)
  if (name !== undefined && listed.length === 0)
    throw new NotFound(`no conductor of ${board.uri} has had a flow ${name}; jobboard flows lists those that it has`)
  if (options.graph) await printGraph(listed, options, context)
  else if (options.json) await printJson(context, listed)
  else if (listed.length === 0) await printLines(context, [`no conductor of ${board.uri} has had a flow`])
  else await printDrawn(context, ({ flowsTable }, screen) => flowsTable(listed, { conductors, screen }))
  return DONE
}

/** Draws the newest version. */
async function printGraph(
  listed: readonly ListedFlow[],
  { format = 'mermaid' }: FlowsCommandOptions,
  context: CliContext,
): Promise<void> {
  const newest = listed.toSorted((a, b) => b.since.getTime() - a.since.getTime())[0]
  if (!newest) return
  await printLines(context, (await drawAs(format, newest)).split('\n'))
}
