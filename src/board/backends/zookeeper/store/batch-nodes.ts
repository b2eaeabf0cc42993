/**
 * The batches of a board on ZooKeeper.
 *
 *     <sessions>/.batches/<batch>                 the definition: never changed
 *     <sessions>/.batches/<batch>/state           sealed, cancelled, ended, in which generation
 *     <sessions>/.batches/<batch>/open/<uuid>     a job that has not ended
 *     <sessions>/.batches/<batch>/failed/<job>    a job that has ended in the trash, by its id
 *
 * There is no counter that many transactions would change (`state` has the number of jobs that ended before the batch was copied from
 * another board): the servers count the children that were created and deleted, and both folders
 * stay for as long as the batch. So `total` is the number of children created in `open`, less the ones deleted in `failed`, which a restoration
 * does. Transactions of posts and ends do not conflict:
 *
 * | transaction | steps beside the steps of the job | what refuses it |
 * |---|---|---|
 * | post | check `state`, create in `open`; to a sealed batch: check the poster's job in `open`, setData `open` | the batch was sealed or cancelled; the poster's job has ended |
 * | end | delete in `open`, create in `failed` if it goes to the trash | |
 * | end of the last job | these, check `open`, setData `state`, create the callback | a job was opened since `open` was read |
 * | restoration | delete in `failed`, create in `open`, setData `open`; check `state`, or setData if the batch has ended | `state` was changed |
 * | seal, cancel, reopen | setData `state` | `state` was changed |
 *
 * **Who is the last.** The end reads `open` before. If it has only the job itself, no other transaction can end the batch; a job that is opened
 * between the read and the transaction changes the version of `open` or of `state`, and the transaction compares both. Two jobs that end
 * at the same time may each read the other. So every end that is not the last looks again afterwards, and one of them finds `open` empty and
 * ends the batch. If both die before that, the next sweep ends it, or the next reader of the batch.
 *
 * These znodes are outside of the tree that boards watch: no client is notified of them.
 */
import { decode, toFields } from '../../../../core/codec.ts'
import { isTime } from '../../../../core/time.ts'
import { op, type ZooKeeper } from '../../../../zookeeper/index.ts'
import type { BatchJobs } from '../../../contract/index.ts'
import type { BatchCounts, BatchStatus, StoredBatch } from '../../../model/job-batch.ts'
import { isCount } from '../../../model/stored.ts'
import type { ZooKeeperLayout } from './layout.ts'
import { missingAsUndefined } from './reader.ts'

const READS_AT_ONCE = 500

/** A batch without its definition, as it was read. */
export interface BatchSnapshot {
  readonly status: BatchStatus
  readonly counts: BatchCounts
  readonly stateVersion: number
  readonly openVersion: number
  /** The jobs of `total` that ended on the board from which the batch was copied, for which no child was ever created here. */
  readonly carried: number
  /** The transaction that created the batch. */
  readonly createdBy: bigint
}

export interface BatchNodesOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
}

/** A read that callers share. */
interface SharedRead {
  readonly running: Promise<unknown>
  /** The read after it, for callers that come while it runs: it may have been answered before they came. */
  next: Promise<BatchSnapshot | undefined> | undefined
}

export class BatchNodes {
  readonly #zookeeper: ZooKeeper
  readonly #layout: ZooKeeperLayout
  readonly #reads = new Map<string, SharedRead>()

  constructor({ zookeeper, layout }: BatchNodesOptions) {
    this.#zookeeper = zookeeper
    this.#layout = layout
  }

  /** Reads a batch as it is after the call; undefined if there is none. Jobs that end at the same time share the requests. */
  read(batch: string): Promise<BatchSnapshot | undefined> {
    const shared = this.#reads.get(batch)
    if (!shared) return this.#startRead(batch)
    shared.next ??= shared.running.then(() => this.#startRead(batch))
    return shared.next
  }

  #startRead(batch: string): Promise<BatchSnapshot | undefined> {
    const reading = this.readEach([batch]).then(([found]) => found)
    const ignored = reading.catch(() => undefined)
    const shared: SharedRead = { running: ignored, next: undefined }
    this.#reads.set(batch, shared)
    // The next read, if there is one, has taken its place by then.
    void ignored.then(() => {
      if (this.#reads.get(batch) === shared && !shared.next) this.#reads.delete(batch)
    })
    return reading
  }

  /** Reads batches; undefined for each that there is not. */
  async readEach(batches: readonly string[]): Promise<(BatchSnapshot | undefined)[]> {
    const layout = this.#layout
    const found: (BatchSnapshot | undefined)[] = []
    for (let from = 0; from < batches.length; from += READS_AT_ONCE) {
      const part = batches.slice(from, from + READS_AT_ONCE)
      const { results } = await this.#zookeeper.multiRead(
        part.flatMap((batch) => [
          op.getData(layout.batchState(batch)),
          op.getData(layout.batchOpen(batch)),
          op.getData(layout.batchFailed(batch)),
        ]),
      )
      for (const index of part.keys()) {
        const [state, open, failed] = [results[3 * index], results[3 * index + 1], results[3 * index + 2]]
        const isWhole = state && open && failed && !state.error && !open.error && !failed.error
        found.push(isWhole ? toSnapshot({ state, open: open.stat, failed: failed.stat }) : undefined)
      }
    }
    return found
  }

