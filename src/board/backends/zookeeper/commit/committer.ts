/**
 * Commits transactions, and knows of each what became of it.
 *
 * **Group commit.** One multi is in flight. What comes while it is being answered gathers and goes out together as the
 * next one, so the more there is to do, the more a transaction of the server carries. One in flight, because with two the
 * marker could not say which of them was applied.
 *
 * **A refused operation fails nobody but its own.** A multi is refused as a whole, and names the operation it failed at.
 * Its transaction is refused for good: the server's state says so, and no neighbour is about the same (see `batch.ts`).
 * The others go out again, but for those that changes told meanwhile speak against: a watch event reaches a client before
 * the answer to anything younger, so when a batch is refused because others were faster, everybody who lost is known by
 * then, and half a batch stolen costs one more round instead of one for each. Nobody is told of keys: where one was taken,
 * one look shows which of the others are, or many that are posted again would cost a round each.
 *
 * **A lost answer** is found out by the marker (see `marker.ts`), for the whole batch. If the session is over by then,
 * nobody can tell any more: OutcomeUnknown. What was not applied is sent again, in smaller company; what breaks connections
 * even when it is alone is given up in time, for nobody behind it would ever have a turn.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ClaimLost, NotConnected, OutcomeUnknown, PayloadTooLarge } from '../../../../core/errors.ts'
import { monotonic } from '../../../../core/time.ts'
import {
  BadVersion,
  NoAuth,
  NoNode,
  RequestTooLarge,
  SessionExpired,
  toTenantError,
  type ZooKeeper,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type { Layout } from '../store/layout.ts'
import {
  type CommittedTransaction,
  type ComposedMulti,
  compose,
  type QueuedTransaction,
  stepBytes,
  type Transaction,
  takeBatch,
} from './batch.ts'
import { type Marker, Markers } from './marker.ts'
import type { TransactionStep } from './transactions.ts'

/** So many connections may break under one transaction that goes out alone; more, and it takes the blame. */
const MAX_BROKEN_CONNECTIONS = 4

export class Committer {
  readonly #zookeeper: ZooKeeper
  readonly #markers: Markers
  readonly #timeoutMs: number
  readonly #onServerTime: (serverTime: number) => void
  #queue: QueuedTransaction[] = []
  #scheduled = false
  #draining: Promise<void> | undefined
  /** What was applied and is still being found, and what is being mended. */
  readonly #background = new Set<Promise<void>>()

  /**
   * @param options.patience how long a transaction waits for a connection, in milliseconds
   * @param options.clock told of the server's time, in milliseconds since 1970, with every answer
   */
  constructor(zookeeper: ZooKeeper, layout: Layout, options: { patience: number; clock: (time: number) => void }) {
    this.#zookeeper = zookeeper
    this.#markers = new Markers(zookeeper, layout, options.clock)
    this.#timeoutMs = options.patience
    this.#onServerTime = options.clock
  }

