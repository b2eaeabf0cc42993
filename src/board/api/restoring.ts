/** Restores jobs from the trash, with the jobs that went there because of them. */
import { Duplicate, InvalidArgument, InvalidState, NotFound } from '../../core/errors.ts'
import { assertBoolean, assertOptions } from '../../core/options.ts'
import type { Backend } from '../contract/index.ts'
import { TrashedJob } from '../jobs/trashed-job.ts'
import { moveTo } from '../model/posting/posting.ts'
import { queueProblem } from '../model/queues.ts'
import type { DependencyResolver } from './dependency-resolver.ts'
import { toRestored } from './posting/taken-key.ts'

/** The jobs to restore with one, and whether it waits for others. */
export interface RestoreOptions {
  /** Whether the jobs in the trash that depend on the job, directly or through others, are restored with it; false by default. */
  readonly dependents?: boolean
  /** Whether the job is run without the jobs on which it depends, for example because they are not known any more; false by default. */
  readonly ignoreDependencies?: boolean
  /** The queue of the job from now on; by default it stays. Jobs that are restored because they depend on it keep theirs. */
  readonly queue?: string
}

export interface RestoringContext {
  readonly backend: Pick<Backend, 'trash'>
  readonly dependencies: DependencyResolver
}

/** Restores the job, and with `dependents` the others; returns the restored jobs. @throws as `JobBoard.restore` */
export async function restore(
  trashed: TrashedJob,
  options: RestoreOptions,
  context: RestoringContext,
): Promise<readonly TrashedJob[]> {
  assertOptions(options, { dependents: true, ignoreDependencies: true, queue: true }, 'restore')
  const problem = options.queue === undefined ? undefined : queueProblem(options.queue)
  if (problem !== undefined) throw new InvalidArgument(`restore: ${problem}`)
  for (const name of ['dependents', 'ignoreDependencies'] as const) assertBoolean(options[name], `restore: ${name}`)
  await restoreOne(trashed, options, context)
  return options.dependents ? [trashed, ...(await restoreDependents(trashed, context))] : [trashed]
}

async function restoreOne(
  trashed: TrashedJob,
  { ignoreDependencies = false, queue }: RestoreOptions,
  { backend, dependencies }: RestoringContext,
): Promise<void> {
  const entry = TrashedJob.entryFor(trashed)
  const restored = toRestored(entry.posting)
  const posting = queue === undefined ? restored : moveTo(restored, queue)
  const { uuid, name, after } = posting
  await dependencies.register(
    [{ uuid, name, isRestored: true, ...(after && !ignoreDependencies ? { after } : {}) }],
    ([open = []]) => backend.trash.restore(entry, posting, open.length === 0 ? {} : { after: open }),
  )
}

/** Restores the jobs that depend on a restored one. Those that depend on others in the trash, too, stay there. */
async function restoreDependents(first: TrashedJob, context: RestoringContext): Promise<readonly TrashedJob[]> {
  const dependents = new Map<string, TrashedJob[]>()
  for await (const entry of context.backend.trash.list()) {
    const job = new TrashedJob(entry)
    for (const { uuid } of job.after) dependents.set(uuid, [...(dependents.get(uuid) ?? []), job])
  }
  const restored: TrashedJob[] = []
  const seen = new Set<string>()
  const queue = [first]
  let refused: Error | undefined
  for (const job of queue) {
    for (const dependent of dependents.get(job.uuid) ?? []) {
      if (seen.has(dependent.uuid)) continue
      const refusal = await tryToRestore(dependent, context)
      if (refusal === 'left' || refusal instanceof InvalidState) continue
      seen.add(dependent.uuid)
      if (refusal) {
        refused ??= refusal
        continue
      }
      restored.push(dependent)
      queue.push(dependent)
    }
  }
  if (refused) throw refused
  return restored
}

/**
 * Restores a job among others. Returns undefined where it is restored; `left` where it has left the trash meanwhile; and otherwise why it stays
 * there: InvalidState where it depends on another job in the trash, NotFound where one of those jobs is not known any more, Duplicate. The others
 * can be restored all the same.
 *
 * @throws what concerns the others, too, such as NotConnected
 */
export async function tryToRestore(job: TrashedJob, context: RestoringContext): Promise<Error | 'left' | undefined> {
  try {
    await restoreOne(job, {}, context)
    return undefined
  } catch (error) {
    if (error instanceof InvalidState || error instanceof Duplicate) return error
    if (!(error instanceof NotFound)) throw error
    return (await context.backend.trash.entry(TrashedJob.entryFor(job).id)) ? error : 'left'
  }
}