  /** Reads a batch as it is on all servers at the time of the call. */
  async readSynced(batch: string): Promise<BatchSnapshot | undefined> {
    const [, [found]] = await Promise.all([this.#zookeeper.sync(this.#layout.batchesFolder), this.readEach([batch])])
    return found
  }

  /** Reads the definition; undefined where the batch is gone. */
  async readDefinition(batch: string): Promise<Uint8Array | undefined> {
    const found = await missingAsUndefined(this.#zookeeper.getData(this.#layout.batch(batch)))
    return found?.data ?? undefined
  }

  /** Reads a batch with its definition, as it is on the servers at the time of the call. */
  async readWhole(batch: string): Promise<StoredBatch | undefined> {
    const [, bytes, found] = await Promise.all([
      this.#zookeeper.sync(this.#layout.batchesFolder),
      this.readDefinition(batch),
      this.readEach([batch]),
    ])
    return toStored(batch, bytes, found[0])
  }

  /** Returns the uuids of all batches. */
  async listNames(): Promise<readonly string[]> {
    return (await missingAsUndefined(this.#zookeeper.getChildren(this.#layout.batchesFolder)))?.names ?? []
  }

  /** Returns the newest batches, newest first. */
  async newest(limit: number): Promise<StoredBatch[]> {
    await this.#zookeeper.sync(this.#layout.batchesFolder)
    const names = await this.listNames()
    const snapshots = await this.readEach(names)
    const found = names.flatMap((batch, index) => {
      const snapshot = snapshots[index]
      return snapshot ? [{ batch, snapshot }] : []
    })
    const newest = found.sort((a, b) => (a.snapshot.createdBy < b.snapshot.createdBy ? 1 : -1)).slice(0, limit)
    const definitions = await Promise.all(newest.map(({ batch }) => this.readDefinition(batch)))
    return newest.flatMap(({ batch, snapshot }, index) => toStored(batch, definitions[index], snapshot) ?? [])
  }

  /** Returns the jobs of a batch; undefined if there is no such batch. */
  async jobs(batch: string): Promise<BatchJobs | undefined> {
    await this.#zookeeper.sync(this.#layout.batchesFolder)
    const [open, failed] = await Promise.all([
      missingAsUndefined(this.#zookeeper.getChildren(this.#layout.batchOpen(batch))),
      missingAsUndefined(this.#zookeeper.getChildren(this.#layout.batchFailed(batch))),
    ])
    return open && failed && { open: open.names, failed: failed.names }
  }

  /** Returns which znodes of an ending job exist. */
  async readMember({
    batch,
    uuid,
    id,
  }: {
    readonly batch: string
    readonly uuid: string
    readonly id: string
  }): Promise<{ readonly isOpen: boolean; readonly isFailed: boolean }> {
    const { results } = await this.#zookeeper.multiRead([
      op.getData(this.#layout.batchMember(batch, uuid)),
      op.getData(this.#layout.failedMember(batch, id)),
    ])
    return { isOpen: results[0].error === undefined, isFailed: results[1].error === undefined }
  }
}

function toStored(
  uuid: string,
  bytes: Uint8Array | undefined,
  snapshot: BatchSnapshot | undefined,
): StoredBatch | undefined {
  return bytes && snapshot && { uuid, bytes, ...snapshot.status, ...snapshot.counts }
}

interface FolderStat {
  readonly cversion: number
  readonly numChildren: number
  readonly version: number
}

function toSnapshot(nodes: {
  readonly state: {
    readonly data: Uint8Array | null
    readonly stat: { readonly version: number; readonly czxid: bigint }
  }
  readonly open: FolderStat
  readonly failed: FolderStat
}): BatchSnapshot | undefined {
  const { state, open, failed } = nodes
  const stored = decodeStatus(state.data)
  if (!stored) return undefined
  const { carried, ...status } = stored
  // Of the servers, `cversion` counts children that were created or deleted.
  const restored = (failed.cversion - failed.numChildren) / 2
  const total = carried + (open.cversion + open.numChildren) / 2 - restored
  const counts = { total, open: open.numChildren, failed: failed.numChildren }
  return {
    status,
    counts: { ...counts, done: total - counts.open - counts.failed },
    stateVersion: state.stat.version,
    openVersion: open.version,
    carried,
    createdBy: state.stat.czxid,
  }
}

/** Returns undefined for bytes that no board has written. */
function decodeStatus(data: Uint8Array | null): (BatchStatus & { readonly carried: number }) | undefined {
  try {
    const { sealed, generation, cancelled, endedAt, carried } =
      toFields(decode(data ?? new Uint8Array(), 'msgpack')) ?? {}
    if (typeof sealed !== 'boolean' || !isCount(generation)) return undefined
    const { who, reason } = toFields(cancelled) ?? {}
    return {
      ...{ sealed, generation, carried: Number.isSafeInteger(carried) ? Number(carried) : 0 },
      ...(typeof who === 'string' && typeof reason === 'string' ? { cancelled: { who, reason } } : {}),
      ...(isTime(endedAt) ? { endedAt } : {}),
    }
  } catch {
    return undefined
  }
}
