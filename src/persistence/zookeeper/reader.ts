/** Reads books and flows while others write. */
import { NoNode, op, type ReadData, type Stat, type ZooKeeper, type ZooKeeperError } from '../../zookeeper/index.ts'
import type { AtomDetail, FlowDetail } from '../models.ts'
import { RecordDecoder } from '../record-memory.ts'
import { atomPath, isFlowName, toPositions } from './layout.ts'
import { type BookNodeRecord, decodeAtom, decodeBook, decodeFlow, type FlowNodeRecord } from './records.ts'

export interface ReadFlow extends FlowNodeRecord {
  readonly version: number
  /** The transaction that wrote the flow last; other than the version, it never repeats when a book is created again. */
  readonly mzxid: bigint
}

export interface ReadBook extends BookNodeRecord {
  readonly version: number
}

/** The maximum number of reads in one request, whose size is limited. */
const READS_PER_REQUEST = 200

export async function missingAsUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof NoNode) return undefined
    throw error
  }
}

/** Reads a book and a flow in one round trip; each is undefined where it is missing. */
export async function readBookAndFlow(
  zookeeper: ZooKeeper,
  paths: { readonly book: string; readonly flow: string },
): Promise<{ book: ReadBook | undefined; flow: ReadFlow | undefined }> {
  const { results } = await zookeeper.multiRead([op.getData(paths.book), op.getData(paths.flow)])
  const [book, flow] = results
  const bookData = requirePresent(book)
  const flowData = requirePresent(flow)
  return {
    book: bookData && { ...decodeBook(bookData.data, paths.book), version: bookData.stat.version },
    flow: flowData && toReadFlow(flowData, paths.flow),
  }
}

export async function readBookRecord(zookeeper: ZooKeeper, path: string): Promise<ReadBook | undefined> {
  const read = await missingAsUndefined(zookeeper.getData(path))
  return read && { ...decodeBook(read.data, path), version: read.stat.version }
}

export async function readFlowRecord(zookeeper: ZooKeeper, path: string): Promise<ReadFlow | undefined> {
  const read = await missingAsUndefined(zookeeper.getData(path))
  return read && toReadFlow(read, path)
}

function toReadFlow({ data, stat }: ReadData, path: string): ReadFlow {
  return { ...decodeFlow(data, path), version: stat.version, mzxid: stat.mzxid }
}

/**
 * Reads a flow as it was at one moment: a write changes the flow's znode with its atoms, so the same transaction before
 * and after means that there was no write.
 */
export async function readWholeFlow(zookeeper: ZooKeeper, path: string): Promise<FlowDetail | undefined> {
  for (;;) {
    const before = await readFlowRecord(zookeeper, path)
    if (!before) return undefined
    const atoms = await missingAsUndefined(readAtoms(zookeeper, path))
    const after = await missingAsUndefined(zookeeper.getData(path))
    if (atoms && after?.stat.mzxid === before.mzxid) return { ...before.flow, atoms: [...atoms.values()] }
  }
}

/** Reads the atoms by position. @throws NoNode when the flow is removed meanwhile */
export async function readAtoms(zookeeper: ZooKeeper, path: string): Promise<Map<number, AtomDetail>> {
  const { names } = await zookeeper.getChildren(path)
  const atoms = new Map<number, AtomDetail>()
  const decoder = new RecordDecoder()
  const positions = toPositions(names)
  for (let from = 0; from < positions.length; from += READS_PER_REQUEST) {
    const some = positions.slice(from, from + READS_PER_REQUEST)
    const { results } = await zookeeper.multiRead(some.map((position) => op.getData(atomPath(path, position))))
    for (const [index, position] of some.entries()) {
      const result = results[index]
      if (!result) continue
      if (result.error) throw result.error
      atoms.set(position, decodeAtom(result.data, { path: atomPath(path, position), decoder }))
    }
  }
  return atoms
}

/** Reads every flow of a book; none where the book is missing. */
export async function readFlows(zookeeper: ZooKeeper, book: string): Promise<FlowDetail[]> {
  const names = (await missingAsUndefined(zookeeper.getChildren(book)))?.names ?? []
  const flows = await Promise.all(names.filter(isFlowName).map((name) => readWholeFlow(zookeeper, `${book}/${name}`)))
  const found = flows.filter((flow) => flow !== undefined)
  return found.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.uuid < b.uuid ? -1 : 1))
}

/** Returns the result, or undefined for a missing znode. @throws ZooKeeperError for every other error */
function requirePresent<T extends { readonly data: Uint8Array | null; readonly stat: Stat }>(
  result: T | { readonly error: ZooKeeperError } | { readonly error?: undefined },
): T | undefined {
  if ('error' in result && result.error) {
    if (result.error instanceof NoNode) return undefined
    throw result.error
  }
  return result as T
}
