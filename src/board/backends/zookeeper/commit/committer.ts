/**
 * Commits transactions and determines the outcome of each.
 *
 * **Group commit.** One multi is in flight at a time. Transactions that arrive meanwhile are collected and sent
 * together as the next multi, so a multi carries more transactions when the load is higher. Only one multi is in flight,
 * because the marker cannot show which of two multis was applied.
 *
 * **A refused operation fails only its own transaction.** A multi is refused as a whole, and the answer names the
 * operation at which it failed. The transaction of that operation is refused for good: the server's state proves it, and
 * no other transaction of the group uses the same names (see `multi.ts`). The others are sent again, except the ones
 * that conflict with changes which were received meanwhile. A client receives a watch event before the answer to any later
 * request. So when other owners were faster, all lost claims are known by then, and one more round is enough for the
 * rest. Watches do not report keys: when one key was taken, one read shows which of the other keys are taken. Without
 * it, each taken key would cost one more round.
 *
 * **The outcome after a lost answer** is determined from the marker (see `marker.ts`), for the whole group. If the
 * session is over by then, the outcome stays unknown (OutcomeUnknown). A group that was not applied is sent again in
 * smaller groups. A transaction that breaks connections even when it is sent alone is rejected in the end; otherwise
 * the transactions behind it would never be sent.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { GroupCommit } from '../../../../core/async/group-commit.ts'
import { SharedResults } from '../../../../core/async/shared-results.ts'
import { isError, NotConnected, OutcomeUnknown, PayloadTooLarge } from '../../../../core/errors.ts'
import type { Result } from '../../../../core/result.ts'
import { monotonic } from '../../../../core/time.ts'
import {
  BadVersion,
  NoNode,
  type ReadData,
  type ReadResult,
  RequestTooLarge,
  SessionExpired,
  toTenantError,
  type ZooKeeper,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import { AppliedPart, SharedTransaction } from './grouped-transactions.ts'
import { type Marker, Markers } from './marker.ts'
import { type ComposedMulti, compose, type QueuedTransaction, shareMulti, stepBytes } from './multi.ts'
import type {
  Applied,
  CommittedTransaction,
  Precheck,
  RefusalMeaning,
  RefusedStep,
  Transaction,
  TransactionStep,
} from './transaction.ts'

/**
 * The number of connections that may break while one transaction is sent alone. After that, the transaction counts as
 * the cause.
 */
const MAX_BROKEN_CONNECTIONS = 4
/** The number of prechecks in one read. */
const PRECHECKS_AT_ONCE = 500

type PrecheckRead = ReadResult<ReadData> | ReadResult<{ readonly names: string[] }>

export class TransactionCommitter {
  readonly #zookeeper: ZooKeeper
  readonly #markers: Markers
  readonly #timeoutMs: number
  readonly #onServerTime: (serverTime: number) => void
  readonly #group: GroupCommit<QueuedTransaction>
  /** Recoveries of applied transactions, and repairs, that are in progress. */
  readonly #background = new Set<Promise<void>>()

