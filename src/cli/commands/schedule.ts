/** The commands `jobboard schedule …`: list, show, add, edit, pause, resume, trigger, backfill, preview and remove schedules. */
import type { Command } from 'commander'
import type { DeclaredSchedule, JobBoard, ScheduleView } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { Redactor } from '../../core/redaction.ts'
import { scheduleView } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import {
  count,
  eachAsJson,
  type FlagTable,
  type FlagValues,
  type JsonOptions,
  type OptionsOf,
  shared,
  withFlags,
} from '../input/flags.ts'
import { flowNamed } from '../input/flows-module.ts'
import { POLICY_FLAGS, RULE_HELP, SPEC_FLAGS, toScheduleOptions, toSpec } from '../input/schedule-flags.ts'
import {
  definedOnly,
  jsonObject,
  parseDuration,
  readStoreText,
  redactedKeys,
  type SharedOptions,
} from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printDrawn, printJson, printLines } from '../output/output.ts'

/** The number of next times that `show` prints. */
const SHOWN_TIMES = 5
const MAX_PREVIEW = 1_000

const PREVIEW_FLAGS = {
  ...SPEC_FLAGS,
  '--from <time>': 'print the times from then on (default: now)',
  '--count <n>': ['how many times (default: 10)', count({ most: MAX_PREVIEW })],
  '--json': eachAsJson('time'),
} satisfies FlagTable

type PreviewCommandOptions = FlagValues<typeof PREVIEW_FLAGS>

const ADD_FLAGS = {
  ...SPEC_FLAGS,
  ...POLICY_FLAGS,
  ...shared('--flows <module>', '--store <json>'),
  '--name <name>': "name of the jobs, for people (default: the flow's name)",
  ...shared(
    '--priority <priority>',
    '--queue <name>',
    '--size <size>',
    '--max-attempts <n>',
    '--expires-after <duration>',
    '--deadline <duration>',
  ),
  '--json': 'print the schedule as a JSON object',
} satisfies FlagTable

type AddOptions = OptionsOf<typeof ADD_FLAGS>

const EDIT_FLAGS = {
  '--rule <rule>': `the new rule: ${RULE_HELP}`,
  ...SPEC_FLAGS,
  ...POLICY_FLAGS,
  '--store <json>': "the flow's new inputs, a JSON object; - reads it from standard input",
  '--json': 'print the schedule as a JSON object',
} satisfies FlagTable

type EditOptions = OptionsOf<typeof EDIT_FLAGS>

export function defineSchedule(program: Command, run: RunAction): void {
  const schedule = program
    .command('schedule')
    .summary('list, add and change schedules')
    .description(
      'Lists, adds and changes schedules, by which conductors post jobs at times. Every conductor of the board fires them.',
    )
    .helpCommand(false)
  defineReading(schedule, run)
  defineChanging(schedule, run)
  defineOperating(schedule, run)
}

function defineReading(schedule: Command, run: RunAction): void {
  withFlags(schedule.command('list'), { '--json': eachAsJson('schedule') })
    .summary('list the schedules')
    .description('Lists the schedules of the board: their rules, when they fire next, and what they have done.')
    .addHelpText('after', '\nExample:\n  $ jobboard schedule list --board zookeeper://127.0.0.1:2181/demo')
    .action(run(list))
  withFlags(schedule.command('show'), shared('--json'))
    .summary('show a schedule')
    .description('Shows a schedule: its rule in words, its next times, and its last ten firings.')
    .argument('<id>', 'id of the schedule')
    .addHelpText('after', '\nExample:\n  $ jobboard schedule show nightly')
    .action(run(show))
  withFlags(schedule.command('preview'), PREVIEW_FLAGS)
    .summary('print when a rule would fire')
    .description(
      'Prints in words when a rule fires, and its next times, with what changes of the clock do to them. Needs no board.',
    )
    .argument('<rule>', RULE_HELP)
    .addHelpText(
      'after',
      "\nExample:\n  $ jobboard schedule preview '30 2 * * *' --zone Europe/Berlin --from 2027-03-27",
    )
    .action(run(previewRule))
}

function defineChanging(schedule: Command, run: RunAction): void {
  withFlags(schedule.command('add'), ADD_FLAGS)
    .summary('add a schedule')
    .description(
      'Adds a schedule that posts jobs of FLOW, beginning with the next time of its rule. With --flows the store is checked here.',
    )
    .argument('<id>', 'id of the schedule, unique on the board')
    .argument('<rule>', RULE_HELP)
    .argument('<flow>', 'name of the flow')
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard schedule add nightly \'30 2 * * 1-5\' report --zone Europe/Berlin --store \'{"region":"eu"}\'\n  $ jobboard schedule add poll 5m poll --overlap skip',
    )
    .action(run(add))
  withFlags(schedule.command('edit'), EDIT_FLAGS)
    .summary('change a schedule')
    .description(
      'Changes what is given, and leaves the rest as it is. A changed rule counts from now: it never fires for the past.',
    )
    .argument('<id>', 'id of the schedule')
    .addHelpText('after', "\nExample:\n  $ jobboard schedule edit nightly --rule '0 3 * * 1-5'")
    .action(run(edit))
}

