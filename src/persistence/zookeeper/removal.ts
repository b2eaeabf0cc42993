/**
 * Removes a book. A multi marks it as gone: every addition checks the book's version, and is refused from then on.
 * Then any process that finds it deletes it piece by piece.
 *
 * Each piece is deleted in a multi that checks the mark, which has a unique name and is deleted last, with the book: a
 * slow process must not delete parts of a book that was created again.
 */
import { BadVersion, NoNode, NotEmpty, type Op, op, type ZooKeeper } from '../../zookeeper/index.ts'
import { damagedRecordError } from '../checked-records.ts'
import { gonePath, isTermPath } from './layout.ts'
import { missingAsUndefined } from './reader.ts'
import { type BookNodeRecord, encodeBook } from './records.ts'

const DELETES_PER_REQUEST = 500

/** Returns the operations that mark a book as gone, if it still has this version. */
export function markGoneOp(
  path: string,
  options: { book: BookNodeRecord['book']; version: number; mark: string },
): Op[] {
  const { book, version, mark } = options
  return [op.setData(path, encodeBook({ book, gone: mark }), { version }), op.create(gonePath(path, mark), null)]
}

/** The maximum number of rounds of a removal that meets concurrent ones. */
const MAX_ROUNDS = 50

/** Finishes a removal, wherever an earlier process stopped. The terms are deleted first: writers are then refused. */
export async function finishRemoval(zookeeper: ZooKeeper, book: string, mark: string): Promise<void> {
  const marked = gonePath(book, mark)
  for (let round = 1; ; round += 1) {
    try {
      const paths = await listDeletions(zookeeper, book, marked)
      for (let from = 0; from < paths.length; from += DELETES_PER_REQUEST) {
        const some = paths.slice(from, from + DELETES_PER_REQUEST)
        await zookeeper.multi([op.check(marked), ...some.map((path) => op.delete(path))])
      }
      await zookeeper.multi([op.delete(marked), op.delete(book)])
      return
    } catch (error) {
      // Another process removes the book, too, or a flow got an atom meanwhile.
      if (!(error instanceof NoNode || error instanceof NotEmpty || error instanceof BadVersion)) throw error
      if (!(await zookeeper.exists(marked))) return
      // A book that is being removed cannot grow so often: these znodes do not belong to a logbook.
      if (round === MAX_ROUNDS) throw damagedRecordError(book, 'it contains znodes that do not belong to a logbook')
    }
  }
}

/** Lists the paths in the order in which they can be deleted. */
async function listDeletions(zookeeper: ZooKeeper, book: string, marked: string): Promise<string[]> {
  const flows = (await listChildren(zookeeper, book)).filter((path) => path !== marked)
  const below = (await Promise.all(flows.map((flow) => listChildren(zookeeper, flow)))).flat()
  return [...below.filter(isTermPath), ...below.filter((path) => !isTermPath(path)), ...flows]
}

async function listChildren(zookeeper: ZooKeeper, path: string): Promise<string[]> {
  const children = await missingAsUndefined(zookeeper.getChildren(path))
  return children ? children.names.map((name) => `${path}/${name}`) : []
}
