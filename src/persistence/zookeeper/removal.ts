/** Taking a book away: first nothing can be added to it any more, then it is removed piece by piece. */
import { NoNode, NotEmpty, type Op, op, type ZooKeeper } from '../../zookeeper/index.ts'
import { unlessGone } from './reading.ts'

const AT_ONCE = 500

/** Finishes a removal, from wherever somebody who died has left it. The terms go first: writers are then refused. */
export async function sweep(zookeeper: ZooKeeper, book: string): Promise<void> {
  for (;;) {
    const flows = await childrenOf(zookeeper, book)
    for (const flow of flows) {
      const names = await childrenOf(zookeeper, flow)
      const terms = names.filter((name) => name.includes('/t-'))
      await deleteAll(zookeeper, [...terms, ...names.filter((name) => !terms.includes(name))])
    }
    await deleteAll(zookeeper, flows)
    await deleteAll(zookeeper, [book])
    if (!(await zookeeper.exists(book))) return
  }
}

async function childrenOf(zookeeper: ZooKeeper, path: string): Promise<string[]> {
  const children = await unlessGone(zookeeper.getChildren(path))
  return children ? children.names.map((name) => `${path}/${name}`) : []
}

/** Others may be at it, too; and what has got children meanwhile is looked at again. */
async function deleteAll(zookeeper: ZooKeeper, paths: readonly string[]): Promise<void> {
  for (let from = 0; from < paths.length; from += AT_ONCE) {
    const some = paths.slice(from, from + AT_ONCE)
    const ops: Op[] = some.map((path) => op.delete(path))
    await zookeeper.multi(ops).catch(async (error: unknown) => {
      if (!isRace(error)) throw error
      for (const path of some) await zookeeper.delete(path).catch(unlessRace)
    })
  }
}

function unlessRace(error: unknown): void {
  if (!isRace(error)) throw error
}

function isRace(error: unknown): boolean {
  return error instanceof NoNode || error instanceof NotEmpty
}