function defineOperating(schedule: Command, run: RunAction): void {
  withFlags(schedule.command('pause'), { '--reason <text>': 'why, for those who see it paused' })
    .summary('stop schedules until they are resumed')
    .description('Stops schedules until they are resumed. Their running jobs continue.')
    .argument('<ids...>', 'ids of the schedules')
    .addHelpText('after', "\nExample:\n  $ jobboard schedule pause nightly --reason 'the disk is full'")
    .action(
      run(
        forEachId<{ readonly reason?: string }>(async (board, id, { reason }) => {
          const { paused } = await board.schedules.show(id)
          if (paused)
            return `schedule ${id} is paused already, by ${paused.by}${paused.reason ? `: ${paused.reason}` : ''}`
          await board.schedules.pause(id, definedOnly({ reason }))
          return `schedule ${id} paused; jobboard schedule resume ${id} ends the pause`
        }),
      ),
    )
  withFlags(schedule.command('resume'), { '--catch-up': 'post a job for the newest time that has passed' })
    .summary('resume paused schedules')
    .description(
      'Resumes paused schedules, and prints how many times have passed meanwhile. None of them is caught up.',
    )
    .argument('<ids...>', 'ids of the schedules')
    .addHelpText('after', '\nExample:\n  $ jobboard schedule resume nightly --catch-up')
    .action(run(forEachId<{ readonly catchUp?: boolean }>(resumeOne)))
  withFlags(schedule.command('trigger'), {
    '--store <json>': 'inputs that replace those of the schedule; - reads them from standard input',
  })
    .summary('post a job of a schedule now')
    .description(
      'Posts a job of a schedule now, also of a paused one, and prints its uuid. Its times stay as they are.',
    )
    .argument('<id>', 'id of the schedule')
    .addHelpText('after', '\nExample:\n  $ jobboard schedule trigger nightly')
    .action(run(trigger))
  schedule
    .command('backfill')
    .summary('post jobs for times that have passed')
    .description(
      'Posts a job for each time of the schedule between two times, oldest first, and prints the uuid of each. Called again, it posts them again.',
    )
    .argument('<id>', 'id of the schedule')
    .requiredOption('--from <time>', "the first time, a local time of the schedule's zone or one with an offset")
    .option('--to <time>', 'the last time; a date is its midnight (default: now)')
    .addHelpText('after', '\nExample:\n  $ jobboard schedule backfill nightly --from 2026-11-01 --to 2026-11-08')
    .action(run(backfill))
  schedule
    .command('remove')
    .summary('remove schedules')
    .description('Removes schedules. Their jobs stay on the board.')
    .argument('<ids...>', 'ids of the schedules')
    .addHelpText('after', '\nExample:\n  $ jobboard schedule remove poll')
    .action(run(forEachId((board, id) => board.schedules.remove(id).then(() => `schedule ${id} removed`))))
}

// --- Reading --------------------------------------------------------------------------------------------------------

async function list(options: JsonOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const schedules = await board.schedules.list()
  const redaction = new Redactor(redactedKeys(options, context))
  if (options.json) await printJson(context, redaction.texts(schedules.map(scheduleView)))
  else if (schedules.length === 0) await printLines(context, [`no schedules on ${board.uri}`])
  else await printDrawn(context, ({ schedulesTable }, screen) => schedulesTable(schedules, screen))
  return DONE
}

async function show(options: JsonOptions, context: CliContext, { args: [id = ''] }: Command): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  await printSchedule(opened.board, id, options, context)
  return DONE
}

async function previewRule(
  options: PreviewCommandOptions,
  context: CliContext,
  { args: [rule = ''] }: Command,
): Promise<ExitCode> {
  const { explainSpec, preview } = await import('../../schedule/index.ts')
  const { toInstant } = await import('../../schedule/internal.ts')
  const spec = toSpec(rule, options)
  const { count, zone = 'UTC' } = options
  const from = options.from === undefined ? undefined : new Date(toInstant(options.from, { zone, what: '--from' }))
  const times = await preview(spec, definedOnly({ from, count }))
  if (options.json) {
    await printJson(context, times)
    return DONE
  }
  const words = await explainSpec(spec)
  const none = times.length === 0 ? ['  it does not fire after that time'] : []
  await printDrawn(context, ({ occurrenceLines }) => [words, ...occurrenceLines(times), ...none])
  return DONE
}

async function printSchedule(board: JobBoard, id: string, options: JsonOptions, context: CliContext): Promise<void> {
  const schedule = await board.schedules.show(id)
  const redaction = new Redactor(redactedKeys(options, context))
  if (options.json) return printJson(context, [redaction.texts(scheduleView(schedule))])
  const { explainSpec } = await import('../../schedule/index.ts')
  const words = schedule.spec && (await explainSpec(schedule.spec))
  const times = schedule.state === 'active' ? await nextTimes(board, schedule) : []
  const shown = redaction.texts(schedule)
  await printDrawn(context, ({ scheduleLines }, screen) => scheduleLines(shown, { words, times }, screen))
}

