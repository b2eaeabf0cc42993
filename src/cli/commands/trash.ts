/** The commands `jobboard trash …`: list, show, restore and purge jobs in the trash. */
import type { Command } from 'commander'
import type { JobBoard, TrashedJob } from '../../board/index.ts'
import { Redactor } from '../../core/redaction.ts'
import { otherQueue, type TrashView, trashReport, trashView } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../context.ts'
import { findTrashed } from '../find.ts'
import {
  eachAsJson,
  type FlagTable,
  type JsonOptions,
  type OptionsOf,
  once,
  QUEUE_FILTER_FLAG,
  shared,
  withFlags,
} from '../input/flags.ts'
import { definedOnly, redactedKeys, toQueueFilter } from '../input/shared-options.ts'
import { forEachTrashed, TRASH_CHOICE_FLAGS } from '../input/trash-choice.ts'
import { openNamedBoard } from '../opening.ts'
import { printDrawn, printJson, printLines, reportError } from '../output/output.ts'

const RESTORE_FLAGS = {
  ...TRASH_CHOICE_FLAGS,
  '--poison': 'with --name, --older-than or --all: also jobs whose last owners died while running them',
  '--dependents': 'also the jobs in the trash that depend on them, and those that depend on these',
  '--ignore-dependencies': 'run them without the jobs on which they depend',
  '--queue <name>': ['move them to this queue (default: each stays in its own)', once()],
} satisfies FlagTable

type RestoreOptions = OptionsOf<typeof RESTORE_FLAGS>

const LIST_FLAGS = { ...QUEUE_FILTER_FLAG, '--json': eachAsJson('job') } satisfies FlagTable

type ListOptions = OptionsOf<typeof LIST_FLAGS>

const PURGE_FLAGS = { ...TRASH_CHOICE_FLAGS, ...QUEUE_FILTER_FLAG } satisfies FlagTable

type PurgeOptions = OptionsOf<typeof PURGE_FLAGS>

const TRASHED_UUIDS_HELP = 'uuids of jobs, their first 13 characters or more, or their ends'

export function defineTrash(program: Command, run: RunAction): void {
  const trash = program
    .command('trash')
    .summary('list, restore and purge jobs in the trash')
    .description('Lists, shows, restores and purges jobs in the trash.')
    .helpCommand(false)
  withFlags(trash.command('list'), LIST_FLAGS)
    .summary('list the jobs in the trash')
    .description('Lists the jobs in the trash, oldest first, with who put them there and why.')
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard trash list --json --board zookeeper://127.0.0.1:2181/demo\n  $ jobboard trash list --queue reports',
    )
    .action(run(list))
  withFlags(trash.command('show'), shared('--json'))
    .summary('show a job in the trash')
    .description('Shows a job in the trash: who put it there and why, its failure, and every attempt.')
    .argument('<uuid>', 'uuid of the job, its beginning or its end')
    .addHelpText('after', '\nExample:\n  $ jobboard trash show 0199c0de')
    .action(run(show))
  withFlags(trash.command('restore'), RESTORE_FLAGS)
    .summary('put jobs back on the board')
    .description(
      'Puts jobs from the trash back on the board, behind the other jobs of their priority, with their uuid and without their attempts, and prints the uuid of each. Jobs whose last owners died while running them are excluded, unless they are named by uuid or --poison is given.',
    )
    .argument('[uuid...]', TRASHED_UUIDS_HELP)
    .addHelpText('after', '\nExample:\n  $ jobboard trash restore --name hello --dependents')
    .action(run(restore))
  withFlags(trash.command('purge'), PURGE_FLAGS)
    .summary('remove jobs for good')
    .description('Removes jobs from the trash for good, and prints the uuid of each.')
    .argument('[uuid...]', TRASHED_UUIDS_HELP)
    .addHelpText(
      'after',
      "\nExamples:\n  $ jobboard trash purge --older-than 30d\n  $ jobboard trash purge --queue 'tenant-*'",
    )
    .action(run(purge))
}

/** The part of a view that a table shows: failures and attempts of a long list need not stay in memory. */
type TrashRow = Pick<TrashView, 'uuid' | 'name' | 'queue' | 'at' | 'by' | 'reason'>