  /**
   * @param options.timeoutMs the time for which a transaction waits for a connection
   * @param options.clock receives the server's time, in milliseconds since 1970, with every answer
   */
  constructor(
    zookeeper: ZooKeeper,
    layout: ZooKeeperLayout,
    options: { timeoutMs: number; clock: (time: number) => void },
  ) {
    this.#zookeeper = zookeeper
    this.#markers = new Markers(zookeeper, layout, options.clock)
    this.#timeoutMs = options.timeoutMs
    this.#onServerTime = options.clock
    this.#group = new GroupCommit({
      send: (group) => this.#commitGroup(group),
      admits: () => shareMulti({ acl: zookeeper.acl, maxBytes: zookeeper.maxRequestBytes }),
      refusalOf: (queued) => this.#expiryOf(queued),
      // Transactions of one turn of the event loop go together, and are sent at its end.
      schedule: process.nextTick,
    })
  }

  /**
   * Sends a transaction. It waits for a connection for at most a session timeout, counted from the call: transactions
   * that are queued while a server is away wait at the same time, not one after the other.
   *
   * @throws the error of `onRefused`; NotConnected, OutcomeUnknown; ClaimLost when its session is over
   */
  commit<T>(transaction: Transaction<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const until = monotonic() + this.#timeoutMs
      this.#group.enqueue({ transaction, until, resolve: resolve as QueuedTransaction['resolve'], reject })
    })
  }

  /** Sends transactions as {@link commit} does. Resolves with a result for each; a transaction that could not be made keeps its error. */
  commitAll<T>(transactions: readonly Result<Transaction<T>>[]): Promise<Result<T>[]> {
    const results = new SharedResults<T>(transactions.length)
    const until = monotonic() + this.#timeoutMs
    for (const [index, transaction] of transactions.entries())
      if ('error' in transaction) results.settle(index, transaction)
      else this.#group.enqueue(new SharedTransaction(transaction.value, until, { results, index }))
    return results.settled
  }

  /** The maximum size of a request in bytes. */
  get maxBytes(): number {
    return this.#zookeeper.maxRequestBytes
  }

  /** Returns the approximate size of these steps in a request, in bytes. */
  sizeOf(steps: readonly TransactionStep[]): number {
    return stepBytes(steps, this.#zookeeper.acl)
  }

  /** Creates the marker before the first transaction, and reads the server's time. */
  async prepare(): Promise<void> {
    await this.#markers.current()
  }

  /** Resolves when no transaction is in progress. */
  async idle(): Promise<void> {
    while (!this.#group.isIdle || this.#background.size > 0) {
      await Promise.all([this.#group.idle, ...this.#background])
      // Work that is scheduled for the end of this turn runs before the next turn.
      await nextTurn()
    }
  }

  #expiryOf({ transaction, until }: QueuedTransaction): Error | undefined {
    const isLate = this.#zookeeper.state !== 'connected' && until < monotonic()
    return isLate ? notConnectedError(transaction) : undefined
  }

  async #commitGroup(collected: readonly QueuedTransaction[]): Promise<void> {
    const marker =
      this.#markers.known ??
      (await this.#markers.current().catch((error: unknown) => this.#handleNotSent(collected, error)))
    if (!marker) return
    const group = collected.filter((queued) => {
      const { session } = queued.transaction
      if (session === undefined || session === marker.session) return true
      refuse(queued, sessionOver(queued))
      return false
    })
    if (group.length === 0) return
    const composed = compose(this.#markers.checkStep(marker), group)
    const { session } = marker
    const answer = await this.#zookeeper.multi(composed.ops, { session }).catch(async (error: unknown) => {
      if (!(error instanceof ZooKeeperError)) throw error
      await this.#handleFailure({ group, composed, marker }, error)
      return undefined
    })
    if (!answer) return
    const { zxid, results } = answer
    const [markerResult] = results
    if (markerResult && 'mtime' in markerResult) this.#onServerTime(markerResult.mtime)
    this.#advanceMarker(marker)
    composed.passToSums(results)
    // The server works on the next group while the callers of this one go on.
    this.#group.next()
    this.#zookeeper.flush()
    for (const [place, queued] of group.entries())
      settleQueued(queued, new AppliedPart({ zxid, session }, { composed, place, results }))
  }

  async #handleFailure(sent: SentMulti, error: ZooKeeperError): Promise<void> {
    const { group, marker } = sent
    if (error.outcome === 'unknown') return this.#recoverOutcome(sent, error)
    if (error instanceof RequestTooLarge) return this.#handleTooLarge(group, error)
    if (error instanceof SessionExpired) return this.#rejectSessionOver(group)
    if (error.outcome === 'not-sent') return rejectAll(group, (queued) => notConnectedError(queued.transaction, error))
    const failed = error.index === undefined ? undefined : sent.composed.findFailed(error.index)
    if (!failed) return refuseAll(group, error)
    if ('first' in failed) return this.#handleRefusedMarker(sent, error)
    marker.sentBefore = false
    if ('allQueued' in failed) {
      const refused = new Set(failed.allQueued)
      for (const queued of refused) refuse(queued, refusalOf(queued, error, failed.step))
      this.#group.requeue(group.filter((queued) => !refused.has(queued) && !refuseIfConflicting(queued)))
      return
    }
    const { prechecks = [] } = failed.queued.transaction
    // Without its other prechecks it would be sent once for each of them that fails: a job may depend on a thousand that have ended.
    const isExamined = prechecks.length > 1
    if (!isExamined) this.#handleRefusedStep(failed, error)
    const rest = group.filter((queued) => queued !== failed.queued && !refuseIfConflicting(queued))
    if (prechecks.length === 0) return this.#group.requeue(rest)
    const passed = await this.#withoutPrecheckFailures(isExamined ? [failed.queued, ...rest] : rest)
    if (isExamined && passed.includes(failed.queued)) this.#handleRefusedStep(failed, error)
    this.#group.requeue(passed.filter((queued) => queued !== failed.queued))
  }

  /**
   * Reads the prechecks of these transactions in one request. Rejects the transactions that would be refused, and
   * returns the others.
   */
  async #withoutPrecheckFailures(allQueued: readonly QueuedTransaction[]): Promise<readonly QueuedTransaction[]> {
    const checked = allQueued.flatMap((queued) =>
      (queued.transaction.prechecks ?? []).map((precheck) => ({ queued, precheck })),
    )
    if (checked.length === 0) return allQueued
    const found = await this.#readPrechecks(checked.map(({ precheck }) => precheck))
    const refused = new Map<QueuedTransaction, RefusalMeaning<unknown>>()
    for (const { queued, precheck } of checked) {
      const read = found.get(toKey(precheck))
      // The read is one of this operation. All are judged before the first is answered: a judgement notes what it has found.
      const refusal = read && precheck.judge(read as never)
      if (refusal && !refused.has(queued)) refused.set(queued, refusal)
    }
    for (const [queued, refusal] of refused) refuse(queued, refusal)
    return allQueued.filter((queued) => !refused.has(queued))
  }

  /** Reads each path once. If the read fails, the transactions are sent and refused one by one. */
  async #readPrechecks(prechecks: readonly Precheck<unknown>[]): Promise<ReadonlyMap<string, PrecheckRead>> {
    const distinct = [...new Map(prechecks.map((precheck) => [toKey(precheck), precheck])).values()]
    const found = new Map<string, PrecheckRead>()
    try {
      for (let from = 0; from < distinct.length; from += PRECHECKS_AT_ONCE) {
        const part = distinct.slice(from, from + PRECHECKS_AT_ONCE)
        const { results } = await this.#zookeeper.multiRead(part.map(({ op }) => op))
        for (const [index, precheck] of part.entries()) {
          const result = results[index]
          if (result) found.set(toKey(precheck), result)
        }
      }
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
    }
    return found
  }

  #handleRefusedStep(
    { queued, step }: { queued: QueuedTransaction; step: TransactionStep },
    error: ZooKeeperError,
  ): void {
    if (step.isOptional && error instanceof NoNode) {
      queued.leftOut ??= new Set()
      queued.leftOut.add(step)
      this.#group.requeue([queued])
      return
    }
    const repair = queued.transaction.repair?.(step, error)
    if (!repair) {
      refuse(queued, refusalOf(queued, error, step))
      return
    }
    this.#runInBackground(async () => {
      try {
        await repair()
        this.#group.requeue([queued])
      } catch (failed) {
        const named = toTenantError('board', queued.transaction.what, failed)
        queued.reject(named instanceof ZooKeeperError ? notConnectedError(queued.transaction, named) : named)
      }
    })
  }

  async #recoverOutcome(sent: SentMulti, error: ZooKeeperError): Promise<void> {
    const { group, marker } = sent
    marker.sentBefore = true
    const found = await this.#markers.recoverOutcome(marker)
    if (found === 'not-applied') this.#resend(group, error)
    else if (found === 'lost') rejectAll(group, (queued) => outcomeUnknownError(queued.transaction, error))
    else this.#handleApplied(sent, found.applied)
  }

  #handleTooLarge(group: readonly QueuedTransaction[], error: RequestTooLarge): void {
    if (group.length === 1) {
      rejectAll(group, (queued) => tooLargeError(queued.transaction, error))
      return
    }
    // The limit became smaller while the group waited for a connection, or its size was estimated too low.
    for (const queued of group) queued.brokenConnections = (queued.brokenConnections ?? 0) + 1
    this.#group.requeue(group)
  }

  #resend(group: readonly QueuedTransaction[], error: ZooKeeperError): void {
    const [first] = group
    for (const queued of group) queued.brokenConnections = (queued.brokenConnections ?? 0) + 1
    const isHopeless =
      group.length === 1 &&
      first &&
      (first.brokenConnections ?? 0) > MAX_BROKEN_CONNECTIONS &&
      first.until < monotonic()
    if (isHopeless) first.reject(breaksConnectionsError(first.transaction, this.sizeOf(first.transaction.steps), error))
    else this.#group.requeue(group)
  }

  /**
   * Handles a refused marker operation: either an earlier copy of the multi was applied after all, or another client
   * changed the marker.
   */
  async #handleRefusedMarker(sent: SentMulti, error: ZooKeeperError): Promise<void> {
    const { group, marker } = sent
    const isChangedMarker = error instanceof BadVersion || error instanceof NoNode
    if (!isChangedMarker) return refuseAll(group, error)
    if (marker.sentBefore) {
      const found = await this.#markers.recoverOutcome(marker)
      if (typeof found === 'object') return this.#handleApplied(sent, found.applied)
      if (found === 'lost') return rejectAll(group, (queued) => outcomeUnknownError(queued.transaction, error))
    }
    this.#markers.forget(marker)
    this.#group.requeue(group)
  }

  /**
   * Completes the transactions of an applied group. A connection that breaks meanwhile must not be reported as "nothing
   * was done", because the transactions are certainly applied.
   */
  #handleApplied({ group, composed, marker }: SentMulti, zxid: bigint): void {
    this.#advanceMarker(marker)
    composed.passToSums(undefined)
    const { session } = marker
    for (const queued of group) this.#runInBackground(() => this.#recover(queued, { zxid, session }))
  }

  async #recover(queued: QueuedTransaction, done: CommittedTransaction): Promise<void> {
    while (true) {
      try {
        return queued.resolve(await queued.transaction.onRecovered(done))
      } catch (error) {
        const over = this.#zookeeper.state === 'closed' || this.#zookeeper.session?.id !== done.session
        if (!(error instanceof NotConnected)) return queued.reject(error)
        if (over) return queued.reject(outcomeUnknownError(queued.transaction, error))
      }
    }
  }

  #advanceMarker(marker: Marker): void {
    marker.version += 1
    marker.sentBefore = false
  }

  #rejectSessionOver(group: readonly QueuedTransaction[]): void {
    for (const queued of group) {
      if (queued.transaction.session !== undefined) refuse(queued, sessionOver(queued))
    }
    this.#group.requeue(group.filter((queued) => queued.transaction.session === undefined))
  }

  #handleNotSent(group: readonly QueuedTransaction[], error: unknown): undefined {
    if (!(error instanceof ZooKeeperError)) throw error
    if (error.outcome === 'refused') refuseAll(group, error)
    else rejectAll(group, (queued) => notConnectedError(queued.transaction, error))
  }

  #runInBackground(work: () => Promise<void>): void {
    const promise = work().finally(() => this.#background.delete(promise))
    this.#background.add(promise)
  }
}

