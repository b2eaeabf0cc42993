/** The commands `jobboard batch …`: create, list, show, seal, await, cancel and retry batches of jobs. */
import type { Command } from 'commander'
import type { Batch, BatchCallback } from '../../../board/index.ts'
import { InvalidArgument } from '../../../core/errors.ts'
import { Redactor } from '../../../core/redaction.ts'
import { batchView, readBatchView, trashView } from '../../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../../context.ts'
import { findBatch, readTrash } from '../../find.ts'
import {
  count,
  eachAsJson,
  type FlagTable,
  type JsonOptions,
  type OptionsOf,
  shared,
  withFlags,
} from '../../input/flags.ts'
import { confirm } from '../../input/for-each.ts'
import {
  definedOnly,
  jsonObject,
  parseDuration,
  redactedKeys,
  toUnlimitedWait,
  UNLIMITED_WAIT_NOTICE,
} from '../../input/shared-options.ts'
import { openNamedBoard } from '../../opening.ts'
import { printDrawn, printJson, printLines } from '../../output/output.ts'

/** The most batches that one read returns. */
const MAX_LIMIT = 10_000
const UUID_HELP = 'uuid of the batch, its beginning or its end'
const UUID_TO_CHANGE_HELP = 'uuid of the batch, its first 13 characters or more, or its end'

const JSON_FLAG = { '--json': 'print the batch as a JSON object' } satisfies FlagTable

const CREATE_FLAGS = {
  '--on-done <flow>': 'flow of the job that is posted when all jobs are done',
  '--on-failed <flow>': 'flow of the job that is posted when all have ended, some in the trash',
  '--store <json>': 'the inputs of these flows, a JSON object (default: {})',
  '--uuid <uuid>': 'uuid of the batch (default: a new one)',
  '--key <text>': 'name of its work: if the board keeps a batch with this key, print that batch and create none',
  ...JSON_FLAG,
} satisfies FlagTable

type CreateOptions = OptionsOf<typeof CREATE_FLAGS>

const LIST_FLAGS = {
  '--limit <n>': [`how many (default: 100, at most ${MAX_LIMIT})`, count({ most: MAX_LIMIT })],
  '--json': eachAsJson('batch'),
} satisfies FlagTable

type ListOptions = OptionsOf<typeof LIST_FLAGS>

const SHOW_FLAGS = {
  '--failed': 'also list its jobs in the trash, with the reasons',
  ...shared('--json'),
} satisfies FlagTable

type ShowOptions = OptionsOf<typeof SHOW_FLAGS>

const WAIT_FLAGS = {
  ...shared('--within <duration>'),
  ...JSON_FLAG,
} satisfies FlagTable

type WaitOptions = OptionsOf<typeof WAIT_FLAGS>

const CANCEL_FLAGS = {
  '--reason <text>': 'reason for people, kept with each job in the trash (default: cancelled)',
  '--yes': 'do not ask; needed where there is no terminal',
  ...JSON_FLAG,
} satisfies FlagTable

type CancelOptions = OptionsOf<typeof CANCEL_FLAGS>

export function defineBatch(program: Command, run: RunAction): void {
  const batch = program
    .command('batch')
    .summary('count groups of jobs to their ends')
    .description('Creates, shows and changes batches: groups of jobs that are counted to the end of the last one.')
    .helpCommand(false)
  withFlags(batch.command('create'), CREATE_FLAGS)
    .summary('create a batch')
    .description(
      'Creates a batch, and prints its uuid. Post its jobs with post --batch, and seal it when there are no more. When the last of its jobs ' +
        'has ended, the batch ends, and posts the job of --on-done or --on-failed.',
    )
    .argument('<name>', 'name of the batch, for people')
    .addHelpText('after', '\nExample:\n  $ jobboard batch create import --on-done report')
    .action(run(create))
  withFlags(batch.command('list'), LIST_FLAGS)
    .summary('list the batches')
    .description('Lists the newest batches, newest first, with their states and the numbers of their jobs.')
    .addHelpText('after', '\nExample:\n  $ jobboard batch list --board zookeeper://127.0.0.1:2181/demo')
    .action(run(list))
  withFlags(batch.command('show'), SHOW_FLAGS)
    .summary('show how far a batch is')
    .description('Shows a batch: its state, and how many of its jobs are done, failed and open.')
    .argument('<uuid>', UUID_HELP)
    .addHelpText('after', '\nExample:\n  $ jobboard batch show 0199c0de --failed')
    .action(run(show))
  withFlags(batch.command('seal'), JSON_FLAG)
    .summary('add no more jobs')
    .description('Seals a batch: only its own jobs can add jobs to it from now on, and it ends with the last of them.')
    .argument('<uuid>', UUID_TO_CHANGE_HELP)
    .addHelpText('after', '\nExample:\n  $ jobboard batch seal 0199c0de-85f8')
    .action(run(seal))
  withFlags(batch.command('wait'), WAIT_FLAGS)
    .summary('wait until a batch has ended')
    .description(
      'Waits until a batch has ended, and prints how: done, failed or cancelled. The exit code is 0 for done, and 1 otherwise, also if it ' +
        'has not ended when --within is over.',
    )
    .argument('<uuid>', UUID_HELP)
    .addHelpText('after', '\nExample:\n  $ jobboard batch wait 0199c0de --within 1h')
    .action(run(wait))
  withFlags(batch.command('cancel'), CANCEL_FLAGS)
    .summary('cancel a batch and its jobs')
    .description('Cancels a batch: it takes no more jobs and posts no job at its end, and its jobs are cancelled.')
    .argument('<uuid>', UUID_TO_CHANGE_HELP)
    .addHelpText('after', "\nExample:\n  $ jobboard batch cancel 0199c0de-85f8 --reason 'wrong file'")
    .action(run(cancel))
  withFlags(batch.command('retry'), { '--json': eachAsJson('job') })
    .summary('put the failed jobs of a batch back on the board')
    .description(
      'Puts the jobs of a batch that are in the trash back on the board, and prints the uuid of each. The batch ends again with the last of them.',
    )
    .argument('<uuid>', UUID_TO_CHANGE_HELP)
    .addHelpText('after', '\nExample:\n  $ jobboard batch retry 0199c0de-85f8')
    .action(run(retry))
}

