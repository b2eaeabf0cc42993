/** Reads the slots and tokens of limits that claims have taken: `parts/limit-reservations.ts` has the znodes. */
import { op, type ReadData, type ReadResult, type ZooKeeper } from '../../../../zookeeper/index.ts'
import { type LimitUse, MAX_USED_KEYS } from '../../../model/limits.ts'
import { isHashed, type ZooKeeperLayout } from './layout.ts'
import { decodeTokens, toTaken } from './token-data.ts'

/** The maximum number of slots in one read. */
const SLOTS_PER_READ = 500

interface Znodes {
  readonly zookeeper: Pick<ZooKeeper, 'multiRead'>
  readonly layout: ZooKeeperLayout
}

/** Reads what is taken of these keys, or of some of all keys. */
export async function readLimitUse(at: Znodes, keys?: readonly string[]): Promise<LimitUse[]> {
  const shown = (keys ?? (await listKeys(at))).slice(0, MAX_USED_KEYS)
  const paths = shown.map((key) => at.layout.limitKey(key))
  if (paths.length === 0) return []
  const { results } = await at.zookeeper.multiRead(paths.flatMap((path) => [op.getData(path), op.getChildren(path)]))
  return shown.flatMap((key, index): LimitUse[] => {
    const [data, children] = [results[2 * index], results[2 * index + 1]]
    if (!data || !('data' in data) || data.error || !children || !('names' in children) || children.error) return []
    const { arrivalMs, rate } = toTaken(decodeTokens(data.data), data.stat)
    const slots = children.names.length
    return slots > 0 || arrivalMs > 0
      ? [{ key, slots, arrivalMs: arrivalMs > 0 ? arrivalMs : undefined, ...(rate ? { rate } : {}) }]
      : []
  })
}

async function listKeys({ zookeeper, layout }: Znodes): Promise<readonly string[]> {
  const [folder] = (await zookeeper.multiRead([op.getChildren(layout.limitsFolder)])).results
  // The name of a very long key is a hash: the key cannot be read from it.
  return folder.error ? [] : folder.names.flatMap((name) => (isHashed(name) ? [] : [decodeURIComponent(name)]))
}

/**
 * Returns the paths of the slots of these keys that the claim of a job holds, whichever client has claimed it. Takes one round trip, and
 * more if slots are taken. Leaves out slots of older releases.
 */
export async function readSlotsOf(
  { zookeeper, layout }: Znodes,
  { id, keys }: { readonly id: string; readonly keys: readonly string[] },
): Promise<readonly string[]> {
  if (keys.length === 0) return []
  const folders = keys.map((key) => layout.limitKey(key))
  const listed = await zookeeper.multiRead(folders.map((path) => op.getChildren(path)))
  const paths = folders.flatMap((path, index) => {
    const children = listed.results[index]
    return !children || children.error ? [] : children.names.map((name) => `${path}/${name}`)
  })
  const held: string[] = []
  for (let from = 0; from < paths.length; from += SLOTS_PER_READ) {
    const part = paths.slice(from, from + SLOTS_PER_READ)
    const { results } = await zookeeper.multiRead(part.map((path) => op.getData(path)))
    held.push(...part.filter((_, index) => isHeldBy(id, results[index])))
  }
  return held
}

function isHeldBy(id: string, slot: ReadResult<ReadData> | undefined): boolean {
  return slot !== undefined && !slot.error && slot.data !== null && Buffer.from(slot.data).toString() === id
}
