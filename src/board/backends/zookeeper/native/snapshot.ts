/**
 * What is on the board, as a client sees it that has one-shot watches only: by listings, which are compared with the one
 * before. A watch on the board's path says when to list again; one on each posting that was read, that it was written.
 *
 * Answers and watch events of a session come in the order of what the server has done, so what is told of a job is told in
 * order: by its listings, by the events, and by the answers to what this process itself does with it. While that is under
 * way the job is **ours**: it is told of by whoever does it, not by what a listing shows of it in between.
 *
 * Two listings do not show what was undone between them, such as a claim that was given back at once: that the posting was
 * written is told all the same, so nobody believes what it said before.
 */
import { monotonic } from '../../../../core/time.ts'
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
 * So many postings are watched: when the C client comes to another server it asks for all its watches in one request. Of the
 * others is found out when they are wanted.
 */
const MAX_WATCHED = 4_096

export interface BoardSnapshotOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'exists' | 'getChildren' | 'getData'>
  readonly layout: Layout
  readonly onChanges: (changes: readonly BoardChange[]) => void
  /** Whether a posting is marked as trashed. */
  readonly isMarked: (id: string, data: Uint8Array | null) => boolean
  /** A look in the background failed. */
  readonly onError: (error: unknown) => void
}

/** What the Stats of the folders counted. */
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
  /** On the board's path still, and trashed. */
  readonly #marked = new Set<string>()
  /** This process is at work on them. */
  readonly #ownWork = new Set<string>()
  /** Asked for, or read, since they were last written, with a watch that tells when they are. */
  readonly #watched = new Map<string, 'asked' | 'read'>()
  /** Read without. */
  readonly #unwatched = new Set<string>()
  /** Folders whose children are watched. */
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

  /** Of the newest listing. */
  get versions(): FolderVersions | undefined {
    return this.#versions
  }

  /** The posting with the largest number that was ever seen. */
  get newest(): string {
    return this.#newest
  }

  get marked(): ReadonlySet<string> {
    return this.#marked
  }

  /** Jobs whose postings may have been written since they were read here. */
  get unwatchedIds(): string[] {
    return [...this.#jobs].filter((id) => this.#watched.get(id) !== 'read')
  }

  /** Another session: nothing is watched any more. */
  forgetWatches(): void {
    this.#watched.clear()
    this.#unwatched.clear()
    this.#armed.clear()
  }

  stop(): void {
    clearTimeout(this.#refreshTimer)
    this.#refreshTimer = undefined
  }

  /** Everything anew. Later changes are told against it. */
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

  /** Resolves when everything is told that was on the board at the call. */
  whenFresh(): Promise<void> {
    this.#next ??= this.#runExclusive(() => {
      this.#next = undefined
      return this.#compare()
    })
    return this.#next
  }

  /** Something may have happened. At most half of the time is spent on listings. */
  refreshSoon(): void {
    this.#refreshTimer ??= setTimeout(() => {
      this.#refreshTimer = undefined
      this.whenFresh().catch(this.#options.onError)
    }, this.#lastListingMs)
  }

  /** What was read without a watch may have been written since: tells so, of those that nobody holds. */
  reportUnwatched(): void {
    const doubted = [...this.#unwatched].filter((id) => this.#jobs.has(id) && !this.#claimed.has(id))
    this.#unwatched.clear()
    if (doubted.length > 0) this.#options.onChanges(doubted.map((id) => ({ kind: 'updated', id })))
  }

  /** Reads znodes; postings with a watch. */
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

  /** The Stat of a posting that was just made, watched from then on. */
  noteCreated(id: string): Promise<Stat | undefined> {
    const { zookeeper, layout } = this.#options
    return this.#watching(id, (options) => zookeeper.exists(layout.posting(id), options))
  }

  /** From now until it is disposed this process tells of the job itself. */
  beginWork(id: string): Disposable {
    this.#ownWork.add(id)
    return {
      [Symbol.dispose]: () => {
        this.#ownWork.delete(id)
        this.refreshSoon()
      },
    }
  }

  /** What this process has done, or was shown by an answer. Tells what is news. */
  report(kind: BoardChange['kind'], id: string): void {
    if (this.#applyChange(kind, id)) this.#options.onChanges([{ kind, id }])
  }

  /** A posting says that its job is trashed. */
  noteMarked(id: string): void {
    this.#marked.add(id)
    if (!this.#jobs.has(id)) return
    this.#options.onChanges([{ kind: 'trashed', id }])
    this.report('gone', id)
  }

  // --- Listings -----------------------------------------------------------------------------------------------------

  /** One listing after the other. */
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

  /** The trash and the posting of a job are looked at behind the listing, so they are as new. */
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

  /** What its owner has written last is not known, unless it is watched. */
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

  /** Counted as watched from the asking on: an event that comes with the answer must not be overtaken by it. */
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

  /** Whether it is news. */
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
