/** The commands `jobboard limits …`: list, show, set, hold and remove limits. */
import type { Command } from 'commander'
import type { JobBoard, LimitSettings, LimitView } from '../../board/index.ts'
import { InvalidArgument, NotFound } from '../../core/errors.ts'
import { Redactor } from '../../core/redaction.ts'
import { formatDuration } from '../../core/time.ts'
import { limitView } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import {
  count,
  eachAsJson,
  type FlagTable,
  type JsonOptions,
  type OptionsOf,
  shared,
  withFlags,
} from '../input/flags.ts'
import { definedOnly, parseDuration, parseRate, redactedKeys, type SharedOptions } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printDrawn, printJson, printLines, reportError } from '../output/output.ts'

const KEY_HELP = 'key of the limit, or a pattern such as tenant/*'

const LIST_FLAGS = {
  '--waiting': 'count the jobs that wait for each limit, too; on a long board it takes longer',
  '--json': eachAsJson('limit'),
} satisfies FlagTable

type ListOptions = OptionsOf<typeof LIST_FLAGS>

const SET_FLAGS = {
  '--concurrency <n>': ['how many jobs of the key run at once; 0 starts none', count({ least: 0 })],
  '--rate <limit/time>': 'how many jobs of the key start in a time, such as 100/1m',
  '--burst <n>': ['how many may start at once after a pause (default: 1)', count()],
  '--fair': 'let the keys of a pattern take turns: the one with the fewest running jobs goes first',
  '--json': 'print the limit as a JSON object',
} satisfies FlagTable

type SetOptions = OptionsOf<typeof SET_FLAGS>

const STOP_FLAGS = {
  '--for <duration>': 'how long, such as 30s (default: until resume)',
  '--reason <text>': 'reason for people',
} satisfies FlagTable

type HoldOptions = OptionsOf<typeof STOP_FLAGS>

export function defineLimits(program: Command, run: RunAction): void {
  const limits = program
    .command('limits')
    .summary('list, set and hold limits')
    .description('Lists, sets and holds limits: how many jobs of a key run at once, and how many start in a time.')
    .helpCommand(false)
  withFlags(limits.command('list'), LIST_FLAGS)
    .summary('list the limits')
    .description('Lists what is set for keys, and which keys are held.')
    .addHelpText('after', '\nExample:\n  $ jobboard limits list --board zookeeper://127.0.0.1:2181/demo')
    .action(run(list))
  withFlags(limits.command('show'), shared('--json'))
    .summary('show what applies to a key, and how many jobs wait')
    .description(
      'Shows what applies to a key: what is set for it, or for the longest pattern that it matches. Then the keys with jobs: how many run and ' +
        'wait, and when the next may start. A pattern is shown with all of its keys.',
    )
    .argument('<key>', KEY_HELP)
    .addHelpText('after', "\nExamples:\n  $ jobboard limits show tenant/7\n  $ jobboard limits show 'tenant/*'")
    .action(run(show))
  withFlags(limits.command('set'), SET_FLAGS)
    .summary('set a limit')
    .description(
      'Sets a limit, in place of the one that was set for the key. It takes effect with the next claim of every conductor.',
    )
    .argument('<key>', KEY_HELP)
    .addHelpText(
      'after',
      "\nExamples:\n  $ jobboard limits set flow/report --concurrency 2\n  $ jobboard limits set 'tenant/*' --rate 100/1m --burst 20",
    )
    .action(run(set))
  withFlags(limits.command('stop'), STOP_FLAGS)
    .summary('start no job of keys for now')
    .description('Starts no job of these keys until they are resumed, or for a time with --for. Running jobs go on.')
    .argument('<keys...>', KEY_HELP)
    .addHelpText('after', "\nExample:\n  $ jobboard limits stop api/stripe --for 10m --reason 'it answers 429'")
    .action(run(stop))
  limits
    .command('resume')
    .summary('end the hold of keys')
    .description(
      'Ends the hold of keys: their jobs start again. Prints what still stops a key, such as a pattern that it matches.',
    )
    .argument('<keys...>', KEY_HELP)
    .addHelpText('after', '\nExample:\n  $ jobboard limits resume api/stripe')
    .action(run(forEachKey(resume)))
  limits
    .command('remove')
    .summary('remove limits')
    .description('Removes what is set for keys, and their holds.')
    .argument('<keys...>', KEY_HELP)
    .addHelpText('after', '\nExample:\n  $ jobboard limits remove flow/report')
    .action(run(forEachKey((board, key) => board.limits.remove(key).then(() => [`limit ${key} removed`]))))
}