  /**
   * Waits for a connection no longer than a session lasts, counted from the call: those that stand in line while a server
   * is away must not wait one after the other.
   *
   * @throws what `refused` says; NotConnected, OutcomeUnknown; ClaimLost when its session is over
   */
  commit<T>(transaction: Transaction<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const until = monotonic() + this.#timeoutMs
      this.#queue.push({ transaction, until, resolve: resolve as QueuedTransaction['resolve'], reject })
      this.#schedule()
    })
  }

  /** How large these steps are when they are sent, in bytes, about. */
  sizeOf(steps: readonly TransactionStep[]): number {
    return stepBytes(steps, this.#zookeeper.acl)
  }

  /** Makes the marker ahead of the first transaction, and learns what time it is at the server. */
  async prepare(): Promise<void> {
    await this.#markers.current()
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#scheduled || this.#draining !== undefined || this.#background.size > 0) {
      await Promise.all([this.#draining, ...this.#background])
      // What is scheduled for the end of this turn runs before the next one.
      await nextTurn()
    }
  }

  /** At the end of the turn: what is asked in one turn of the event loop goes together. */
  #schedule(): void {
    if (this.#scheduled || this.#draining !== undefined) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.#draining = this.#drainQueue().finally(() => {
        this.#draining = undefined
        if (this.#queue.length > 0) this.#schedule()
      })
    })
  }

  async #drainQueue(): Promise<void> {
    while (this.#queue.length > 0) {
      this.#expireLate()
      const { batch, rest } = takeBatch(this.#queue, this.#zookeeper.acl)
      this.#queue = rest
      try {
        await this.#commitBatch(batch)
      } catch (error) {
        for (const turn of batch) turn.reject(error)
      }
    }
  }

  #expireLate(): void {
    if (this.#zookeeper.state === 'connected') return
    const now = monotonic()
    const late = (turn: QueuedTransaction) => turn.until < now
    for (const turn of this.#queue.filter(late)) turn.reject(notConnectedError(turn.transaction))
    this.#queue = this.#queue.filter((turn) => !late(turn))
  }

  async #commitBatch(gathered: readonly QueuedTransaction[]): Promise<void> {
    if (gathered.length === 0) return
    const marker = await this.#markers.current().catch((error: unknown) => this.#handleNotSent(gathered, error))
    if (!marker) return
    const batch = gathered.filter((turn) => {
      const { session } = turn.transaction
      if (session === undefined || session === marker.session) return true
      turn.reject(sessionOverError(turn.transaction))
      return false
    })
    if (batch.length === 0) return
    const composed = compose(this.#markers.checkStep(marker), batch)
    try {
      const { zxid, results } = await this.#zookeeper.multi(composed.ops, { session: marker.session })
      const [marked] = results
      if (marked && 'mtime' in marked) this.#onServerTime(marked.mtime)
      this.#advanced(marker)
      const { session } = marker
      for (const turn of batch) {
        const applied = { zxid, session, results: composed.resultsOf(turn, results) }
        settleQueued(turn, () => turn.transaction.onCommitted(applied))
      }
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
      await this.#handleFailure({ batch, composed, marker }, error)
    }
  }

  async #handleFailure(sent: SentMulti, error: ZooKeeperError): Promise<void> {
    const { batch, marker } = sent
    if (error.outcome === 'unknown') return this.#recoverOutcome(sent, error)
    if (error instanceof RequestTooLarge) return rejectAll(batch, (turn) => tooLargeError(turn.transaction, error))
    if (error instanceof SessionExpired) return this.#rejectSessionOver(batch)
    if (error.outcome === 'not-sent') return rejectAll(batch, (turn) => notConnectedError(turn.transaction, error))
    const blame = error.index === undefined ? undefined : sent.composed.findFailed(error.index)
    if (!blame) return rejectAll(batch, (turn) => rejectionOf(turn, error))
    if ('first' in blame) return this.#handleRefusedMarker(sent, error)
    marker.sentBefore = false
    const refused = new Set<QueuedTransaction>()
    if ('guarded' in blame) {
      for (const turn of blame.guarded) {
        refused.add(turn)
        turn.reject(rejectionOf(turn, error, 'guard'))
      }
    } else {
      refused.add(blame.turn)
      this.#handleRefusedStep(blame, error)
    }
    const rest = batch.filter((turn) => !refused.has(turn) && !rejectIfConflicting(turn))
    const doubtful = 'turn' in blame && blame.turn.transaction.precheck !== undefined
    this.#requeue(doubtful ? await this.#withoutPrecheckFailures(rest) : rest)
  }

  /** Without those of which one look shows that they would be refused. */
  async #withoutPrecheckFailures(turns: readonly QueuedTransaction[]): Promise<readonly QueuedTransaction[]> {
    const doubted = turns.flatMap((turn) => {
      const { precheck } = turn.transaction
      return precheck ? [{ turn, ...precheck }] : []
    })
    if (doubted.length === 0) return turns
    const looking = this.#zookeeper.multiRead(doubted.map(({ op }) => op))
    // Whatever keeps it from looking: they are tried, and refused one by one.
    const results = await looking.then(
      (answer) => answer.results,
      () => [],
    )
    const refused = new Set<QueuedTransaction>()
    for (const [index, { turn, judge }] of doubted.entries()) {
      const found = results[index]
      const error = found && judge(found)
      if (!error) continue
      refused.add(turn)
      turn.reject(error)
    }
    return turns.filter((turn) => !refused.has(turn))
  }

  #handleRefusedStep({ turn, step }: { turn: QueuedTransaction; step: TransactionStep }, error: ZooKeeperError): void {
    if (step.mayBeGone && error instanceof NoNode) {
      turn.leftOut ??= new Set()
      turn.leftOut.add(step)
      this.#requeue([turn])
      return
    }
    const mending = turn.transaction.repair?.(step, error)
    if (!mending) {
      turn.reject(rejectionOf(turn, error, step))
      return
    }
    this.#runInBackground(async () => {
      try {
        await mending()
        this.#requeue([turn])
        this.#schedule()
      } catch (failed) {
        const denied = failed instanceof NoAuth
        const away = failed instanceof ZooKeeperError && !denied
        turn.reject(
          away ? notConnectedError(turn.transaction, failed) : toTenantError('board', turn.transaction.what, failed),
        )
      }
    })
  }

  async #recoverOutcome({ batch, marker }: SentMulti, error: ZooKeeperError): Promise<void> {
    marker.sentBefore = true
    const found = await this.#markers.recoverOutcome(marker)
    if (found === 'not-applied') this.#resend(batch, error)
    else if (found === 'lost') rejectAll(batch, (turn) => outcomeUnknownError(turn.transaction, error))
    else this.#handleApplied(batch, marker, found.applied)
  }

  #resend(batch: readonly QueuedTransaction[], error: ZooKeeperError): void {
    const [first] = batch
    for (const turn of batch) turn.brokenConnections = (turn.brokenConnections ?? 0) + 1
    const hopeless =
      batch.length === 1 &&
      first &&
      (first.brokenConnections ?? 0) > MAX_BROKEN_CONNECTIONS &&
      first.until < monotonic()
    if (hopeless) first.reject(breaksConnectionsError(first.transaction, this.sizeOf(first.transaction.steps), error))
    else this.#requeue(batch)
  }

  /** Either the copy that was sent before has arrived after all, or a stranger has touched the marker. */
  async #handleRefusedMarker({ batch, marker }: SentMulti, error: ZooKeeperError): Promise<void> {
    const ours = error instanceof BadVersion || error instanceof NoNode
    if (!ours) return rejectAll(batch, (turn) => rejectionOf(turn, error))
    if (marker.sentBefore) {
      const found = await this.#markers.recoverOutcome(marker)
      if (typeof found === 'object') return this.#handleApplied(batch, marker, found.applied)
      if (found === 'lost') return rejectAll(batch, (turn) => outcomeUnknownError(turn.transaction, error))
    }
    this.#markers.forget(marker)
    this.#requeue(batch)
  }

  /** That it was applied is certain: a connection that breaks meanwhile must not read as "nothing was done". */
  #handleApplied(batch: readonly QueuedTransaction[], marker: Marker, zxid: bigint): void {
    this.#advanced(marker)
    const { session } = marker
    for (const turn of batch) this.#runInBackground(() => this.#recover(turn, { zxid, session }))
  }

  async #recover(turn: QueuedTransaction, done: CommittedTransaction): Promise<void> {
    while (true) {
      try {
        return turn.resolve(await turn.transaction.onRecovered(done))
      } catch (error) {
        const over = this.#zookeeper.state === 'closed' || this.#zookeeper.session?.id !== done.session
        if (!(error instanceof NotConnected)) return turn.reject(error)
        if (over) return turn.reject(outcomeUnknownError(turn.transaction, error))
      }
    }
  }

  #advanced(marker: Marker): void {
    marker.version += 1
    marker.sentBefore = false
  }

  #rejectSessionOver(batch: readonly QueuedTransaction[]): void {
    for (const turn of batch) {
      if (turn.transaction.session !== undefined) turn.reject(sessionOverError(turn.transaction))
    }
    this.#requeue(batch.filter((turn) => turn.transaction.session === undefined))
  }

  #handleNotSent(batch: readonly QueuedTransaction[], error: unknown): undefined {
    if (!(error instanceof ZooKeeperError)) throw error
    const refused = error.outcome === 'refused'
    rejectAll(batch, (turn) => (refused ? rejectionOf(turn, error) : notConnectedError(turn.transaction, error)))
  }

  #requeue(turns: readonly QueuedTransaction[]): void {
    this.#queue.unshift(...turns)
  }

  #runInBackground(work: () => Promise<void>): void {
    const promise = work().finally(() => this.#background.delete(promise))
    this.#background.add(promise)
  }
}

