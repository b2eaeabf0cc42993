/**
 * A cache of dependencies, filled by the changes that this process receives. With it, the end of a job needs no read of its dependents, and
 * their claims need no proof that they wait for nothing. If it is old or incomplete, the transaction that ends a job is refused, and the
 * dependents are read from the servers.
 */
import { keepNewest } from '../../../../core/collections/keep-newest.ts'
import type { WatchEvent } from '../../../../zookeeper/index.ts'
import { isJob, type ZooKeeperLayout } from './layout.ts'

/** The maximum number of names that are kept of one job: with more, they are read from the servers. */
const MAX_NAMES = 32
/** The maximum number of names that are kept of all jobs. */
const DEFAULT_MAX_NAMES_IN_ALL = 100_000
const MAX_DEPENDED_ON = 100_000
const MAX_READY = 100_000

export class KnownDependencies {
  readonly #layout: ZooKeeperLayout
  /**
   * Jobs on which others depend, as far as changes and reads have shown. The oldest are removed: without a view, their ends are not
   * received.
   */
  readonly #dependedOn = new Set<string>()
  /**
   * The names of all dependents of jobs of {@link #dependedOn}; absent for a job with many, or with dependents from before the first
   * change.
   */
  readonly #dependents: NameSets
  /** The jobs for which a dependent waits; absent unless its post was received. */
  readonly #waits: NameSets
  /** Dependents whose waits were deleted, which are never created again. The oldest are removed. */
  readonly #ready = new Set<string>()

  /** @param options.maxNames the maximum number of names of dependents, and of names of jobs for which dependents wait */
  constructor(layout: ZooKeeperLayout, { maxNames = DEFAULT_MAX_NAMES_IN_ALL }: { readonly maxNames?: number } = {}) {
    this.#layout = layout
    this.#dependents = new NameSets(maxNames)
    this.#waits = new NameSets(maxNames)
  }

  /** Applies a change that this process has received. */
  apply({ type, path }: Pick<WatchEvent, 'type' | 'path'>): void {
    if (type !== 'created' && type !== 'deleted') return
    const { path: board, waitsFolder } = this.#layout
    const begin = board.length + 1
    if (path.indexOf('/', begin) < 0) return
    const isWait = path.startsWith(`${waitsFolder}/`)
    const [id = '', name] = path.slice(isWait ? waitsFolder.length + 1 : begin).split('/')
    if (!isJob(id)) return
    if (!isWait && name !== undefined) this.#changeDependent(type, id, name)
    if (isWait) this.#changeWait(type, id, name)
  }

  #changeDependent(type: 'created' | 'deleted', id: string, name: string): void {
    if (type === 'deleted') {
      this.#dependents.remove(id, name)
      return
    }
    if (!this.#dependedOn.has(id)) this.#dependents.begin(id)
    this.note(id)
    this.#dependents.add(id, name)
  }

  #changeWait(type: 'created' | 'deleted', id: string, other: string | undefined): void {
    if (other !== undefined && type === 'created') this.#waits.add(id, other)
    else if (other !== undefined) this.#waits.remove(id, other)
    else if (type === 'created') this.#waits.begin(id)
    else {
      this.#waits.delete(id)
      this.#ready.add(id)
      keepNewest(this.#ready, MAX_READY)
    }
  }

  /** Notes that others depend on a job, so that its end reads them first. */
  note(id: string): void {
    this.#dependedOn.add(id)
    keepNewest(this.#dependedOn, MAX_DEPENDED_ON)
  }

  /** Notes the number of dependents of a job, from a read. If other dependents are known, they are forgotten. */
  noteCount(id: string, count: number): void {
    this.note(id)
    if (this.#dependents.get(id)?.size !== count) this.#dependents.delete(id)
  }

  /** Notes that a job has ended, before the change is received: its dependents no longer wait for it. */
  noteEnded(id: string, dependents: readonly string[]): void {
    this.forget(id)
    for (const dependent of dependents) this.#waits.remove(dependent, id)
  }

  /** Forgets a job that has left the board. */
  forget(id: string): void {
    this.#dependedOn.delete(id)
    this.#dependents.delete(id)
    this.#ready.delete(id)
  }

  /** Forgets what is known of a job and its dependents, because a transaction was refused by it: the servers are asked next. */
  distrust(id: string, dependents: readonly string[]): void {
    this.note(id)
    this.#dependents.delete(id)
    for (const dependent of dependents) this.#waits.delete(dependent)
  }

  clear(): void {
    this.#dependedOn.clear()
    this.#ready.clear()
    this.#dependents.clear()
    this.#waits.clear()
  }

  /** Returns whether jobs depend on a job, or may depend on it. */
  hasDependents(id: string): boolean {
    return this.#dependedOn.has(id)
  }

  /** Returns the names of the dependents of a job; undefined if they have to be read from the servers. */
  dependentsOf(id: string): readonly string[] | undefined {
    if (!this.#dependedOn.has(id)) return []
    const names = this.#dependents.get(id)
    return names && [...names]
  }

  /** Returns the jobs for which a dependent waits; undefined if they have to be read from the servers. */
  waitsOf(dependent: string): readonly string[] | undefined {
    const names = this.#waits.get(dependent)
    return names && [...names]
  }

  /** Returns whether the wait of a job was deleted, so that the job waits for nothing. */
  isReady(id: string): boolean {
    return this.#ready.has(id)
  }
}

/**
 * Sets of names, each complete or absent. A set that gets too large is removed; the oldest are removed if there are too many names in all.
 */
class NameSets {
  readonly #sets = new Map<string, Set<string>>()
  readonly #maxNames: number
  #count = 0

  constructor(maxNames: number) {
    this.#maxNames = maxNames
  }

  get(key: string): ReadonlySet<string> | undefined {
    return this.#sets.get(key)
  }

  /** Adds an empty set. */
  begin(key: string): void {
    this.delete(key)
    this.#sets.set(key, new Set())
  }

  /** Adds a name to a set, if the set exists. */
  add(key: string, name: string): void {
    const names = this.#sets.get(key)
    if (!names || names.has(name)) return
    names.add(name)
    this.#count += 1
    if (names.size > MAX_NAMES) this.delete(key)
    while (this.#count > this.#maxNames) {
      const [oldest] = this.#sets.keys()
      if (oldest === undefined) return
      this.delete(oldest)
    }
  }

  remove(key: string, name: string): void {
    if (this.#sets.get(key)?.delete(name)) this.#count -= 1
  }

  delete(key: string): void {
    this.#count -= this.#sets.get(key)?.size ?? 0
    this.#sets.delete(key)
  }

  clear(): void {
    this.#sets.clear()
    this.#count = 0
  }
}
