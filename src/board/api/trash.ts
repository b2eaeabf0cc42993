/** The trash of a board: lists, finds, restores and purges jobs there. */
import { parseReference } from '../../core/job-names.ts'
import type { Backend } from '../contract/index.ts'
import { TrashedJob } from '../jobs/trashed-job.ts'
import type { DependencyResolver } from './dependency-resolver.ts'
import { countTrash, type Page, readTrashPage, type TrashPageOptions } from './job-pages.ts'
import { assertUuid } from './options.ts'
import { type RestoreOptions, restore } from './restoring.ts'

export interface TrashBoxOptions {
  readonly backend: Backend
  readonly dependencies: DependencyResolver
}

/** The jobs in the trash of a board. */
export class TrashBox {
  readonly #options: TrashBoxOptions

  constructor(options: TrashBoxOptions) {
    this.#options = options
  }

  /** Yields the jobs, oldest first. */
  async *list(): AsyncGenerator<TrashedJob, void, undefined> {
    for await (const entry of this.#options.backend.trash.list()) yield new TrashedJob(entry)
  }

  /** Returns a part of the trash. @throws InvalidArgument, NotConnected */
  page(options: TrashPageOptions): Promise<Page<TrashedJob>> {
    return readTrashPage(options, this.#options.backend)
  }

  /** Counts the jobs. @throws NotConnected */
  count(): Promise<number> {
    return countTrash(this.#options.backend)
  }

  /** Returns the job with this reference or uuid; of several, the newest. @throws InvalidArgument for an empty text */
  async find(reference: string): Promise<TrashedJob | undefined> {
    assertUuid(reference)
    const { trash } = this.#options.backend
    const { uuid, id } = parseReference(reference)
    const named = id === undefined ? undefined : await trash.entry(id)
    const entry = named?.posting.uuid === uuid ? named : await trash.find(uuid)
    return entry && new TrashedJob(entry)
  }

  /** Restores a job, and returns the restored jobs. @throws as `JobBoard.restore` */
  restore(trashed: TrashedJob, options: RestoreOptions): Promise<readonly TrashedJob[]> {
    return restore(trashed, options, this.#options)
  }

  /** Deletes a job. @throws NotFound when it is no longer in the trash */
  async purge(trashed: TrashedJob): Promise<void> {
    await this.#options.backend.trash.purge(TrashedJob.entryFor(trashed))
  }
}
