/**
 * The state of the board, for a client that has one-shot watches only. It comes from listings, each of which is
 * compared with the one before. A watch on the board's path shows when to list again; a watch on each posting that was
 * read shows when it is written.
 *
 * Answers and watch events of a session arrive in the order of the server's transactions, so changes of a job are
 * reported in order: from listings, from events, and from the answers to operations of this process. While such an
 * operation on a job is in progress the job is **own work**: the operation reports its changes, and listings do not.
 *
 * Two listings do not show a change that was undone between them, such as a claim that was abandoned at once. The write
 * of the posting is reported nevertheless, so no cached content of it is used.
 */
import { monotonic, startTimer } from '../../../../core/time.ts'
import type {
  ReadData,
  ReadOptions,
  Stat,
  WatchEvent,
  WatchLost,
  ZooKeeperDriver,
} from '../../../../zookeeper/index.ts'
import type { BoardChange, BoardListing } from '../../../backend.ts'
import { compareDigits, isJob, type Layout, toLockedJob } from '../store/layout.ts'
import { deniedAsValue, missingAsUndefined, type NodeReadResult } from '../store/reader.ts'

/**
 * The number of postings that are watched: when the C client connects to another server it sets all its watches in one
 * request. The other postings are read again when their content is needed.
 */
const MAX_WATCHED = 4_096

export interface BoardSnapshotOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'exists' | 'getChildren' | 'getData'>
  readonly layout: Layout
  readonly onChanges: (changes: readonly BoardChange[]) => void
  /** Returns whether a posting is marked as trashed. */
  readonly isMarked: (id: string, data: Uint8Array | null) => boolean
  /** Called when a read in the background fails. */
  readonly onError: (error: unknown) => void
}

/** The child counts in the Stats of the folders. */
export interface FolderVersions {
  readonly jobs: number
  readonly cancellations: number
}

interface FolderNames {
  readonly jobs: ReadonlySet<string>
  readonly locks: ReadonlySet<string>
  readonly cancelled: ReadonlySet<string>
}

export class BoardSnapshot {
  readonly #options: BoardSnapshotOptions
  readonly #jobs = new Set<string>()
  readonly #claimed = new Set<string>()
  readonly #cancelled = new Set<string>()
  /** Jobs that are trashed, but still on the board's path. */
  readonly #marked = new Set<string>()
  /** Jobs on which an operation of this process is in progress. */
  readonly #ownWork = new Set<string>()
  /** Postings with a watch, which were requested or read since they were last written. */
  readonly #watched = new Map<string, 'asked' | 'read'>()
  /** Postings that were read without a watch. */
  readonly #unwatched = new Set<string>()
  /** The folders whose children are watched. */
  readonly #armed = new Set<string>()
  #newest = ''
  #versions: FolderVersions | undefined
  #running: Promise<unknown> | undefined
  #next: Promise<void> | undefined
  #refreshTimer: NodeJS.Timeout | undefined
  #lastListingMs = 0

  constructor(options: BoardSnapshotOptions) {
    this.#options = options
  }

  /** The child counts of the newest listing. */
  get versions(): FolderVersions | undefined {
    return this.#versions
  }

  /** The posting with the largest number that was ever listed. */
  get newest(): string {
    return this.#newest
  }

  get marked(): ReadonlySet<string> {
    return this.#marked
  }

