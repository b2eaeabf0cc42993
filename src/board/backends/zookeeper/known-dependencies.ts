/**
 * What this process knows of dependencies by the changes that it receives: then neither the end of a job nor the claim of its dependents needs
 * a read or a proof. What is known may be old or incomplete; the transaction that ends a job is refused then, and the servers are asked.
 */
import type { WatchEvent } from '../../../zookeeper/index.ts'
import { isJob, type Layout } from './store/layout.ts'

/** The most names that are kept of one job: with more, the servers are asked. */
const MAX_NAMES = 32
const DEFAULT_MAX_NAMES_IN_ALL = 100_000
const MAX_DEPENDED_ON = 100_000
const MAX_READY = 100_000

export class KnownDependencies {
  readonly #layout: Layout
  /** Jobs on which others depend, as far as changes and reads have shown. The oldest are forgotten: without a view, nobody reports their ends. */
  readonly #dependedOn = new Set<string>()
  /** The names of all dependents of jobs of {@link #dependedOn}; those of jobs with many, and of jobs that had some before, are not there. */
  readonly #dependents: NameSets
  /** The jobs for which a dependent waits, if its post was seen. */
  readonly #waits: NameSets
  /** Dependents whose waits were deleted: this happens once, and nobody creates them again. The oldest are forgotten. */
  readonly #ready = new Set<string>()

  /** @param options.maxNames the most names that are kept of all dependents, and of all jobs for which dependents wait */
  constructor(layout: Layout, { maxNames = DEFAULT_MAX_NAMES_IN_ALL }: { readonly maxNames?: number } = {}) {
    this.#layout = layout
    this.#dependents = new NameSets(maxNames)
    this.#waits = new NameSets(maxNames)
  }

  /** Takes in a change. */
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
      addBounded(this.#ready, id, MAX_READY)
    }
  }

  /** Notes a job on which others depend, so that its end looks for them at once. */
  note(id: string): void {
    addBounded(this.#dependedOn, id, MAX_DEPENDED_ON)
  }

  /** Notes the number of dependents that a read of the job has shown. */
  noteCount(id: string, count: number): void {
    this.note(id)
    if (this.#dependents.get(id)?.size !== count) this.#dependents.delete(id)
  }

  /** Notes that a job has ended, before the change is received: the dependents do not wait for it any more. */
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

  /** Forgets what is known of a job and its dependents, because a transaction was refused by it. */
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

  /** Returns the names of the dependents of a job; undefined where the servers have to be asked. */
  dependentsOf(id: string): readonly string[] | undefined {
    if (!this.#dependedOn.has(id)) return []
    const names = this.#dependents.get(id)
    return names && [...names]
  }

  /** Returns the jobs for which a dependent waits; undefined where the servers have to be asked. */
  waitsOf(dependent: string): readonly string[] | undefined {
    const names = this.#waits.get(dependent)
    return names && [...names]
  }

  /** Returns whether the wait of a dependent was deleted: the job waits for nothing any more. */
  isReady(id: string): boolean {
    return this.#ready.has(id)
  }
}

/** Sets of names, each complete or absent. The oldest are removed where there are too many names, and each that gets too large. */
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

  /** Adds a name to a set, if it is there. */
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

/** Adds an element, and removes the oldest if there are too many. */
export function addBounded(set: Set<string>, element: string, max: number): void {
  set.add(element)
  const [oldest] = set
  if (oldest !== undefined && set.size > max) set.delete(oldest)
}
