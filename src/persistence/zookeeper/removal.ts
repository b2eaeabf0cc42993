/**
 * Taking a book away. One multi marks it as gone: whatever would be added to it checks the book's version, and is refused
 * from then on. Then it is deleted piece by piece, by whoever meets it.
 *
 * Each piece goes in a multi that checks the mark, which has a name of its own and goes last, with the book: whoever is
 * late must not delete what belongs to a book that was made anew.
 */
import { BadVersion, NoNode, NotEmpty, type Op, op, type ZooKeeper } from '../../zookeeper/index.ts'
import { damagedRecordError } from '../checked-records.ts'
import { gonePath, isTermPath } from './layout.ts'
import { missingAsUndefined } from './reader.ts'
import { type BookNodeRecord, encodeBook } from './records.ts'

const DELETES_PER_REQUEST = 500

/** What marks a book as gone, if it is still at this version. */
export function markGoneOp(
  path: string,
  options: { book: BookNodeRecord['book']; version: number; mark: string },
): Op[] {
  const { book, version, mark } = options
  return [op.setData(path, encodeBook({ book, gone: mark }), { version }), op.create(gonePath(path, mark), null)]
}

/** Of a removal that meets others at it. */
const MAX_ROUNDS = 50

/** Finishes a removal, from wherever somebody has left it. The terms go first: writers are then refused. */
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
      // Somebody else is at it, too, or a flow got an atom meanwhile.
      if (!(error instanceof NoNode || error instanceof NotEmpty || error instanceof BadVersion)) throw error
      if (!(await zookeeper.exists(marked))) return
      // Nobody adds so much to a book that is being removed: these are not znodes of a logbook.
      if (round === MAX_ROUNDS) throw damagedRecordError(book, 'there are znodes in it that no logbook has')
    }
  }
}

/** In the order in which it can be deleted. */
async function listDeletions(zookeeper: ZooKeeper, book: string, marked: string): Promise<string[]> {
  const flows = (await listChildren(zookeeper, book)).filter((path) => path !== marked)
  const below = (await Promise.all(flows.map((flow) => listChildren(zookeeper, flow)))).flat()
  return [...below.filter(isTermPath), ...below.filter((path) => !isTermPath(path)), ...flows]
}

async function listChildren(zookeeper: ZooKeeper, path: string): Promise<string[]> {
  const children = await missingAsUndefined(zookeeper.getChildren(path))
  return children ? children.names.map((name) => `${path}/${name}`) : []
}
