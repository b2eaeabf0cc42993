/**
 * Takes away what nobody needs any more: resources that nobody has held for a while, and keys and cancel requests of jobs
 * that are gone. A job that is removed by hand leaves both behind; a cancel request stays, too, when it is made while the job
 * ends and the board that ends it dies, or is one that knows of no requests (TaskFlow's, the native client's). Any board may do it, several at once too: what somebody
 * makes use of meanwhile is refused to be deleted.
 */
import type { Encoding } from '../../../../core/codec.ts'
import { BadVersion, NoNode, NotEmpty, type ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import { pickAtRandom } from '../../../model/spread.ts'
import type { Layout } from './layout.ts'
import { missingAsUndefined } from './reader.ts'
import { decodeKey } from './records.ts'

/** So many of a kind at a time: it is not urgent. */
const MAX_SWEPT = 1_000
/** Milliseconds that a resource rests before its folder goes: making it again costs a round trip. */
const UNUSED_AFTER_MS = 60_000

export interface SweepOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'delete' | 'exists' | 'getChildren' | 'getData'>
  readonly layout: Layout
  readonly encoding: Encoding
  /** The servers' clock. */
  readonly now: number
  /** Whether a job with this uuid may be on the board. */
  readonly mayExist: (uuid: string) => boolean
}

/**
 * Two round trips, and two for each that may go.
 *
 * @returns whether something may go later, also if nothing happens on the board until then
 */
export async function sweep(options: SweepOptions): Promise<boolean> {
  const [resting] = await Promise.all([sweepResources(options), sweepKeys(options), sweepCancellations(options)])
  return resting
}

/** @returns whether one that is not held has to rest yet */
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

async function sweepKeys({ zookeeper, layout, encoding, mayExist }: SweepOptions): Promise<void> {
  await forEachChild(zookeeper, layout.keysFolder, async (path) => {
    const key = await missingAsUndefined(zookeeper.getData(path))
    const uuid = key && decodeKey(key.data, encoding)
    // A key is made with its posting, so by the time it is read the view has heard of the job.
    if (key && uuid !== undefined && !mayExist(uuid)) {
      await ignoreInUse(zookeeper.delete(path, { version: key.stat.version }))
    }
  })
}

/** Of a job that is gone nobody can ask anything: its id never comes back. */
export async function sweepCancellations({
  zookeeper,
  layout,
}: Pick<SweepOptions, 'zookeeper' | 'layout'>): Promise<void> {
  await forEachChild(zookeeper, layout.cancelFolder, async (path, id) => {
    if (!(await zookeeper.exists(layout.posting(id)))) await ignoreInUse(zookeeper.delete(path))
  })
}

async function forEachChild(
  zookeeper: SweepOptions['zookeeper'],
  folder: string,
  look: (path: string, name: string) => Promise<void>,
): Promise<void> {
  const listed = await missingAsUndefined(zookeeper.getChildren(folder))
  // Not always the same: behind those that are in use others would lie for ever.
  const picked = pickAtRandom(listed?.names ?? [], { count: MAX_SWEPT, random: Math.random })
  await Promise.all(picked.map((name) => look(`${folder}/${name}`, name)))
}

async function ignoreInUse(deleting: Promise<unknown>): Promise<void> {
  await deleting.catch((error: unknown) => {
    if (![NotEmpty, NoNode, BadVersion].some((type) => error instanceof type)) throw error
  })
}
