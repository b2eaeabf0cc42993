/**
 * Combines several transactions into one multi: decides which transactions go together, and maps each operation to its
 * transaction.
 *
 * Two transactions about the same name, such as a job, key or resource, never share a group, unless both touch it with the mode `together`. So each
 * transaction of a group is granted or refused exactly as it would be alone, and the operation at which a multi fails
 * proves the refusal of its own transaction only.
 */

import type { Admission, QueuedRequest } from '../../../../core/async/group-commit.ts'
import type { Acl, CheckOp, Op } from '../../../../zookeeper/index.ts'
import type { Applied, Journal, SharedSum, TouchedName, Transaction, TransactionStep } from './transaction.ts'

/** The limits of a group: later transactions wait for the next one, and a server should not be blocked for long. */
const MAX_GROUP_OPERATIONS = 1_024
const MAX_GROUP_BYTES = 512 * 1_024
/**
 * The number of transactions examined for one group: transactions that wait for others about the same name must not
 * hide the ones behind them.
 */
const MAX_EXAMINED = 4 * MAX_GROUP_OPERATIONS
/** The factor by which groups get smaller when connections break: see {@link QueuedTransaction.brokenConnections}. */
const MIN_FREE_FRACTION = 1 / 4
/** The approximate size of an operation in addition to its path, data and ACL. */
const OPERATION_OVERHEAD_BYTES = 64
/** The size of an identity of an ACL in addition to its texts. */
const IDENTITY_OVERHEAD_BYTES = 12

/** A transaction in the queue. */
export interface QueuedTransaction extends QueuedRequest {
  readonly transaction: Transaction<unknown>
  /** The time on the monotonic clock until which it waits for a connection. */
  readonly until: number
  /** Steps that are left out because their znodes do not exist any more; usually none. */
  leftOut?: Set<TransactionStep>
  /**
   * The number of connections that broke when it was sent, without it being applied. It may be too large for a server
   * with smaller limits than the defaults, so it is sent in smaller and smaller groups.
   */
  brokenConnections?: number
  resolve(value: unknown): void
}

/**
 * Returns the predicate for transactions that can be sent together.
 *
 * @param options.acl the ACL that is sent with every create
 * @param options.maxBytes the maximum size of a request; sizes are estimated, so a group has at most half of it
 */
export function shareMulti({
  acl = [],
  maxBytes = 2 * MAX_GROUP_BYTES,
}: {
  readonly acl?: readonly Acl[]
  readonly maxBytes?: number
} = {}): (queued: QueuedTransaction) => Admission {
  const touched = new Map<string, TouchedName['mode']>()
  const perCreate = aclBytes(acl)
  const mostBytes = Math.min(MAX_GROUP_BYTES, maxBytes / 2)
  let part: number | undefined
  let examined = 0
  let operations = 0
  let bytes = 0
  return ({ transaction: { steps, touches, entry }, brokenConnections = 0 }) => {
    const isFirst = part === undefined
    part ??= MIN_FREE_FRACTION ** brokenConnections
    examined += 1
    if (examined > MAX_EXAMINED) return 'full'
    const clash = touches.some(({ name, mode }) => conflictsWith(touched.get(name), mode))
    if (!clash) {
      operations += steps.length
      bytes += bytesWithCreates(steps, perCreate) + (entry?.bytes.length ?? 0)
      if (!isFirst && (operations > MAX_GROUP_OPERATIONS * part || bytes > mostBytes * part)) return 'full'
    }
    // A transaction that is skipped keeps its place before later transactions about the same names.
    for (const { name, mode } of touches) touched.set(name, clash ? 'alone' : mode)
    return clash ? 'wait' : 'admit'
  }
}

function conflictsWith(touched: TouchedName['mode'] | undefined, wanted: TouchedName['mode']): boolean {
  return touched !== undefined && (touched === 'alone' || wanted === 'alone')
}

/** Returns the approximate size of the steps in bytes. @param acl the ACL that is sent with every create */
export function stepBytes(steps: readonly TransactionStep[], acl: readonly Acl[]): number {
  return bytesWithCreates(steps, aclBytes(acl))
}

function aclBytes(acl: readonly Acl[]): number {
  return acl.reduce((sum, { scheme, id }) => sum + IDENTITY_OVERHEAD_BYTES + scheme.length + Buffer.byteLength(id), 0)
}

function bytesWithCreates(steps: readonly TransactionStep[], perCreate: number): number {
  let sum = 0
  for (const { op } of steps) {
    sum += OPERATION_OVERHEAD_BYTES + op.path.length
    if ('data' in op) sum += op.data?.length ?? 0
    if (op.type === 'create') sum += perCreate
  }
  return sum
}

