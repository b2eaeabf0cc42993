/**
 * Deletes the znodes of limit keys that are not in use: one for each tenant or customer would otherwise stay for ever.
 *
 * | the key | its znode |
 * |---|---|
 * | has taken slots | stays |
 * | has no taken tokens, and was not written for a minute | is deleted |
 * | has taken tokens, and a limit is set for it | stays until they have come back |
 * | has taken tokens, but no limit is set for it any more | is deleted after that minute, too |
 *
 * A key that is needed again is created again. Claims may take of it at the same moment:
 *
 * - A claim between the read of the znode and its deletion has written the version or created a slot: the server refuses the deletion.
 * - A claim after the deletion would write a version that it has read before, and that the new znode may have reached again: it would lose the
 *   tokens that were taken since. So **the transaction that deletes writes the gate**, whose version every claim checks: such a claim is refused,
 *   and reads the key again.
 * - The sweep of another process has written the gate, too: a deletion by what was read before it is refused.
 */
import { PatternMap } from '../../../../core/collections/pattern-map.ts'
import { isError } from '../../../../core/errors.ts'
import { BadVersion, NoNode, NotEmpty, type Op, op, type ZooKeeper } from '../../../../zookeeper/index.ts'
import { pickAtRandom } from '../../../model/claim-order.ts'
import type { StoredRecord } from '../../../model/record.ts'
import { encodeGate } from './encoding.ts'
import type { BoardGate, GateSnapshot } from './gate.ts'
import { decodeName, isHashed, type ZooKeeperLayout } from './layout.ts'
import { missingAsUndefined, type ReadMany } from './reader.ts'
import { decodeTokens, toTaken } from './token-data.ts'

/** The maximum number of keys that one sweep looks at: the work is not urgent. */
const MAX_SWEPT = 10_000
/** The maximum number of keys that one transaction deletes: it has to fit into a request, and each makes all claims check the gate again. */
const MAX_DELETED = 1_000
/** The number of times that a transaction is sent again without the keys that were used meanwhile. */
const MAX_ATTEMPTS = 10
/** The time for which a key is unused before it is deleted: creating it again costs a round trip. */
const UNUSED_AFTER_MS = 60_000
/** The time within which tokens must be full again for another sweep to follow on a board on which nothing happens. */
const SOON_MS = 3_600_000

export interface LimitSweepOptions {
  readonly zookeeper: Pick<ZooKeeper, 'getChildren' | 'multi'>
  readonly layout: ZooKeeperLayout
  readonly readMany: ReadMany
  readonly gate: Pick<BoardGate, 'seen' | 'read' | 'noteWritten'>
  readonly records: { list(kind: string): Promise<readonly StoredRecord[]> }
  /** The time for which a key is unused before it is deleted, in milliseconds; a minute by default, another one for tests. */
  readonly unusedAfterMs?: number | undefined
}

/** A key without taken slots. */
interface FreeKey {
  readonly path: string
  readonly version: number
  /** The key; undefined where the name of the znode is a hash. */
  readonly key: string | undefined
  readonly unusedAt: number
  readonly fullAt: number
}

export class LimitSweep {
  readonly #options: LimitSweepOptions

  constructor(options: LimitSweepOptions) {
    this.#options = options
  }

  /**
   * Deletes what is unused, in three round trips and one more for each thousand keys.
   *
   * @param now the current time of the servers' clock, or an earlier one, in milliseconds since 1970
   * @returns whether a key may become unused soon, even if nothing happens on the board until then
   */
  async run(now: number): Promise<boolean> {
    const { zookeeper, layout, gate } = this.#options
    const listed = await missingAsUndefined(zookeeper.getChildren(layout.limitsFolder))
    if (!listed || listed.names.length === 0) return false
    // The gate is older than what is read of the keys, or the check of its version would prove nothing.
    let seen: GateSnapshot | undefined = gate.seen ?? (await gate.read())
    if (seen.damage !== undefined) return true
    const free = await this.#readFree(pickAtRandom(listed.names, { count: MAX_SWEPT, random: Math.random }))
    const unused = await this.#findUnused(free, now)
    for (let from = 0; seen && from < unused.length; from += MAX_DELETED)
      seen = await this.#delete(unused.slice(from, from + MAX_DELETED), seen)
    if (!seen) {
      await gate.read()
      return true
    }
    return free.some(({ unusedAt, fullAt }) => {
      const at = Math.max(unusedAt, fullAt)
      return at > now && at - now < SOON_MS
    })
  }

  async #readFree(names: readonly string[]): Promise<FreeKey[]> {
    const { layout, readMany, unusedAfterMs = UNUSED_AFTER_MS } = this.#options
    const nodes = await readMany(names.map((name) => `${layout.limitsFolder}/${name}`))
    return nodes.flatMap((node, index): FreeKey[] => {
      if (!node || isError(node) || node.stat.numChildren > 0) return []
      const { data, stat } = node
      const name = names[index] ?? ''
      return [
        {
          path: `${layout.limitsFolder}/${name}`,
          version: stat.version,
          key: isHashed(name) ? undefined : decodeName(name),
          unusedAt: stat.mtime + unusedAfterMs,
          fullAt: toTaken(decodeTokens(data), stat).arrivalMs,
        },
      ]
    })
  }

  async #findUnused(free: readonly FreeKey[], now: number): Promise<FreeKey[]> {
    const resting = free.filter(({ unusedAt }) => unusedAt <= now)
    const isFull = ({ fullAt }: FreeKey) => fullAt <= now
    if (resting.every(isFull)) return resting
    const limits = await this.#options.records.list('limit')
    const index = new PatternMap(limits, ({ id }) => id)
    const isLimited = ({ key }: FreeKey) => key === undefined || index.find(key) !== undefined
    return resting.filter((each) => isFull(each) || !isLimited(each))
  }

  /** Deletes the znodes of these keys, except the keys that are used again. @returns the new gate; undefined if it was written meanwhile */
  async #delete(keys: readonly FreeKey[], seen: GateSnapshot): Promise<GateSnapshot | undefined> {
    const { zookeeper, layout, gate } = this.#options
    const { version, ...record } = seen
    let rest = keys
    for (let attempt = 0; rest.length > 0 && attempt < MAX_ATTEMPTS; attempt += 1) {
      const ops: Op[] = [
        op.setData(layout.gate, encodeGate(record), { version }),
        ...rest.map((key) => op.delete(key.path, { version: key.version })),
      ]
      try {
        const { results } = await zookeeper.multi(ops)
        const [written] = results
        return gate.noteWritten({
          ...record,
          version: written && 'version' in written ? written.version : version + 1,
        })
      } catch (error) {
        const isRefused = [BadVersion, NotEmpty, NoNode].some((type) => error instanceof type)
        const failed = isRefused && isError(error) && 'index' in error ? error.index : undefined
        if (typeof failed !== 'number') throw error
        if (failed === 0) return undefined
        rest = rest.filter((_, index) => index !== failed - 1)
      }
    }
    return seen
  }
}