async function create(options: CreateOptions, context: CliContext, { args: [name = ''] }: Command): Promise<ExitCode> {
  const { uuid, key, onDone, onFailed } = options
  const store = jsonObject(options.store ?? '{}', '--store')
  if (options.store !== undefined && onDone === undefined && onFailed === undefined)
    throw new InvalidArgument('--store is for the flow of --on-done or --on-failed: name one')
  const toCallback = (flow: string | undefined): BatchCallback | undefined =>
    flow === undefined ? undefined : { flow, store }
  const redaction = new Redactor(redactedKeys(options, context))
  const callbacks = definedOnly({ onDone: toCallback(onDone), onFailed: toCallback(onFailed) })
  await using opened = await openNamedBoard(options, context)
  const batch = await opened.board.batch({ name, ...callbacks, ...definedOnly({ uuid, key }) })
  if (options.json) await printJson(context, [batchView(await readBatchView(batch), redaction)])
  else await printLines(context, [batch.uuid])
  return DONE
}

async function list(options: ListOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const redaction = new Redactor(redactedKeys(options, context))
  const batches = [...(await board.batches(definedOnly({ limit: options.limit })))]
  if (options.json) {
    // One after the other: the data of all of them need not fit into memory at once.
    for (let batch = batches.shift(); batch; batch = batches.shift())
      await printJson(context, [batchView(batch, redaction)])
  } else if (batches.length === 0) await printLines(context, [`no batches on ${board.uri}`])
  else {
    const shown = batches.map((batch) => batchView({ ...batch, meta: {} }, redaction))
    await printDrawn(context, ({ batchesTable }, screen) => batchesTable(shown, screen))
  }
  return DONE
}

async function show(options: ShowOptions, context: CliContext, { args: [uuid = ''] }: Command): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const batch = await findBatch(board, uuid, 'look')
  const view = batchView(await readBatchView(batch), redaction)
  const trashed = options.failed ? await readTrash(board, (job) => job.batch === batch.uuid) : undefined
  const failed = trashed?.map((job) => trashView(job, redaction))
  if (options.json) await printJson(context, [{ ...view, ...(failed ? { failedJobs: failed } : {}) }])
  else {
    await printDrawn(context, ({ batchLines }, screen) => batchLines(view, screen))
    if (failed && failed.length > 0)
      await printDrawn(context, ({ trashTable }, screen) => ['', ...trashTable(failed, screen)])
  }
  return DONE
}

async function seal(options: JsonOptions, context: CliContext, { args: [uuid = ''] }: Command): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const batch = await findBatch(opened.board, uuid, 'change')
  await batch.seal()
  return printBatch(batch, options, context)
}

/** @throws Timeout if the batch has not ended in time */
async function wait(options: WaitOptions, context: CliContext, command: Command): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  const limits = options.within === undefined ? {} : { timeout: parseDuration(options.within, '--within') }
  await using opened = await openNamedBoard(options, context, { create: false })
  const batch = await findBatch(opened.board, command.args[0] ?? '', 'look')
  if (toUnlimitedWait(command).endless) context.stderr.write(UNLIMITED_WAIT_NOTICE)
  const state = await batch.wait(limits)
  if (options.json) await printJson(context, [batchView(await readBatchView(batch), redaction)])
  else await printLines(context, [state])
  return state === 'done' ? DONE : FAILED
}

async function cancel(options: CancelOptions, context: CliContext, { args: [uuid = ''] }: Command): Promise<ExitCode> {
  const { yes, reason } = options
  await using opened = await openNamedBoard(options, context, { create: false })
  const batch = await findBatch(opened.board, uuid, 'change')
  const { open } = await batch.progress()
  const question = `cancel ${batch}, ${open} of whose jobs have not ended?`
  if (!(await confirm(question, { yes, offTerminal: 'refuse' }, context))) return DONE
  await batch.cancel(definedOnly({ reason }))
  return printBatch(batch, options, context)
}

async function retry(options: JsonOptions, context: CliContext, { args: [uuid = ''] }: Command): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const batch = await findBatch(opened.board, uuid, 'change')
  const restored = await batch.retryFailed()
  if (options.json)
    await printJson(
      context,
      restored.map(({ uuid: job, name }) => ({ uuid: job, name })),
    )
  else if (restored.length === 0) context.stderr.write(`no job of batch ${batch.uuid} is in the trash\n`)
  else
    await printLines(
      context,
      restored.map((job) => job.uuid),
    )
  return DONE
}

async function printBatch(batch: Batch, options: JsonOptions, context: CliContext): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  const view = batchView(await readBatchView(batch), redaction)
  if (options.json) await printJson(context, [view])
  else await printDrawn(context, ({ batchLines }, screen) => batchLines(view, screen))
  return DONE
}
