/** Operations on many znodes at once. They are not atomic. */
import { InvalidArgument, InvalidState } from '../core/errors.ts'
import type { Acl } from './protocol/acl.ts'
import { create } from './protocol/create.ts'
import { NodeExists, NoNode, NotEmpty, type ZooKeeperError } from './protocol/errors.ts'
import { multi } from './protocol/multi.ts'
import { op } from './protocol/ops.ts'
import { listAncestors } from './protocol/path.ts'
import { exists, getChildren, type Request } from './protocol/requests.ts'

export type SendRequest = <T>(request: Request<T>) => Promise<T>

/**
 * Creates a path. It reads first: a create that is refused because the znode exists costs the ensemble as much as a
 * successful one.
 */
export async function createPath(ask: SendRequest, path: string, options: { acl?: readonly Acl[] }): Promise<void> {
  const lineage = listAncestors(path)
  const stats = await Promise.all(lineage.map((each) => ask(exists(each))))
  const missing = lineage.filter((_, index) => stats[index] === undefined)
  await Promise.all(missing.map((each) => ignoring(ask(create(each, null, options)), NodeExists)))
}

const DEFAULT_MAX_NODES = 100_000
/**
 * Number of znodes that are listed at a time and deleted in one transaction: fast, and other requests get in between.
 */
const NODES_PER_BATCH = 500
const MAX_ROUNDS = 10

interface Deletion {
  readonly limit?: number
  /** Converts a path of the server to a user's, for errors. */
  readonly inward: (path: string) => string
}

/** Deletes a tree from the leaves up, and starts again when other clients change it meanwhile. */
export async function deleteTree(ask: SendRequest, path: string, options: Deletion): Promise<number> {
  const { limit = DEFAULT_MAX_NODES, inward } = options
  if (path === '/') throw new InvalidArgument('the root of a ZooKeeper cannot be deleted; name a znode under it')
  let deleted = 0
  for (let round = 1; ; round++) {
    const found = await listTree(ask, path, { limit, inward })
    try {
      for (let end = found.length; end > 0; end -= NODES_PER_BATCH) {
        const portion = found.slice(Math.max(0, end - NODES_PER_BATCH), end).reverse()
        const ops = (paths: readonly string[]) => paths.map((each) => op.delete(each))
        await ask(multi(ops(portion), ops(portion.map(inward))))
        deleted += portion.length
      }
      return deleted
    } catch (error) {
      const changed = error instanceof NoNode || error instanceof NotEmpty
      if (!changed || round === MAX_ROUNDS) throw error
    }
  }
}

/** Lists every path from `path` down, parents before their children. */
async function listTree(ask: SendRequest, path: string, { limit, inward }: Required<Deletion>): Promise<string[]> {
  const found: string[] = (await ask(exists(path))) ? [path] : []
  for (let at = 0; at < found.length; ) {
    const parents = found.slice(at, at + NODES_PER_BATCH)
    at += parents.length
    const listings = await Promise.all(parents.map((parent) => ignoring(ask(getChildren(parent)), NoNode)))
    for (const [index, listing] of listings.entries()) {
      for (const name of listing?.names ?? []) found.push(`${parents[index]}/${name}`)
    }
    if (found.length > limit)
      throw new InvalidState(`${inward(path)} holds more than ${limit} znodes; nothing was deleted`)
  }
  return found
}

/** Returns undefined instead of throwing that error. */
async function ignoring<T>(promise: Promise<T>, expected: typeof ZooKeeperError): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (error instanceof expected) return undefined
    throw error
  }
}
