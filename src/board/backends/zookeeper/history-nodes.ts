/**
 * The history of a board on ZooKeeper.
 *
 *     <sessions>/.history/<jobs>-<digits>     some jobs that have ended in one transaction (persistent, sequential)
 *
 * All jobs that end in one multi are in one znode, so that the history costs one operation for each multi. The number of jobs is in the name:
 * a list of the names is enough to find the oldest znodes that are not needed. Each board object deletes them after every few hundred jobs
 * that it ends; it does not matter who does, and several may. The znodes are outside of the tree that boards watch.
 */
import { decodeWeighed, encodePlain } from '../../../core/codec.ts'
import { NodeExists, NoNode, op, type ZooKeeper, ZooKeeperError } from '../../../zookeeper/index.ts'
import { decodeEndedJob, type EndedJob, encodeEndedJob, type HistoryEntry } from '../../model/ended-job.ts'
import type { UnreadableValues } from '../unreadable-values.ts'
import type { Journal, JournalEntry } from './commit/batch.ts'
import { compareDigits, type Layout } from './store/layout.ts'
import { missingAsUndefined } from './store/reader.ts'

/** The number of jobs after which a board object deletes what is not needed. */
const JOBS_PER_TRIM = 500
const READS_AT_ONCE = 50
const DELETES_AT_ONCE = 200
const MAX_DECODED_BYTES = 16 * 1_024 * 1_024

const NAME_PATTERN = /^(\d{1,6})-(-?\d{10,20})$/

export class HistoryNodes implements Journal {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  readonly #unreadable: UnreadableValues
  #preparing: Promise<void> | undefined
  #isPrepared = false
  #sinceTrim = 0
  #trimming: Promise<void> | undefined

