/**
 * Adds jobs that have ended to the history of the board.
 *
 *     <sessions>/.history/<jobs>-<digits>     some jobs that have ended in one transaction (persistent, sequential)
 *
 * All jobs that end in one multi are in one znode, so that the history costs one operation for each multi. The number of jobs is in the name:
 * a list of the names is enough to find the oldest znodes that are not needed. Each board object deletes them after every few hundred jobs
 * that it ends; it does not matter who does, and several may. The znodes are outside of the tree that boards watch.
 */

import { encodePlain } from '../../../../core/codec.ts'
import { NodeExists, NoNode, op, type ZooKeeper, ZooKeeperError } from '../../../../zookeeper/index.ts'
import { encodeEndedJob, type HistoryEntry } from '../../../model/ended-job.ts'
import { type Again, TRY_AGAIN, type TransactionPart } from '../commit/parts.ts'
import type { Journal, JournalEntry, RefusalMeaning, TransactionStep } from '../commit/transaction.ts'
import { compareDigits, type ZooKeeperLayout } from '../store/layout.ts'
import { missingAsUndefined, translateErrors } from '../store/reader.ts'

/** The number of jobs after which a board object deletes what is not needed. */
const JOBS_PER_TRIM = 500
const DELETES_AT_ONCE = 200

const NAME_PATTERN = /^(\d{1,6})-(-?\d{10,20})$/

export interface HistoryOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
}

export class HistoryJournal implements Journal {
  readonly #options: HistoryOptions
  #preparing: Promise<void> | undefined
  /** Whether this board object has created the folder, or seen that it exists. */
  #hasFolder = false
  /** Whether another program has created the znode with the number that ZooKeeper gives next. */
  #isNumberTaken = false
  #sinceTrim = 0
  #trimming: Promise<void> | undefined

  constructor(options: HistoryOptions) {
    this.#options = options
  }

  /** Whether the next entry can be added at once. */
  get isPrepared(): boolean {
    return this.#hasFolder && !this.#isNumberTaken
  }

  /** Returns a promise while the folder has to be created; undefined if the next entry can be added at once. */
  prepare(): Promise<void> | undefined {
    if (this.isPrepared) return undefined
    this.#preparing ??= translateErrors('adding to the history', () => this.#repair()).finally(() => {
      this.#preparing = undefined
    })
    return this.#preparing
  }

  /** Returns the part of a transaction that ends a job. */
  part(ended: HistoryEntry): TransactionPart<Again> & { readonly entry: JournalEntry } {
    return { entry: this.entryOf(ended), onRefused: (error) => this.meaningOf(error) }
  }

  entryOf({ job }: HistoryEntry): JournalEntry {
    return { journal: this, bytes: encodeEndedJob(job) }
  }

  /** Returns what it means that the step of the history was refused; undefined for an error that says nothing of the history. */
  meaningOf(error: ZooKeeperError): RefusalMeaning<Again> | undefined {
    if (error instanceof NoNode) this.#hasFolder = false
    else if (error instanceof NodeExists) this.#isNumberTaken = true
    else return undefined
    return TRY_AGAIN
  }

  /** Returns the step that adds the jobs of one multi. */
  toStep(entries: readonly Uint8Array[]): TransactionStep {
    const path = `${this.#options.layout.historyFolder}/${entries.length}-`
    return { op: op.create(path, encodePlain(entries, 'msgpack'), { sequential: true }) }
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

  /** Creates the folder if it is missing, and skips a number that is taken. Jobs that end together share the requests. */
  async #repair(): Promise<void> {
    const { zookeeper, layout } = this.#options
    await zookeeper.create(layout.historyFolder, null).catch((error: unknown) => {
      if (!(error instanceof NodeExists)) throw error
    })
    this.#hasFolder = true
    if (!this.#isNumberTaken) return
    await this.#skipTakenNumber()
    this.#isNumberTaken = false
  }

  /**
   * Makes ZooKeeper skip a number, because another program has created the znode with this number. ZooKeeper counts how often children of a
   * folder were created or deleted, and the count is the next number: so one child is created and deleted. Otherwise ZooKeeper would refuse
   * the end of every job, because each would get the same number.
   */
  async #skipTakenNumber(): Promise<void> {
    const { zookeeper, layout } = this.#options
    // The child is ephemeral: if this process dies before it deletes the child, the child ends with the session.
    const options = { sequential: true, ephemeral: true }
    const { path } = await zookeeper.create(`${layout.historyFolder}/taken-`, null, options)
    await zookeeper.delete(path)
  }

  async #trim(keep: number): Promise<void> {
    const nodes = await listHistory(this.#options)
    let jobs = 0
    const unused = nodes.reverse().filter((node) => {
      jobs += node.jobs
      return jobs - node.jobs >= keep
    })
    for (let from = 0; from < unused.length; from += DELETES_AT_ONCE)
      await Promise.all(unused.slice(from, from + DELETES_AT_ONCE).map(({ name }) => this.#delete(name)))
  }

  async #delete(name: string): Promise<void> {
    const { zookeeper, layout } = this.#options
    await missingAsUndefined(zookeeper.delete(`${layout.historyFolder}/${name}`))
  }
}

/** Returns the names of the znodes with the number of their jobs, oldest first. */
export async function listHistory({
  zookeeper,
  layout,
}: HistoryOptions): Promise<{ readonly name: string; readonly jobs: number; readonly digits: string }[]> {
  const listed = await missingAsUndefined(zookeeper.getChildren(layout.historyFolder))
  return (listed?.names ?? [])
    .flatMap((name) => {
      const [, jobs, digits] = NAME_PATTERN.exec(name) ?? []
      return jobs === undefined || digits === undefined ? [] : [{ name, jobs: Number(jobs), digits }]
    })
    .sort((a, b) => compareDigits(a.digits, b.digits))
}
