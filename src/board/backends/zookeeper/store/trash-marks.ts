/**
 * Jobs that boards without multi have trashed. Such a board marks the posting, because it cannot write two znodes at
 * once. A board that reads the mark reports that the job is trashed, and moves it into the trash. Any board may, and
 * several may at once.
 *
 * A board object with an open view reads all postings, and so finds all marks. With a closed view it reads them only where there
 * may be marks: a board without multi announces that in the data of the trash folder when it is opened.
 */
import type { ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type { BoardChange } from '../../../backend.ts'
import type { Layout } from './layout.ts'
import { type MarkedJob, missingAsUndefined } from './reader.ts'

const ANNOUNCEMENT = Buffer.from('marks')

/** Announces that postings of the board may be marked from now on, unless that was done before. */
export async function announceMarks(zookeeper: ZooKeeperDriver, layout: Layout): Promise<void> {
  if (!(await mayHaveMarks(zookeeper, layout)))
    await missingAsUndefined(zookeeper.setData(layout.trashFolder, ANNOUNCEMENT))
}

/**
 * Returns the time of the servers' clock in milliseconds since 1970. Only the answer to a write contains it: this announces the marks again.
 * Returns undefined for a board without a trash.
 */
export async function readServerTime(zookeeper: ZooKeeperDriver, layout: Layout): Promise<number | undefined> {
  return (await missingAsUndefined(zookeeper.setData(layout.trashFolder, ANNOUNCEMENT)))?.mtime
}

/** Returns whether postings of the board may be marked. */
export async function mayHaveMarks(zookeeper: Pick<ZooKeeperDriver, 'getData'>, layout: Layout): Promise<boolean> {
  const folder = await missingAsUndefined(zookeeper.getData(layout.trashFolder))
  return ANNOUNCEMENT.equals(folder?.data ?? new Uint8Array())
}

export interface TrashMarksOptions {
  /** Reads these postings, and calls {@link TrashMarks.noteMarked} for those that are marked. */
  readonly read: (ids: readonly string[]) => Promise<unknown>
  readonly move: (marked: MarkedJob) => Promise<void>
  readonly onChanges: (changes: readonly BoardChange[]) => void
  readonly onError: (error: unknown) => void
}

export class TrashMarks {
  readonly #options: TrashMarksOptions
  /** Postings that were written since they were last read here; most of them are claimed. */
  readonly #unread = new Set<string>()
  #isComplete = false
  readonly #moving = new Map<string, Promise<void>>()

  constructor(options: TrashMarksOptions) {
    this.#options = options
  }

  /** Whether the list of unread postings is complete, because every change since the last listing was received. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Adds all postings of a listing to the unread ones. All changes after it are received. */
  listed(ids: readonly string[]): void {
    for (const id of ids) this.#unread.add(id)
    this.#isComplete = true
  }

  /** Forgets the list, because changes may be missed from now on. */
  clear(): void {
    this.#unread.clear()
    this.#isComplete = false
  }

  /** Applies changes of the board to the list of unread postings. */
  changed(batch: readonly BoardChange[]): void {
    for (const { kind, id } of batch) {
      if (kind === 'updated') this.#unread.add(id)
      else if (kind === 'gone') this.#unread.delete(id)
    }
  }

  /** Notes that these postings were read. */
  noteRead(ids: readonly string[]): void {
    for (const id of ids) this.#unread.delete(id)
  }

  /** Reports a marked job as trashed, and moves it into the trash in the background. */
  noteMarked(marked: MarkedJob): void {
    const { move, onChanges, onError } = this.#options
    const { id } = marked
    onChanges([{ kind: 'trashed', id }])
    if (this.#moving.has(id)) return
    const moving = move(marked)
      .catch(onError)
      .finally(() => this.#moving.delete(id))
    this.#moving.set(id, moving)
  }

  /** Resolves when every job that was marked at the call is in the trash, as far as changes have been received. */
  async whenSettled(): Promise<void> {
    const unread = [...this.#unread]
    if (unread.length > 0) await this.#options.read(unread)
    await Promise.all(this.#moving.values())
  }

  /** Resolves when this job is in the trash, if it is marked. */
  async whenMoved(id: string): Promise<void> {
    await this.#options.read([id])
    await this.#moving.get(id)
  }
}
