/**
 * Deletes what other boards, or people, have left: orphaned claims and unused znodes.
 *
 * | unused znode | where it comes from |
 * |---|---|
 * | a resource that was not held for a minute | each job that has held it |
 * | a limit key: see `limit-sweep.ts` | each job that has named it |
 * | a key whose job does not exist, and whose window is over | the window, or a job that was removed by hand |
 * | a cancel request whose job does not exist | a job that was removed by hand; a job that ended at the same time, and whose owner died |
 * | | then or does not know cancel requests (TaskFlow's) |
 * | waits of dependencies; batches that are not kept | jobs and batches that have ended |
 *
 * Any board may sweep, and several may at once: the server refuses to delete a znode that is in use again.
 */
import type { Encoding } from '../../../../core/codec.ts'
import { BadVersion, NoNode, NotEmpty, type ZooKeeper } from '../../../../zookeeper/index.ts'
import type { OrphanedClaim } from '../../../contract/index.ts'
import { pickAtRandom } from '../../../model/claim-order.ts'
import { toResourceWants } from '../../../model/resources.ts'
import { decodeKey } from './encoding.ts'
import { isInWindow } from './key-nodes.ts'
import type { ZooKeeperLayout } from './layout.ts'
import type { LimitSweep } from './limit-sweep.ts'
import { missingAsUndefined } from './reader.ts'

/** The maximum number of znodes of each kind per sweep: the work is not urgent. */
const MAX_SWEPT = 1_000
/** The time for which a resource is unused before its folder is deleted: creating it again costs a round trip. */
const UNUSED_AFTER_MS = 60_000

export interface SweepOptions {
  readonly zookeeper: Pick<ZooKeeper, 'delete' | 'exists' | 'getChildren' | 'getData'>
  readonly layout: ZooKeeperLayout
  readonly waits: { sweep(names: readonly string[]): Promise<void> }
  readonly batches: { run(): Promise<void> }
  /** Absent on a board without limits. */
  readonly limits?: Pick<LimitSweep, 'run'> | undefined
  readonly encoding: Encoding
  /** The current time of the servers' clock, in milliseconds since 1970. */
  readonly now: number
  /** Returns whether a job with this uuid may be on the board. */
  readonly mayExist: (uuid: string) => boolean
}

/**
 * Deletes unused znodes, in two round trips and two more for each candidate.
 *
 * @returns whether something may become unused later, even if nothing happens on the board until then
 */
export async function sweep(options: SweepOptions): Promise<boolean> {
  const [areResourcesResting, areLimitsResting = false] = await Promise.all([
    sweepResources(options),
    options.limits?.run(options.now),
    sweepKeys(options),
    sweepCancellations(options),
    sweepWaits(options),
    options.batches.run(),
  ])
  return areResourcesResting || areLimitsResting
}

/** @returns whether a resource is unused, but not yet for long enough */
async function sweepResources({ zookeeper, layout, now }: SweepOptions): Promise<boolean> {
  let resting = false
  await forEachChild(zookeeper, layout.permitsFolder, async (path) => {
    const stat = await zookeeper.exists(path)
    if (stat?.numChildren !== 0) return
    if (now - stat.ctime > UNUSED_AFTER_MS) await ignoreInUse(zookeeper.delete(path))
    else resting = true
  })
  return resting
}

async function sweepKeys({ zookeeper, layout, encoding, mayExist, now }: SweepOptions): Promise<void> {
  await forEachChild(zookeeper, layout.keysFolder, async (path) => {
    const node = await missingAsUndefined(zookeeper.getData(path))
    const key = node ? decodeKey(node.data, encoding) : {}
    // A key is created together with its posting, so by the time the key is read the view knows the job.
    if (node && key.uuid !== undefined && !mayExist(key.uuid) && !isInWindow(key, node.stat, now)) {
      await ignoreInUse(zookeeper.delete(path, { version: node.stat.version }))
    }
  })
}

/** Deletes the cancel requests of jobs that no longer exist: their ids are never used again. */
export async function sweepCancellations({
  zookeeper,
  layout,
}: Pick<SweepOptions, 'zookeeper' | 'layout'>): Promise<void> {
  await forEachChild(zookeeper, layout.cancelFolder, async (path, id) => {
    if (!(await zookeeper.exists(layout.posting(id)))) await ignoreInUse(zookeeper.delete(path))
  })
}

/** Deletes the waits of jobs that no longer exist, or that no longer wait. */
async function sweepWaits({
  zookeeper,
  layout,
  waits,
}: Pick<SweepOptions, 'zookeeper' | 'layout' | 'waits'>): Promise<void> {
  const listed = await missingAsUndefined(zookeeper.getChildren(layout.waitsFolder))
  await waits.sweep(listed?.names ?? [])
}

async function forEachChild(
  zookeeper: SweepOptions['zookeeper'],
  folder: string,
  look: (path: string, name: string) => Promise<void>,
): Promise<void> {
  const listed = await missingAsUndefined(zookeeper.getChildren(folder))
  // A random choice: with a fixed one, znodes behind those in use would never be deleted.
  const picked = pickAtRandom(listed?.names ?? [], { count: MAX_SWEPT, random: Math.random })
  await Promise.all(picked.map((name) => look(`${folder}/${name}`, name)))
}

async function ignoreInUse(deleting: Promise<unknown>): Promise<void> {
  await deleting.catch((error: unknown) => {
    if (![NotEmpty, NoNode, BadVersion].some((type) => error instanceof type)) throw error
  })
}

/**
 * Deletes the znodes of an orphaned claim: the lock of a posting that was deleted by hand, or the permits of a lock that was
 * deleted by hand, while the session lives. They would block other owners until the session ends. Two round trips, and a
 * transaction for each znode that exists.
 *
 * A claim creates all of them in one transaction, whose zxid it keeps as its mark: a znode with another zxid belongs to
 * another claim. While such a znode exists it cannot be replaced except by hand, so nothing comes between the read and
 * the deletion.
 */
export async function freeOrphans(
  at: { readonly zookeeper: Pick<ZooKeeper, 'exists' | 'delete'>; readonly layout: ZooKeeperLayout },
  { id, posting, mark, slots }: OrphanedClaim & { readonly slots: readonly string[] },
): Promise<void> {
  const { zookeeper, layout } = at
  const { exclusive, shared } = toResourceWants(posting)
  const paths = [
    ...exclusive.map((resource) => layout.exclusivePermit(resource)),
    ...shared.map((resource) => layout.sharedPermit(resource, id)),
    ...slots,
    layout.lock(id),
  ]
  const free = async (path: string) => {
    const stat = await zookeeper.exists(path)
    if (!stat || stat.czxid !== mark) return
    await zookeeper.delete(path, { version: stat.version }).catch((error: unknown) => {
      if (!(error instanceof NoNode || error instanceof BadVersion)) throw error
    })
  }
  await Promise.all(paths.map(free))
}