/** The owner of an operation of the multi: one transaction's step, all transactions with this guard, sum or journal, or the marker. */
export type FailedOperation =
  | { readonly queued: QueuedTransaction; readonly step: TransactionStep }
  | { readonly allQueued: readonly QueuedTransaction[]; readonly step: TransactionStep | 'guard' }
  | { readonly first: true }

export interface ComposedMulti {
  readonly ops: readonly Op[]
  findFailed(index: number): FailedOperation | undefined
  /** Passes the results to the sums. @param results undefined if the multi was applied, and its answer is lost */
  passToSums(results: Applied['results'] | undefined): void
  /** Returns the results of the transaction at this place in the group, from the results of the multi. */
  resultsOf(place: number, results: Applied['results']): Applied['results']
}

/** Builds the multi of these transactions. @param first the operation that begins every multi */
export function compose(first: Op, allQueued: readonly QueuedTransaction[]): ComposedMulti {
  const ops: Op[] = [first]
  const guards = distinctGuards(allQueued)
  for (const { guard } of guards) ops.push(guard)
  const sums = addUp(allQueued)
  for (const { step } of sums) ops.push(step.op)
  const journals = addEntries(allQueued)
  for (const { step } of journals) ops.push(step.op)
  const starts: number[] = []
  for (const queued of allQueued) {
    starts.push(ops.length)
    for (const step of queued.transaction.steps) if (!queued.leftOut?.has(step)) ops.push(step.op)
  }
  return {
    ops,
    // Usually nothing fails: the owner of an operation is looked for only then.
    findFailed: (index) => {
      if (index === 0) return { first: true }
      const guard = guards[index - 1]
      if (guard) return { allQueued: guard.allQueued, step: 'guard' }
      const sum = sums[index - 1 - guards.length]
      if (sum) return sum
      const journal = journals[index - 1 - guards.length - sums.length]
      if (journal) return journal
      const place = starts.findLastIndex((start) => start <= index)
      const queued = allQueued[place]
      const step = queued?.transaction.steps.filter((each) => !queued.leftOut?.has(each))[index - (starts[place] ?? 0)]
      return queued && step && { queued, step }
    },
    passToSums: (results) => {
      for (const [index, { sum, total }] of sums.entries()) {
        const result = results?.[1 + guards.length + index]
        sum.onCommitted(total, result && 'mtime' in result ? result : undefined)
      }
    },
    resultsOf: (place, results) => {
      let next = starts[place] ?? 0
      const queued = allQueued[place]
      return (queued?.transaction.steps ?? []).map((step) => (queued?.leftOut?.has(step) ? undefined : results[next++]))
    },
  }
}

interface AddedSum {
  readonly sum: SharedSum
  readonly total: number
  readonly allQueued: readonly QueuedTransaction[]
  readonly step: TransactionStep
}

function addUp(allQueued: readonly QueuedTransaction[]): readonly AddedSum[] {
  const added = new Map<SharedSum, { total: number; readonly allQueued: QueuedTransaction[] }>()
  for (const queued of allQueued) {
    for (const { sum, amount } of queued.transaction.additions ?? []) {
      const known = added.get(sum) ?? { total: 0, allQueued: [] }
      known.total += amount
      known.allQueued.push(queued)
      added.set(sum, known)
    }
  }
  return [...added].map(([sum, { total, allQueued }]) => ({
    sum,
    total,
    allQueued,
    step: { ...sum.toStep(total), shared: sum },
  }))
}

interface ExtendedJournal {
  readonly allQueued: readonly QueuedTransaction[]
  readonly step: TransactionStep
}

function addEntries(allQueued: readonly QueuedTransaction[]): readonly ExtendedJournal[] {
  const extended = new Map<Journal, QueuedTransaction[]>()
  for (const queued of allQueued) {
    const { entry } = queued.transaction
    if (!entry) continue
    const known = extended.get(entry.journal)
    if (known) known.push(queued)
    else extended.set(entry.journal, [queued])
  }
  return [...extended].map(([journal, adding]) => {
    const entries = adding.flatMap(({ transaction: { entry } }) => (entry ? [entry.bytes] : []))
    return { allQueued: adding, step: { ...journal.toStep(entries), shared: journal } }
  })
}

interface SharedGuard {
  readonly guard: CheckOp
  readonly allQueued: QueuedTransaction[]
}

function distinctGuards(allQueued: readonly QueuedTransaction[]): readonly SharedGuard[] {
  const guards: SharedGuard[] = []
  let last: SharedGuard | undefined
  for (const queued of allQueued) {
    const { guard } = queued.transaction
    if (!guard) continue
    const { path, version } = guard
    if (last?.guard !== guard) last = guards.find((each) => each.guard.path === path && each.guard.version === version)
    if (!last) {
      last = { guard, allQueued: [] }
      guards.push(last)
    }
    last.allQueued.push(queued)
  }
  return guards
}
