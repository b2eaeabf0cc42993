/**
 * Several transactions as one multi: which go together, and whose each of its operations is.
 *
 * Two that are about the same job, key or resource never share a batch, except those who share a resource. So each of a
 * batch would be granted or refused alone as it is with its neighbours, and the operation that a multi failed at proves
 * the refusal of its own transaction and says nothing of the others.
 */
import type {
  Acl,
  CheckOp,
  GetDataOp,
  Op,
  ReadData,
  ReadResult,
  Stat,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type { TransactionStep } from './transactions.ts'

/** The largest batch: what comes after it waits for the next, and a server should not be kept from others for long. */
const MAX_BATCH_OPERATIONS = 1_024
const MAX_BATCH_BYTES = 512 * 1_024
/** So many are looked at for one batch: those that have to wait for others about the same must not hide who is behind them. */
const MAX_EXAMINED = 4 * MAX_BATCH_OPERATIONS
/** A part that is tried where connections broke under the whole: see {@link QueuedTransaction.brokenConnections}. */
const MIN_FREE_FRACTION = 1 / 4
/** What an operation adds to its path, data and ACL, about. */
const OPERATION_OVERHEAD_BYTES = 64
/** What an identity of an ACL adds to its texts. */
const IDENTITY_OVERHEAD_BYTES = 12

/** A job, key or resource that a transaction is about. */
export interface TouchedName {
  readonly name: string
  readonly mode: 'alone' | 'together'
}

/** A transaction was applied, together with others in one of the server. */
export interface CommittedTransaction {
  /** Everything of one batch has the same. */
  readonly zxid: bigint
  readonly session: bigint
}

/** What a multi answered, for one transaction of it. */
export interface Applied extends CommittedTransaction {
  /** One per step; undefined for a step that was left out. */
  readonly results: readonly ({ readonly path: string } | Stat | undefined)[]
}

export interface Transaction<T> {
  /** For errors: `claim of job …`. */
  readonly what: string
  readonly steps: readonly TransactionStep[]
  readonly touches: readonly TouchedName[]
  /** Checked once for all of a batch that have it. */
  readonly guard?: CheckOp
  /** Never sent in another session: settles belong to the session that claimed. */
  readonly session?: bigint
  /** Asked when its batch was refused because of another: what the changes told since it was made say against it. */
  getConflict?(): Error | undefined
  /** What shows whether it would be refused: looked at, together, when its batch was refused because of another that has it. */
  readonly precheck?: Precheck
  /** What is done about a refused step before the transaction is tried again; undefined where the refusal stands. */
  repair?(step: TransactionStep, error: ZooKeeperError): (() => Promise<unknown>) | undefined
  onCommitted(applied: Applied): T
  /** It was applied; the rest of the answer is lost. */
  onRecovered(done: CommittedTransaction): T | Promise<T>
  /** What a refusal means. Without a step the server refused the multi as such. */
  toRejection(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): Error
}

export interface Precheck {
  readonly op: GetDataOp
  /** What speaks against the transaction. */
  readonly judge: (found: ReadResult<ReadData>) => Error | undefined
}

/** A transaction that waits for its turn. */
export interface QueuedTransaction {
  readonly transaction: Transaction<unknown>
  /** On the monotonic clock: how long it waits for a connection. */
  readonly until: number
  /** Steps that are left out by now; almost always there are none. */
  leftOut?: Set<TransactionStep>
  /**
   * How many connections broke when it was sent, and it had not been done. It may be too much for a server that takes less
   * than servers do as they ship: so it goes out in smaller and smaller company.
   */
  brokenConnections?: number
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Takes from the waiting, in their order, those that may go together; the rest stay, in their order.
 *
 * @param acl what goes out with every create
 */
export function takeBatch(
  waiting: readonly QueuedTransaction[],
  acl: readonly Acl[] = [],
): { readonly batch: readonly QueuedTransaction[]; readonly rest: QueuedTransaction[] } {
  const batch: QueuedTransaction[] = []
  const passed: QueuedTransaction[] = []
  const touched = new Map<string, TouchedName['mode']>()
  const perCreate = aclBytes(acl)
  const part = MIN_FREE_FRACTION ** (waiting[0]?.brokenConnections ?? 0)
  let operations = 0
  let bytes = 0
  let next = 0
  for (; next < Math.min(waiting.length, MAX_EXAMINED); next++) {
    const turn = waiting[next]
    if (!turn) break
    const { steps, touches } = turn.transaction
    const clash = touches.some(({ name, mode }) => conflictsWith(touched.get(name), mode))
    if (!clash) {
      operations += steps.length
      bytes += bytesWithCreates(steps, perCreate)
      if (batch.length > 0 && (operations > MAX_BATCH_OPERATIONS * part || bytes > MAX_BATCH_BYTES * part)) break
    }
    // One that is passed over keeps its place before later ones about the same.
    for (const { name, mode } of touches) touched.set(name, clash ? 'alone' : mode)
    if (clash) passed.push(turn)
    else batch.push(turn)
  }
  return { batch, rest: passed.concat(waiting.slice(next)) }
}

function conflictsWith(there: TouchedName['mode'] | undefined, wanted: TouchedName['mode']): boolean {
  return there !== undefined && (there === 'alone' || wanted === 'alone')
}

/** In bytes, about. @param acl what goes out with every create */
export function stepBytes(steps: readonly TransactionStep[], acl: readonly Acl[]): number {
  return bytesWithCreates(steps, aclBytes(acl))
}

function aclBytes(acl: readonly Acl[]): number {
  return acl.reduce((sum, { scheme, id }) => sum + IDENTITY_OVERHEAD_BYTES + scheme.length + Buffer.byteLength(id), 0)
}

function bytesWithCreates(steps: readonly TransactionStep[], perCreate: number): number {
  return steps.reduce((sum, { op }) => {
    const data = 'data' in op ? (op.data?.length ?? 0) : 0
    return sum + OPERATION_OVERHEAD_BYTES + op.path.length + data + (op.type === 'create' ? perCreate : 0)
  }, 0)
}

/** Who is to blame for an operation of the multi: one transaction's step, or everybody with this guard. */
export type FailedOperation =
  | { readonly turn: QueuedTransaction; readonly step: TransactionStep }
  | { readonly guarded: readonly QueuedTransaction[] }
  | { readonly first: true }

export interface ComposedMulti {
  readonly ops: readonly Op[]
  findFailed(index: number): FailedOperation | undefined
  /** What the answer of the whole says to this one. */
  resultsOf(turn: QueuedTransaction, results: Applied['results']): Applied['results']
}

/** @param first the operation that begins every multi */
export function compose(first: Op, turns: readonly QueuedTransaction[]): ComposedMulti {
  const ops: Op[] = [first]
  const blames: FailedOperation[] = [{ first: true }]
  for (const guarded of distinctGuards(turns)) {
    const guard = guarded[0]?.transaction.guard
    if (!guard) continue
    ops.push(guard)
    blames.push({ guarded })
  }
  const places = new Map<QueuedTransaction, number>()
  for (const turn of turns) {
    places.set(turn, ops.length)
    for (const step of turn.transaction.steps) {
      if (turn.leftOut?.has(step)) continue
      ops.push(step.op)
      blames.push({ turn, step })
    }
  }
  return {
    ops,
    findFailed: (index) => blames[index],
    resultsOf: (turn, results) => {
      let place = places.get(turn) ?? 0
      return turn.transaction.steps.map((step) => (turn.leftOut?.has(step) ? undefined : results[place++]))
    },
  }
}

function distinctGuards(turns: readonly QueuedTransaction[]): Iterable<QueuedTransaction[]> {
  const guarded = new Map<string, QueuedTransaction[]>()
  for (const turn of turns) {
    const { guard } = turn.transaction
    if (!guard) continue
    const name = `${guard.path} ${guard.version}`
    const same = guarded.get(name)
    if (same) same.push(turn)
    else guarded.set(name, [turn])
  }
  return guarded.values()
}
