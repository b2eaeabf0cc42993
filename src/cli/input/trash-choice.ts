/** Selection of jobs in the trash: by uuid, by name, by queue, by age, or all of them. */
import type { JobBoard, TrashedJob } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { type CliContext, DONE, type ExitCode } from '../context.ts'
import { assertUuidPart, isExact, matchesUuid, readTrash, requireOne } from '../find.ts'
import { openNamedBoard } from '../opening.ts'
import { type FlagTable, type FlagValues, shared } from './flags.ts'
import { confirm, forEachWithProgress } from './for-each.ts'
import { ageLimit, type SharedOptions, toQueueFilter } from './shared-options.ts'

/** The flags that select jobs in the trash. */
export const TRASH_CHOICE_FLAGS = {
  '--name <name>': 'jobs of this name',
  '--older-than <duration>': 'jobs that have been in the trash for longer than this',
  '--all': 'all jobs in the trash',
  ...shared('--yes'),
} satisfies FlagTable

type TrashChoice = FlagValues<typeof TRASH_CHOICE_FLAGS>

interface TrashSelection {
  readonly options: SharedOptions & TrashChoice
  /** The queue of the jobs, or a pattern. Not an option of {@link TrashChoice}: the flag `--queue` of a restore names another queue. */
  readonly inQueue?: string | undefined
  /** The flags that filter, for the error. */
  readonly filters: string
}

/**
 * Returns the selected jobs.
 *
 * @throws InvalidArgument if nothing is selected, or if two selections contradict each other
 * @throws NotFound for a uuid that is not there
 */
async function chooseTrashed(
  board: JobBoard,
  uuids: readonly string[],
  { options: { name, olderThan, all = false }, inQueue, filters }: TrashSelection,
): Promise<TrashedJob[]> {
  const filtered = name !== undefined || olderThan !== undefined || inQueue !== undefined
  if ([uuids.length > 0, filtered, all].filter(Boolean).length !== 1)
    throw new InvalidArgument(`select jobs by uuids, by ${filters}, or by --all: exactly one of them`)
  const before = ageLimit(olderThan ?? '0', '--older-than')
  const isInQueue = await toQueueFilter(inQueue)
  if (uuids.length === 0)
    return readTrash(
      board,
      (job) => (name === undefined || job.name === name) && isInQueue?.(job.queue) !== false && job.at <= before,
    )
  for (const uuid of uuids) assertUuidPart(uuid, 'change')
  const named = await readTrash(board, (job) => uuids.some((uuid) => matchesUuid(job, uuid, 'change')))
  const where = `in the trash of ${board.uri}`
  const found = uuids.map((uuid) =>
    requireOne(
      named.filter((job) => matchesUuid(job, uuid, 'change')),
      { uuid, where, purpose: 'change' },
    ),
  )
  return [...new Set(found)]
}

interface ForEachTrashedOptions extends TrashSelection {
  readonly uuids: readonly string[]
  /** The operation, for example `purging`, and its participle `purged`. */
  readonly what: string
  readonly done: string
  /** The verb for the question on a terminal, for example `purge`. */
  readonly verb: string
  /** Excludes jobs that were not named by a uuid, and reports which and why. */
  readonly keep?: (chosen: readonly TrashedJob[]) => Promise<readonly TrashedJob[]>
  /** Does the work; returns the lines to print instead of the uuid, if there are any. */
  readonly work: (board: JobBoard, job: TrashedJob) => Promise<string | undefined>
}

/** Does the work for each job and prints its uuid; if no job was selected, says that on standard error. */
export async function forEachTrashed(
  { uuids, what, done, verb, work, keep = async (chosen) => chosen, ...selection }: ForEachTrashedOptions,
  context: CliContext,
): Promise<ExitCode> {
  const { options } = selection
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  const found = await chooseTrashed(board, uuids, selection)
  const chosen = uuids.length > 0 ? found : await keep(found)
  if (found.length > 0 && chosen.length === 0) return DONE
  if (chosen.length === 0) {
    context.stderr.write(`no matching jobs in the trash of ${board.uri}\n`)
    return DONE
  }
  if (!uuids.every(isExact)) {
    const sure = await confirm(`${verb} ${chosen.join(', ')}?`, { yes: options.yes, offTerminal: 'proceed' }, context)
    if (!sure) return DONE
  }
  const doIt = async (job: TrashedJob) => {
    return (await work(board, job)) ?? true
  }
  return await forEachWithProgress(chosen, { what, done, work: doIt }, context)
}