  /** The jobs whose postings may have been written since they were read here. */
  get unwatchedIds(): string[] {
    return [...this.#jobs].filter((id) => this.#watched.get(id) !== 'read')
  }

  /** Forgets all watches, because they ended with their session. */
  forgetWatches(): void {
    this.#watched.clear()
    this.#unwatched.clear()
    this.#armed.clear()
  }

  stop(): void {
    clearTimeout(this.#refreshTimer)
    this.#refreshTimer = undefined
  }

  /** Lists the whole board. Later changes are reported relative to this listing. */
  list(): Promise<BoardListing> {
    return this.#runExclusive(async () => {
      const [names, trash] = await Promise.all([
        this.#names(),
        this.#options.zookeeper.getChildren(this.#options.layout.trashFolder),
      ])
      for (const id of this.#marked) if (!names.jobs.has(id)) this.#marked.delete(id)
      const jobs = [...names.jobs].filter((id) => !this.#marked.has(id))
      replaceAll(this.#jobs, jobs)
      replaceAll(
        this.#claimed,
        jobs.filter((id) => names.locks.has(id)),
      )
      replaceAll(this.#cancelled, names.cancelled)
      return {
        jobs,
        claimed: new Set(this.#claimed),
        trashed: new Set([...trash.names, ...this.#marked]),
        cancelled: names.cancelled,
      }
    })
  }

  /** Resolves when all changes up to the call are reported. */
  whenFresh(): Promise<void> {
    this.#next ??= this.#runExclusive(() => {
      this.#next = undefined
      return this.#compare()
    })
    return this.#next
  }

  /** Lists the board again soon, because something may have changed. At most half of the time is spent on listings. */
  refreshSoon(): void {
    this.#refreshTimer ??= startTimer(() => {
      this.#refreshTimer = undefined
      this.whenFresh().catch(this.#options.onError)
    }, this.#lastListingMs)
  }

  /** Reports updates of unclaimed jobs whose postings were read without a watch: they may have been written since. */
  reportUnwatched(): void {
    const doubted = [...this.#unwatched].filter((id) => this.#jobs.has(id) && !this.#claimed.has(id))
    this.#unwatched.clear()
    if (doubted.length > 0) this.#options.onChanges(doubted.map((id) => ({ kind: 'updated', id })))
  }

  /** Reads znodes, and sets a watch on those that are postings. */
  readonly readMany = (paths: readonly string[]): Promise<NodeReadResult[]> => {
    const { zookeeper, layout } = this.#options
    return Promise.all(
      paths.map((path) => {
        const id = layout.toJobId(path)
        const isPosting = path === layout.posting(id) && isJob(id)
        return deniedAsValue(isPosting ? this.#readPosting(id) : missingAsUndefined(zookeeper.getData(path)))
      }),
    )
  }

  /** Returns the Stat of a posting that was just created, and watches the posting from then on. */
  noteCreated(id: string): Promise<Stat | undefined> {
    const { zookeeper, layout } = this.#options
    return this.#watching(id, (options) => zookeeper.exists(layout.posting(id), options))
  }

  /** Marks the job as own work from now until the result is disposed: the caller reports its changes itself. */
  beginWork(id: string): Disposable {
    this.#ownWork.add(id)
    return {
      [Symbol.dispose]: () => {
        this.#ownWork.delete(id)
        this.refreshSoon()
      },
    }
  }

  /** Applies a change that this process made, or saw in an answer, and reports it if it is new. */
  report(kind: BoardChange['kind'], id: string): void {
    if (this.#applyChange(kind, id)) this.#options.onChanges([{ kind, id }])
  }

  /** Notes that a posting is marked as trashed, and reports it. */
  noteMarked(id: string): void {
    this.#marked.add(id)
    if (!this.#jobs.has(id)) return
    this.#options.onChanges([{ kind: 'trashed', id }])
    this.report('gone', id)
  }

  // --- Listings -----------------------------------------------------------------------------------------------------

  /** Runs the work when earlier listings are over, and measures how long it takes. */
  #runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = (this.#running ?? Promise.resolve())
      .catch(() => undefined)
      .then(async () => {
        const start = monotonic()
        try {
          return await work()
        } finally {
          this.#lastListingMs = monotonic() - start
        }
      })
    this.#running = done
    return done
  }

  /**
   * Lists the board and reports the differences. The trash and the posting of a job are read after the listing, so they
   * are at least as new.
   */
  async #compare(): Promise<void> {
    const names = await this.#names()
    for (const id of this.#marked) if (!names.jobs.has(id)) this.#marked.delete(id)
    for (const id of names.jobs) if (!this.#marked.has(id)) this.report('posted', id)
    const gone = [...this.#jobs].filter((id) => !names.jobs.has(id) && !this.#ownWork.has(id))
    const released: string[] = []
    for (const id of this.#jobs) {
      if (this.#ownWork.has(id) || !names.jobs.has(id)) continue
      if (names.locks.has(id)) this.report('claimed', id)
      else if (this.#claimed.has(id)) released.push(id)
    }
    for (const id of this.#cancelled) if (!names.cancelled.has(id)) this.#cancelled.delete(id)
    for (const id of names.cancelled) this.report('cancelled', id)
    await Promise.all([...gone.map((id) => this.#handleRemoved(id)), ...released.map((id) => this.#handleReleased(id))])
  }

  async #handleRemoved(id: string): Promise<void> {
    const { zookeeper, layout } = this.#options
    const trashed = await zookeeper.exists(layout.trash(id))
    if (this.#ownWork.has(id) || !this.#jobs.has(id)) return
    if (trashed) this.#options.onChanges([{ kind: 'trashed', id }])
    this.report('gone', id)
  }

  /**
   * Reports a release. The last write of the owner is not known unless the posting is watched, so the posting is read
   * first.
   */
  async #handleReleased(id: string): Promise<void> {
    const there = this.#watched.get(id) === 'read' || (await this.#readPosting(id))
    if (this.#ownWork.has(id) || !this.#claimed.has(id)) return
    if (!there) {
      await this.#handleRemoved(id)
      return
    }
    if (typeof there === 'object' && this.#options.isMarked(id, there.data)) {
      this.noteMarked(id)
      return
    }
    this.#options.onChanges([{ kind: 'updated', id }])
    this.report('released', id)
  }

  async #names(): Promise<FolderNames> {
    const { path, cancelFolder } = this.#options.layout
    const [board, cancel] = await Promise.all([this.#children(path), this.#children(cancelFolder)])
    for (const name of board.names) if (isJob(name) && compareDigits(name, this.#newest) > 0) this.#newest = name
    this.#versions = { jobs: board.stat.cversion, cancellations: cancel.stat.cversion }
    return {
      jobs: new Set(board.names.filter(isJob)),
      locks: new Set(board.names.flatMap((name) => toLockedJob(name) ?? [])),
      cancelled: new Set(cancel.names.filter(isJob)),
    }
  }

  async #children(folder: string): ReturnType<ZooKeeperDriver['getChildren']> {
    const { zookeeper } = this.#options
    if (this.#armed.has(folder)) return zookeeper.getChildren(folder)
    this.#armed.add(folder)
    const watch = () => {
      this.#armed.delete(folder)
      this.refreshSoon()
    }
    return zookeeper.getChildren(folder, { watch }).catch((error: unknown) => {
      this.#armed.delete(folder)
      throw error
    })
  }

  // --- Postings -----------------------------------------------------------------------------------------------------

  #readPosting(id: string): Promise<ReadData | undefined> {
    const path = this.#options.layout.posting(id)
    return this.#watching(id, (options) => missingAsUndefined(this.#options.zookeeper.getData(path, options)))
  }

  /** Reads with a watch. The watch counts from the request on: an event may arrive together with the answer. */
  async #watching<T>(id: string, ask: (options: ReadOptions) => Promise<T | undefined>): Promise<T | undefined> {
    if (this.#watched.has(id)) return ask({})
    if (this.#watched.size >= MAX_WATCHED) {
      this.#unwatched.add(id)
      return ask({})
    }
    this.#watched.set(id, 'asked')
    let found: T | undefined
    try {
      found = await ask({ watch: (event) => this.#handleWritten(id, event) })
      return found
    } finally {
      if (found === undefined) this.#watched.delete(id)
      else if (this.#watched.has(id)) this.#watched.set(id, 'read')
    }
  }

  #handleWritten(id: string, event: WatchEvent | WatchLost): void {
    this.#watched.delete(id)
    if (event.type === 'dataChanged' && this.#jobs.has(id) && !this.#ownWork.has(id))
      this.#options.onChanges([{ kind: 'updated', id }])
  }

  /** Applies a change. @returns whether it is new */
  #applyChange(kind: BoardChange['kind'], id: string): boolean {
    switch (kind) {
      case 'posted':
        return addIfMissing(this.#jobs, id)
      case 'claimed':
        return this.#jobs.has(id) && addIfMissing(this.#claimed, id)
      case 'released':
        return this.#claimed.delete(id)
      case 'cancelled':
        return addIfMissing(this.#cancelled, id)
      case 'gone':
        this.#claimed.delete(id)
        this.#watched.delete(id)
        this.#unwatched.delete(id)
        return this.#jobs.delete(id)
      default:
        return this.#jobs.has(id)
    }
  }
}

function addIfMissing(set: Set<string>, id: string): boolean {
  if (set.has(id)) return false
  set.add(id)
  return true
}

function replaceAll(set: Set<string>, ids: Iterable<string>): void {
  set.clear()
  for (const id of ids) set.add(id)
}
