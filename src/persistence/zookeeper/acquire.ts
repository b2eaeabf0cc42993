/** Acquires a flow: one round trip to read, one multi to acquire. */
import { randomUUID } from 'node:crypto'
import { BadVersion, NodeExists, NoNode, type Op, op, type ZooKeeper } from '../../zookeeper/index.ts'
import { damagedRecordError } from '../checked-records.ts'
import { createFlowDetail, toAcquiredFlow } from '../flow-record.ts'
import type { FlowDetail } from '../models.ts'
import type { AcquireRequest, FlowRequest } from '../persistence.ts'
import { fencedError } from '../requests.ts'
import type { AtomicOps, LogbookCommitter } from './committer.ts'
import { type LogbookLayout, termPath } from './layout.ts'
import { type ReadBook, type ReadFlow, readAtoms, readBookAndFlow } from './reader.ts'
import { encodeBook, encodeFlow } from './records.ts'
import { finishRemoval } from './removal.ts'

export interface AcquireContext {
  readonly zookeeper: ZooKeeper
  readonly committer: LogbookCommitter
  readonly layout: LogbookLayout
}

export interface AcquiredTerm {
  readonly flow: FlowDetail
  readonly path: string
  readonly term: string
  readonly version: number
  readonly positions: ReadonlyMap<string, number>
}

/**
 * Acquires a flow, and creates it where it is missing.
 *
 * @param term the term of this acquire: an acquire whose answer was lost finds it in the flow
 * @throws Fenced @throws ZooKeeperError
 */
export async function acquireFlow(place: AcquireContext, request: AcquireRequest, term: string): Promise<AcquiredTerm> {
  const path = place.layout.flow(request.book.uuid, request.flow.uuid)
  for (;;) {
    const { book, flow } = await readForAcquire(place, request)
    if (flow?.term === term) return toAcquired(place, { path, term, flow, version: flow.version })
    const repeated = flow?.flow.run === request.run && flow.flow.claim === request.claim
    if (flow && flow.flow.run >= request.run && !repeated) throw fencedError(request, flow.flow.run)
    const { atoms: _none, ...record } = toAcquiredFlow(flow && { ...flow.flow, atoms: [] }, request, new Date())
    const taken = { flow: record, term, writes: 0 }
    const ops: Op[] = flow
      ? [
          op.setData(path, encodeFlow(taken), { version: flow.version }),
          op.delete(termPath(path, flow.term)),
          op.create(termPath(path, term), null),
        ]
      : [op.create(path, encodeFlow(taken)), op.create(termPath(path, term), null)]
    if (!(await tryCommit(place, [...toBookOps(place, request, book), ...ops]))) {
      if (flow) await assertTerm(place, request, flow)
      continue
    }
    return toAcquired(place, { path, term, flow: taken, version: flow ? flow.version + 1 : 0 })
  }
}

/**
 * Throws when the flow names a term whose znode is missing: every transaction that takes over the flow would be refused
 * because of it. The term is read first: an acquire replaces both at once, and a removal marks the book before it
 * deletes a term.
 *
 * @throws StorageFailure
 */
async function assertTerm(
  { zookeeper, layout }: AcquireContext,
  request: AcquireRequest,
  flow: ReadFlow,
): Promise<void> {
  const path = layout.flow(request.book.uuid, request.flow.uuid)
  await zookeeper.sync(path)
  if (await zookeeper.exists(termPath(path, flow.term))) return
  const now = await readBookAndFlow(zookeeper, { book: layout.book(request.book.uuid), flow: path })
  const isBeingRemoved = !now.book || now.book.gone !== undefined
  // The term, not the version: a book that was removed and created again may have a flow of the same version.
  if (isBeingRemoved || now.flow?.term !== flow.term) return
  throw damagedRecordError(path, 'it names a term that does not exist')
}

/** Creates a flow. Resolves to false when the flow exists already. @throws ZooKeeperError */
export async function startFlow(place: AcquireContext, request: FlowRequest): Promise<boolean> {
  const path = place.layout.flow(request.book.uuid, request.flow.uuid)
  const term = randomUUID()
  for (;;) {
    const { book, flow } = await readForAcquire(place, request)
    if (flow) return false
    const { atoms: _none, ...record } = createFlowDetail(request, new Date())
    const ops = [op.create(path, encodeFlow({ flow: record, term, writes: 0 })), op.create(termPath(path, term), null)]
    if (await tryCommit(place, [...toBookOps(place, request, book), ...ops])) return true
  }
}

/**
 * Reads the book and the flow. Finishes the removal of a book that is being removed: the next book of that UUID is a
 * new one.
 */
async function readForAcquire(
  { zookeeper, layout }: AcquireContext,
  { book: { uuid }, flow }: FlowRequest,
): Promise<{ book: ReadBook | undefined; flow: ReadFlow | undefined }> {
  const path = layout.book(uuid)
  const found = await readBookAndFlow(zookeeper, { book: path, flow: layout.flow(uuid, flow.uuid) })
  if (found.book?.gone === undefined) return found
  await finishRemoval(zookeeper, path, found.book.gone)
  return { book: undefined, flow: undefined }
}

/**
 * Returns the operations for the book: it is created, or must not have changed, so that it is not removed while a flow
 * is created in it.
 */
function toBookOps({ layout }: AcquireContext, { book }: FlowRequest, existing: ReadBook | undefined): Op[] {
  const { uuid, name, meta = {} } = book
  const path = layout.book(uuid)
  if (existing) return [op.check(path, { version: existing.version })]
  const at = new Date()
  return [op.create(path, encodeBook({ book: { uuid, name, meta, createdAt: at, updatedAt: at } }))]
}

/** Returns whether it was done; if not, another process was faster, and the flow must be read again. */
async function tryCommit({ committer, zookeeper, layout }: AcquireContext, change: AtomicOps): Promise<boolean> {
  try {
    await committer.commit(change)
    return true
  } catch (error) {
    const [first] = change
    if (error instanceof NoNode && first?.type === 'create') await zookeeper.mkdirp(layout.parentOf(first.path))
    else if (!(error instanceof BadVersion || error instanceof NoNode || error instanceof NodeExists)) throw error
    return false
  }
}

async function toAcquired(
  { zookeeper }: AcquireContext,
  { path, term, flow, version }: { path: string; term: string; flow: Pick<ReadFlow, 'flow'>; version: number },
): Promise<AcquiredTerm> {
  const isNew = version === 0
  const atoms = isNew ? new Map() : await readAtoms(zookeeper, path)
  const positions = new Map([...atoms].map(([position, { name }]) => [name, position]))
  return { flow: { ...flow.flow, atoms: [...atoms.values()] }, path, term, version, positions }
}
