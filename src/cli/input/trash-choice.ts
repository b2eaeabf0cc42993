/** Selection of jobs in the trash: by uuid, by name, by age, or all of them. */
import type { Command } from 'commander'
import type { JobBoard, TrashedJob } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { assertUuidPart, matchesUuid, readTrash, requireOne } from '../locate.ts'
import { ageLimit } from './shared-options.ts'

export interface TrashChoice {
  readonly name?: string
  readonly olderThan?: string
  readonly all?: boolean
  readonly yes?: boolean
}

export function addTrashChoice(command: Command): Command {
  return command
    .argument('[uuid...]', 'uuids of jobs, their first 13 characters or more, or their ends')
    .option('--name <name>', 'jobs of this name')
    .option('--older-than <duration>', 'jobs that have been in the trash for longer than this')
    .option('--all', 'all jobs in the trash')
    .option('--yes', 'do not ask on a terminal for confirmation of a part of a uuid')
}

/**
 * Returns the selected jobs.
 *
 * @throws InvalidArgument if nothing is selected, or if two selections contradict each other
 * @throws NotFound for a uuid that is not there
 */
export async function chooseTrashed(
  board: JobBoard,
  uuids: readonly string[],
  { name, olderThan, all = false }: TrashChoice,
): Promise<TrashedJob[]> {
  const filtered = name !== undefined || olderThan !== undefined
  if ([uuids.length > 0, filtered, all].filter(Boolean).length !== 1)
    throw new InvalidArgument('select jobs by uuids, by --name and --older-than, or by --all: exactly one of them')
  const before = ageLimit(olderThan ?? '0', '--older-than')
  if (uuids.length === 0)
    return readTrash(board, (job) => (name === undefined || job.name === name) && job.at <= before)
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