interface SentMulti {
  readonly group: readonly QueuedTransaction[]
  readonly composed: ComposedMulti
  readonly marker: Marker
}

/** Returns what a refusal means. If permissions, credentials or ACLs are the cause of an error, the error says what to do. */
function refusalOf(
  { transaction }: QueuedTransaction,
  error: ZooKeeperError,
  step: RefusedStep = undefined,
): RefusalMeaning<unknown> {
  const refusal = transaction.onRefused(error, step)
  return isError(refusal) ? toTenantError('board', transaction.what, refusal) : refusal
}

function sessionOver({ transaction }: QueuedTransaction): RefusalMeaning<unknown> {
  return transaction.onSessionOver?.() ?? refusalError(transaction.what, { why: 'over' })
}

function refuse(queued: QueuedTransaction, refusal: RefusalMeaning<unknown>): void {
  if (isError(refusal)) queued.reject(refusal)
  // An answer that throws is a rejection.
  else queued.resolve(new Promise((resolve) => resolve(refusal.answer())))
}

function refuseAll(group: readonly QueuedTransaction[], error: ZooKeeperError): void {
  for (const queued of group) refuse(queued, refusalOf(queued, error))
}

function settleQueued(queued: QueuedTransaction, applied: Applied): void {
  try {
    queued.resolve(queued.transaction.onCommitted(applied))
  } catch (error) {
    queued.reject(error)
  }
}