async function nextTimes(board: JobBoard, { id, spec }: ScheduleView) {
  const isSpaced = spec !== undefined && 'every' in spec && spec.from === 'completion'
  return isSpaced ? [] : board.schedules.next(id, SHOWN_TIMES)
}

// --- Changing -------------------------------------------------------------------------------------------------------

async function add(options: AddOptions, context: CliContext, { args }: Command): Promise<ExitCode> {
  const [id = ''] = args
  const declared = await declare(options, context, args)
  await using opened = await openNamedBoard(options, context)
  await opened.board.schedules.add(declared)
  await printSchedule(opened.board, id, options, context)
  return DONE
}

async function declare(
  options: AddOptions,
  context: CliContext,
  [id = '', rule = '', name = '']: readonly string[],
): Promise<DeclaredSchedule> {
  const store = jsonObject(await readStoreText(options, context), '--store', { fromStdin: options.store === '-' })
  const flow = options.flows === undefined ? name : await flowNamed(name, options.flows, context)
  const { schedule } = await import('../../board/index.ts')
  const { priority, queue, size, maxAttempts, expiresAfter } = options
  const post = {
    ...definedOnly({ name: options.name, priority, queue, size, maxAttempts }),
    ...(expiresAfter === undefined ? {} : { expiresAfter: parseDuration(expiresAfter, '--expires-after') }),
    ...(options.deadline === undefined ? {} : { deadline: parseDuration(options.deadline, '--deadline') }),
  }
  return schedule<object>(id, toSpec(rule, options), flow, store, { ...toScheduleOptions(options), post })
}

async function edit(options: EditOptions, context: CliContext, { args: [id = ''] }: Command): Promise<ExitCode> {
  const store =
    options.store === undefined
      ? undefined
      : jsonObject(await readStoreText(options, context), '--store', { fromStdin: options.store === '-' })
  await using opened = await openNamedBoard(options, context, { create: false })
  const { spec: known } = await opened.board.schedules.show(id)
  const spec = known && toChangedSpec(known, options)
  await opened.board.schedules.edit(id, { ...toScheduleOptions(options), ...definedOnly({ spec, store }) })
  await printSchedule(opened.board, id, options, context)
  return DONE
}

/** Returns the spec with the options that were given; undefined if none was. */
function toChangedSpec(known: NonNullable<ScheduleView['spec']>, options: EditOptions) {
  const { rule, zone, start, end, exclude, offset, fromCompletion } = options
  if (rule === undefined) {
    if (offset !== undefined || fromCompletion !== undefined)
      throw new InvalidArgument('--offset and --from-completion are parts of the rule: give --rule, too')
    const bounds = definedOnly({ zone, start, end, exclude })
    return Object.keys(bounds).length > 0 ? { ...known, ...bounds } : undefined
  }
  const { zone: knownZone, start: knownStart, end: knownEnd, exclude: knownExclude } = known
  const kept = definedOnly({ zone: knownZone, start: knownStart, end: knownEnd, exclude: knownExclude })
  return { ...kept, ...toSpec(rule, options) }
}

async function trigger(
  options: SharedOptions & { readonly store?: string },
  context: CliContext,
  { args: [id = ''] }: Command,
): Promise<ExitCode> {
  const text = options.store === undefined ? undefined : await readStoreText(options, context)
  const store = text === undefined ? undefined : jsonObject(text, '--store', { fromStdin: options.store === '-' })
  await using opened = await openNamedBoard(options, context, { create: false })
  await printLines(context, [await opened.board.schedules.trigger(id, definedOnly({ store }))])
  return DONE
}

async function backfill(
  { from, to, ...options }: SharedOptions & { readonly from: string; readonly to?: string },
  context: CliContext,
  { args: [id = ''] }: Command,
): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  await printLines(context, await opened.board.schedules.backfill(id, { from, ...definedOnly({ to }) }))
  return DONE
}

async function resumeOne(board: JobBoard, id: string, { catchUp }: { readonly catchUp?: boolean }): Promise<string> {
  const { passed, posted } = await board.schedules.resume(id, { catchUp: catchUp ? 'latest' : 'none' })
  if (passed === 0) return `schedule ${id} resumed`
  const made = posted === undefined ? 'none was caught up' : `job ${posted} catches up the newest`
  return `schedule ${id} resumed; ${passed} times had passed, ${made}`
}

/** Returns the work of a command that does the same for each id, and prints a line for each. */
function forEachId<O extends object>(
  work: (board: JobBoard, id: string, options: O & SharedOptions) => Promise<string>,
) {
  return async (options: O & SharedOptions, context: CliContext, { args: ids }: Command): Promise<ExitCode> => {
    await using opened = await openNamedBoard(options, context, { create: false })
    for (const id of ids) await printLines(context, [await work(opened.board, id, options)])
    return DONE
  }
}