function toTrashRow({ uuid, name, queue, at, by, reason }: TrashView): TrashRow {
  return { uuid, name, ...otherQueue(queue), at, by, reason }
}

/** Lists the trash. Reports each entry that cannot be read in one line on standard error, and lists the rest. */
async function list(options: ListOptions, context: CliContext): Promise<ExitCode> {
  const isInQueue = await toQueueFilter(options.queue)
  const redaction = new Redactor(redactedKeys(options, context))
  await using opened = await openNamedBoard(options, context, { create: false })
  const rows: TrashRow[] = []
  for await (const job of opened.board.trashed()) {
    if (isInQueue?.(job.queue) === false) continue
    const view = trashView(job, redaction)
    if (options.json) await printJson(context, [view])
    else rows.push(toTrashRow(view))
  }
  if (!options.json && rows.length === 0)
    await printLines(context, [`${isInQueue ? 'no such jobs' : 'nothing'} in the trash of ${opened.board.uri}`])
  else if (!options.json) await printDrawn(context, ({ trashTable }, screen) => trashTable(rows, screen))
  for (const error of opened.unreadable) reportError(error, context)
  return opened.unreadable.length > 0 ? FAILED : DONE
}

/** Shows one trashed job. @throws NotFound if it is not in the trash */
async function show(options: JsonOptions, context: CliContext, { args: [uuid = ''] }: Command): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  await using opened = await openNamedBoard(options, context, { create: false })
  const job = trashReport(await findTrashed(opened.board, uuid), redaction)
  if (options.json) await printJson(context, [job])
  else await printDrawn(context, ({ reportLines }, screen) => reportLines(job.uuid, { job }, screen))
  return DONE
}

async function purge(options: PurgeOptions, context: CliContext, { args: uuids }: Command): Promise<ExitCode> {
  const inQueue = options.queue
  const work = async (board: JobBoard, job: TrashedJob) => {
    await board.purge(job)
    return undefined
  }
  return forEachTrashed(
    {
      ...{ uuids, options, inQueue, filters: '--name, --queue and --older-than' },
      ...{ what: 'purging', done: 'purged', verb: 'purge', work },
    },
    context,
  )
}

async function restore(options: RestoreOptions, context: CliContext, { args: uuids }: Command): Promise<ExitCode> {
  const keep = async (chosen: readonly TrashedJob[]) => (options.poison ? chosen : excludeSuspects(chosen, context))
  return forEachTrashed(
    {
      ...{ uuids, options, filters: '--name and --older-than' },
      ...{ what: 'restoring', done: 'restored', verb: 'restore', keep },
      work: restoreInOrder(options),
    },
    context,
  )
}

/** Returns what restores a job, once the jobs are restored on which it depends: jobs that went to the trash before are begun before. */
function restoreInOrder({
  dependents = false,
  ignoreDependencies = false,
  queue,
}: RestoreOptions): (board: JobBoard, job: TrashedJob) => Promise<string> {
  const restoring = new Map<string, Promise<readonly TrashedJob[]>>()
  return async (board, job) => {
    const others = job.after.flatMap(({ uuid }) => restoring.get(uuid) ?? [])
    const restored = Promise.allSettled(others).then(() =>
      board.restore(job, { dependents, ignoreDependencies, ...definedOnly({ queue }) }),
    )
    restoring.set(job.uuid, restored)
    return (await restored).map(({ uuid }) => uuid).join('\n')
  }
}

/**
 * Excludes jobs that would kill conductors again, and reports that: a caller who restores everything hardly means
 * those.
 */
async function excludeSuspects(chosen: readonly TrashedJob[], { stderr }: CliContext): Promise<readonly TrashedJob[]> {
  const { isSuspect } = await import('../../board/internal.ts')
  const kept = chosen.filter((job) => !isSuspect(job))
  const left = chosen.length - kept.length
  if (left > 0) {
    const jobs = left === 1 ? '1 job stays in the trash: its' : `${left} jobs stay in the trash: their`
    stderr.write(`${jobs} last owners died while running it; restore it by its uuid, or add --poison\n`)
  }
  return kept
}