function rejectAll(group: readonly QueuedTransaction[], why: (queued: QueuedTransaction) => Error): void {
  for (const queued of group) queued.reject(why(queued))
}

function refuseIfConflicting(queued: QueuedTransaction): boolean {
  const refusal = queued.transaction.getConflict?.()
  if (refusal) refuse(queued, refusal)
  return refusal !== undefined
}

function tooLargeError({ what }: { what: string }, cause: Error): PayloadTooLarge {
  return new PayloadTooLarge(`${what}: ${cause.message}`, { cause })
}

function notConnectedError({ what }: { what: string }, cause?: ZooKeeperError): Error {
  const why = cause?.message ?? 'there is no connection'
  return new NotConnected(`${what}: nothing was done: ${why}`, cause ? { cause } : {})
}

function breaksConnectionsError({ what }: { what: string }, bytes: number, cause: Error): NotConnected {
  return new NotConnected(
    `${what}: nothing was done: connections break when it is sent, about ${bytes} bytes; ` +
      "check whether the servers' jute.maxbuffer is smaller than its default of one megabyte",
    { cause },
  )
}

function outcomeUnknownError({ what }: { what: string }, cause: Error): OutcomeUnknown {
  return new OutcomeUnknown(
    `${what}: the connection broke before the answer, and it is not known whether it was done, because the session is over`,
    { cause },
  )
}

/** Returns the key of a precheck: transactions may have the same one. */
function toKey({ op: { type, path } }: Precheck<unknown>): string {
  return `${type} ${path}`
}