async function list(options: ListOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const redaction = new Redactor(redactedKeys(options, context))
  const limits = redaction.texts(await board.limits.list(definedOnly({ waiting: options.waiting })))
  if (options.json) await printJson(context, limits.map(limitView))
  else if (limits.length === 0) await printLines(context, [`no limits on ${board.uri}`])
  else await printDrawn(context, ({ limitsTable }, screen) => limitsTable(limits, screen))
  return DONE
}

async function show(options: JsonOptions, context: CliContext, { args: [key = ''] }: Command): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const redaction = new Redactor(redactedKeys(options, context))
  const limit = redaction.texts(await opened.board.limits.show(key, { waiting: true }))
  await printLimit(limit, options, context)
  if (!options.json && limit.keys)
    await printDrawn(context, ({ limitKeysTable }, screen) => ['', ...limitKeysTable(limit, screen)])
  return DONE
}

async function set(options: SetOptions, context: CliContext, { args: [key = ''] }: Command): Promise<ExitCode> {
  const settings = toSettings(options)
  await using opened = await openNamedBoard(options, context)
  const { limits } = opened.board
  await limits.set(key, settings)
  const view = (await limits.list()).find((each) => each.key === key)
  if (view) await printLimit(new Redactor(redactedKeys(options, context)).texts(view), options, context)
  return DONE
}

function stop(options: HoldOptions, context: CliContext, command: Command): Promise<ExitCode> {
  const { reason } = options
  const time = options.for === undefined ? undefined : parseDuration(options.for, '--for')
  const stopOne = async (board: JobBoard, key: string) => {
    const { resumeCommand } = await import('../limit-commands.ts')
    if (time === undefined) {
      await board.limits.stop(key, definedOnly({ reason }))
      return [`limit ${key} stopped; ${resumeCommand(key)} ends it`]
    }
    await board.limits.pushBack(key, { for: time, ...definedOnly({ reason }) })
    return [`limit ${key} stopped for ${formatDuration(time)}; ${resumeCommand(key)} ends it earlier`]
  }
  return forEachKey(stopOne)(options, context, command)
}

async function resume(board: JobBoard, key: string, redaction: Redactor): Promise<string[]> {
  const { wasHeld, stops } = await board.limits.resume(key)
  const { stillStoppedLines } = await import('../limit-commands.ts')
  const done = wasHeld ? `limit ${key} resumed` : `limit ${key} was not held`
  return [done, ...stillStoppedLines(stops, redaction)]
}

async function printLimit(limit: LimitView, { json }: JsonOptions, context: CliContext): Promise<void> {
  if (json) return printJson(context, [limitView(limit)])
  await printDrawn(context, ({ limitsTable }, screen) => limitsTable([limit], screen))
}

/** @throws InvalidArgument */
function toSettings({ concurrency, rate, burst, fair }: SetOptions): LimitSettings {
  if (rate === undefined && burst !== undefined) throw new InvalidArgument('--burst belongs to --rate: give that, too')
  if (rate === undefined) return definedOnly({ concurrency, fair })
  const { limit, per } = parseRate(rate, '--rate')
  return { ...definedOnly({ concurrency, fair }), rate: { limit, per, ...definedOnly({ burst }) } }
}

/** Returns the work of a command that does the same for each key, and prints lines about each; a key for which nothing is set is reported, and the others go on. */
function forEachKey(work: (board: JobBoard, key: string, redaction: Redactor) => Promise<string[]>) {
  return async (options: SharedOptions, context: CliContext, { args: keys }: Command): Promise<ExitCode> => {
    const redaction = new Redactor(redactedKeys(options, context))
    await using opened = await openNamedBoard(options, context, { create: false })
    let exitCode: ExitCode = DONE
    for (const key of keys) {
      try {
        await printLines(context, await work(opened.board, key, redaction))
      } catch (error) {
        // The keys after it are as they would be without it; without a connection there is nothing to go on with.
        if (!(error instanceof NotFound)) throw error
        exitCode = reportError(error, context)
      }
    }
    return exitCode
  }
}