  constructor(options: { zookeeper: ZooKeeper; layout: Layout; unreadable: UnreadableValues }) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
    this.#unreadable = options.unreadable
  }

  /** Whether this board object has created the folder, or seen that it exists. */
  get isPrepared(): boolean {
    return this.#isPrepared
  }

  /** Creates the folder of the history if it is missing. Jobs that end together share the request. */
  prepare(): Promise<void> {
    this.#preparing ??= this.#createFolder().finally(() => {
      this.#preparing = undefined
    })
    return this.#preparing
  }

  async #createFolder(): Promise<void> {
    await this.#zookeeper.create(this.#layout.historyFolder, null).catch((error: unknown) => {
      if (!(error instanceof NodeExists)) throw error
    })
    this.#isPrepared = true
  }

  /**
   * Makes ZooKeeper skip a number, because another program has created the znode with this number. ZooKeeper counts how often children of a
   * folder were created or deleted, and the count is the next number: so one child is created and deleted. Otherwise ZooKeeper would refuse
   * the end of every job, because each would get the same number.
   */
  async skipTakenNumber(): Promise<void> {
    // The child is ephemeral: if this process dies before it deletes the child, the child ends with the session.
    const options = { sequential: true, ephemeral: true }
    const { path } = await this.#zookeeper.create(`${this.#layout.historyFolder}/taken-`, null, options)
    await this.#zookeeper.delete(path)
  }

  /** Notes that the folder was removed. */
  forget(): void {
    this.#isPrepared = false
  }

  toEntry({ job }: HistoryEntry): JournalEntry {
    return { journal: this, bytes: encodeEndedJob(job) }
  }

  /** Returns the step that adds the jobs of one multi. */
  toStep(entries: readonly Uint8Array[]): ReturnType<Journal['toStep']> {
    const path = `${this.#layout.historyFolder}/${entries.length}-`
    return { subject: 'history', op: op.create(path, encodePlain(entries, 'msgpack'), { sequential: true }) }
  }

  /** Counts a job that was added, and deletes in the background what is not needed. */
  added({ keep }: HistoryEntry): void {
    this.#sinceTrim += 1
    if (this.#sinceTrim < Math.min(JOBS_PER_TRIM, keep) || this.#trimming !== undefined) return
    this.#sinceTrim = 0
    this.#trimming = this.#trim(keep)
      .catch((error: unknown) => {
        // The next one deletes what this one has left.
        if (!(error instanceof ZooKeeperError)) throw error
      })
      .finally(() => {
        this.#trimming = undefined
      })
  }

  /** Resolves when no znodes are being deleted. */
  async idle(): Promise<void> {
    await this.#trimming
  }

  /** Returns the newest jobs, newest first. */
  async newest(limit: number): Promise<EndedJob[]> {
    const jobs: EndedJob[] = []
    for await (const part of this.#read()) {
      jobs.push(...part)
      if (jobs.length >= limit) break
    }
    return jobs.slice(0, limit)
  }

  /** Returns the newest record of each of the jobs. */
  async find(uuids: readonly string[]): Promise<(EndedJob | undefined)[]> {
    const wanted = new Set(uuids)
    const found = new Map<string, EndedJob>()
    for await (const part of this.#read()) {
      for (const job of part) if (wanted.has(job.uuid) && !found.has(job.uuid)) found.set(job.uuid, job)
      if (found.size === wanted.size) break
    }
    return uuids.map((uuid) => found.get(uuid))
  }

  /** Yields all jobs in parts, newest first. */
  async *#read(): AsyncGenerator<EndedJob[], void, undefined> {
    const folder = this.#layout.historyFolder
    const names = (await this.#names()).reverse()
    for (let from = 0; from < names.length; from += READS_AT_ONCE) {
      const paths = names.slice(from, from + READS_AT_ONCE).map(({ name }) => op.getData(`${folder}/${name}`))
      const { results } = await this.#zookeeper.multiRead(paths)
      yield results.flatMap((node, index) => {
        const leftOut = () => this.#unreadable.leftOut('history', names[from + index]?.name ?? '')
        return node.error ? [] : decodeJobs(node.data, leftOut)
      })
    }
  }

  /** Returns the names of the znodes with the number of their jobs, oldest first. */
  async #names(): Promise<{ readonly name: string; readonly jobs: number; readonly digits: string }[]> {
    const listed = await missingAsUndefined(this.#zookeeper.getChildren(this.#layout.historyFolder))
    return (listed?.names ?? [])
      .flatMap((name) => {
        const [, jobs, digits] = NAME_PATTERN.exec(name) ?? []
        return jobs === undefined || digits === undefined ? [] : [{ name, jobs: Number(jobs), digits }]
      })
      .sort((a, b) => compareDigits(a.digits, b.digits))
  }

  async #trim(keep: number): Promise<void> {
    const names = await this.#names()
    let jobs = 0
    const unused = names.reverse().filter((node) => {
      jobs += node.jobs
      return jobs - node.jobs >= keep
    })
    for (let from = 0; from < unused.length; from += DELETES_AT_ONCE)
      await Promise.all(unused.slice(from, from + DELETES_AT_ONCE).map(({ name }) => this.#delete(name)))
  }

  async #delete(name: string): Promise<void> {
    await this.#zookeeper.delete(`${this.#layout.historyFolder}/${name}`).catch((error: unknown) => {
      if (!(error instanceof NoNode)) throw error
    })
  }
}

/** Returns the jobs of a znode, newest first. Calls `leftOut` if some of its bytes are no job. */
function decodeJobs(data: Uint8Array | null, leftOut: () => readonly never[]): readonly EndedJob[] {
  try {
    const { value } = decodeWeighed(data ?? new Uint8Array(), 'msgpack', { most: MAX_DECODED_BYTES })
    if (!Array.isArray(value)) return leftOut()
    const decode = (bytes: unknown) => (bytes instanceof Uint8Array ? decodeEndedJob(bytes) : undefined)
    return value.flatMap((bytes) => decode(bytes) ?? leftOut()).reverse()
  } catch {
    return leftOut()
  }
}