interface SentMulti {
  readonly batch: readonly QueuedTransaction[]
  readonly composed: ComposedMulti
  readonly marker: Marker
}

/** What the transaction takes it for, unless it is about who we are. */
function rejectionOf(
  { transaction }: QueuedTransaction,
  error: ZooKeeperError,
  step?: TransactionStep | 'guard',
): Error {
  return toTenantError('board', transaction.what, transaction.toRejection(error, step))
}

function settleQueued(turn: QueuedTransaction, value: () => unknown): void {
  try {
    turn.resolve(value())
  } catch (error) {
    turn.reject(error)
  }
}

function rejectAll(batch: readonly QueuedTransaction[], why: (turn: QueuedTransaction) => Error): void {
  for (const turn of batch) turn.reject(why(turn))
}

function rejectIfConflicting(turn: QueuedTransaction): boolean {
  const error = turn.transaction.getConflict?.()
  if (error) turn.reject(error)
  return error !== undefined
}

function tooLargeError({ what }: { what: string }, cause: Error): PayloadTooLarge {
  return new PayloadTooLarge(`${what}: ${cause.message}`, { cause })
}

function sessionOverError({ what }: { what: string }): ClaimLost {
  return new ClaimLost(`${what}: the session that claimed it is over; stop and write nothing`)
}

function notConnectedError({ what }: { what: string }, cause?: ZooKeeperError): Error {
  const why = cause?.message ?? 'there is no connection'
  return new NotConnected(`${what}: nothing was done: ${why}`, cause ? { cause } : {})
}

function breaksConnectionsError({ what }: { what: string }, bytes: number, cause: Error): NotConnected {
  return new NotConnected(
    `${what}: nothing was done: connections break when it is sent, about ${bytes} bytes; ` +
      "see whether the servers' jute.maxbuffer is smaller than the megabyte that they ship with",
    { cause },
  )
}

function outcomeUnknownError({ what }: { what: string }, cause: Error): OutcomeUnknown {
  return new OutcomeUnknown(
    `${what}: the connection broke before the answer, and nobody can tell if it was done: the session is over`,
    { cause },
  )
}
