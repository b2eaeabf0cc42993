/** The commands `jobboard flows set`, `unset`, `list` and `show`: the settings of flows on the board. */
import type { Command } from 'commander'
import { Redactor } from '../../../core/redaction.ts'
import {
  flowSettingsView,
  parseFlowSettings,
  parseSettingNames,
  SETTING_NAMES,
  settingTexts,
} from '../../../views/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../../context.ts'
import { eachAsJson, type FlagTable, type JsonOptions, type OptionsOf, shared, withFlags } from '../../input/flags.ts'
import { definedOnly, redactedKeys, type SharedOptions, toPerson } from '../../input/shared-options.ts'
import { openNamedBoard } from '../../opening.ts'
import { printDrawn, printJson, printLines } from '../../output/output.ts'
import { shellWord } from '../../output/render/text.ts'

const FLOW_HELP = "name of a flow, or a pattern such as 'report*', or '*' for all"

const SET_FLAGS = { '--reason <text>': 'reason for people' } satisfies FlagTable
const LIST_FLAGS = { '--json': eachAsJson('flow or pattern') } satisfies FlagTable

type ChangeOptions = OptionsOf<typeof SET_FLAGS>

export function defineFlowSettings(flows: Command, run: RunAction): void {
  withFlags(flows.command('set'), SET_FLAGS)
    .summary('set how jobs of flows are treated')
    .description(
      'Sets some settings of a flow, or of all flows with a prefix; the others stay. A setting overrides the code of the flow; options of a post override ' +
        'it, unless force=true. The settings of the flow itself come first, then those of the longest pattern. Conductors use a change from their next ' +
        `claim, other processes after at most 30 s. Settings: ${SETTING_NAMES.join(', ')}.`,
    )
    .argument('<flow>', FLOW_HELP)
    .argument('<key=value...>', 'settings, such as maxAttempts=7 or deadline=1h')
    .addHelpText(
      'after',
      "\nExamples:\n  $ jobboard flows set 'report*' maxAttempts=7 queue=bulk\n  $ jobboard flows set import enabled=false --reason 'the disk is full'",
    )
    .action(run(set))
  flows
    .command('unset')
    .summary('remove settings of flows')
    .description('Removes some settings of a flow or pattern, or all of them.')
    .argument('<flow>', FLOW_HELP)
    .argument('[keys...]', 'names of settings (default: all)')
    .addHelpText('after', "\nExamples:\n  $ jobboard flows unset import enabled\n  $ jobboard flows unset 'report*'")
    .action(run(unset))
  withFlags(flows.command('list'), LIST_FLAGS)
    .summary('list the settings of flows')
    .description('Lists what is set for flows and patterns: by whom, since when, and why.')
    .addHelpText('after', '\nExample:\n  $ jobboard flows list')
    .action(run(list))
  withFlags(flows.command('show'), shared('--json'))
    .summary('show the settings that apply to a flow')
    .description('Shows the settings that apply to a flow, each with the flow or pattern for which it is set.')
    .argument('<flow>', 'name of a flow')
    .addHelpText('after', '\nExample:\n  $ jobboard flows show report')
    .action(run(show))
}

async function set(
  { reason, ...options }: ChangeOptions,
  context: CliContext,
  { args: [flow = '', ...words] }: Command,
): Promise<ExitCode> {
  const settings = parseFlowSettings(words)
  await using opened = await openNamedBoard(options, context)
  const { board } = opened
  await board.flowSettings.set(flow, settings, definedOnly({ reason, by: toPerson(context.env, board) }))
  const changed = (await board.flowSettings.list()).filter((each) => each.flow === flow)
  const shown = new Redactor(redactedKeys(options, context)).texts(changed)
  await printDrawn(context, ({ flowSettingsTable }, screen) => flowSettingsTable(shown, screen))
  return DONE
}

async function unset(
  options: SharedOptions,
  context: CliContext,
  { args: [flow = '', ...words] }: Command,
): Promise<ExitCode> {
  const keys = words.length === 0 ? undefined : parseSettingNames(words)
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const removed = await board.flowSettings.unset(flow, definedOnly({ keys, by: toPerson(context.env, board) }))
  await printLines(context, [`settings of flow ${flow} removed: ${removed.join(', ') || 'all'}`])
  return DONE
}

async function list(options: JsonOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const redaction = new Redactor(redactedKeys(options, context))
  const listed = redaction.texts(await board.flowSettings.list())
  if (options.json) await printJson(context, listed.map(flowSettingsView))
  else if (listed.length === 0) await printLines(context, [`no settings of flows on ${board.uri}`])
  else await printDrawn(context, ({ flowSettingsTable }, screen) => flowSettingsTable(listed, screen))
  return DONE
}

async function show(options: JsonOptions, context: CliContext, { args: [flow = ''] }: Command): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const applied = Object.entries(await board.flowSettings.of(flow))
  if (options.json) await printJson(context, [{ flow, settings: Object.fromEntries(applied) }])
  else if (applied.length === 0)
    await printLines(context, [
      `nothing is set for flow ${flow} on ${board.uri}: its code and its posts decide; jobboard flows set ${shellWord(flow)} KEY=VALUE changes that`,
    ])
  else {
    const rows = applied.flatMap(([name, { value, from, force }]) =>
      settingTexts({ [name]: value }).map((each) => ({ ...each, from: force ? `${from} (force)` : from })),
    )
    await printDrawn(context, ({ appliedSettingsTable }, screen) => appliedSettingsTable(rows, screen))
  }
  return DONE
}
