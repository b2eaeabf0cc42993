/** The znodes of jobs that wait for others (`parts/dependency-parts.ts`): which jobs wait, and the remaining znodes of jobs that wait no more. */
import { op, type ReadData, type ReadResult, type ZooKeeper, ZooKeeperError } from '../../../../zookeeper/index.ts'
import { pickAtRandom } from '../../../model/claim-order.ts'
import { isJob, type ZooKeeperLayout } from './layout.ts'
import { missingAsUndefined } from './reader.ts'

const READS_AT_ONCE = 500
/** The maximum number of jobs for which a sweep checks whether they are still on the board. */
const MAX_SWEPT = 1_000

export interface WaitsOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
}

export class Waits {
  readonly #zookeeper: ZooKeeper
  readonly #layout: ZooKeeperLayout

  constructor({ zookeeper, layout }: WaitsOptions) {
    this.#zookeeper = zookeeper
    this.#layout = layout
  }

  /** Returns which of the jobs wait for others. */
  async findWaiting(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const counts = await this.#countEach(ids)
    return new Set(ids.filter((_, index) => counts[index] !== undefined))
  }

  /** Returns the jobs whose dependencies are all met, but that are not marked as ready. */
  async findReady(ids: readonly string[]): Promise<readonly string[]> {
    const counts = await this.#countEach(ids)
    return ids.filter((_, index) => counts[index] === 0)
  }

  /** Deletes what is left of the dependencies of a job that has ended while it waited. */
  async remove(id: string): Promise<void> {
    const path = this.#layout.wait(id)
    const listed = await missingAsUndefined(this.#zookeeper.getChildren(path))
    if (!listed) return
    await Promise.all(listed.names.map((name) => this.#deleteUnused(`${path}/${name}`)))
    await this.#deleteUnused(path)
  }

  /** Deletes the waits of jobs that are no longer on the board, and the waits that were not deleted after the last dependency was met. */
  async sweep(names: readonly string[]): Promise<void> {
    const ids = names.filter(isJob)
    // All are looked at: an idle board is swept once after its last change, and a job that is not freed may keep it idle for ever.
    await Promise.all((await this.findReady(ids)).map((id) => this.#deleteUnused(this.#layout.wait(id))))
    const left = pickAtRandom(ids, { count: MAX_SWEPT, random: Math.random })
    await Promise.all(
      left.map(async (id) => {
        if (!(await this.#zookeeper.exists(this.#layout.posting(id)))) await this.remove(id)
      }),
    )
  }

  /** Returns for how many jobs each of these waits; undefined for a job that does not wait. */
  async #countEach(ids: readonly string[]): Promise<readonly (number | undefined)[]> {
    const counts: (number | undefined)[] = []
    for (let from = 0; from < ids.length; from += READS_AT_ONCE) {
      const reads = ids.slice(from, from + READS_AT_ONCE).map((id) => op.getData(this.#layout.wait(id)))
      const { results } = await this.#zookeeper.multiRead(reads)
      counts.push(...reads.map((_, index) => countOf(results[index])))
    }
    return counts
  }

  /** Deletes a znode unless it has children. If there is no connection, a later sweep deletes it. */
  async #deleteUnused(path: string): Promise<void> {
    await this.#zookeeper.delete(path).catch((error: unknown) => {
      if (!(error instanceof ZooKeeperError)) throw error
    })
  }
}

function countOf(read: ReadResult<ReadData> | undefined): number | undefined {
  return read && !read.error ? read.stat.numChildren : undefined
}
