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
import { ClaimLost, NotConnected, OutcomeUnknown, PayloadTooLarge } from '../../core/errors.ts'
import { monotonic } from '../../core/time.ts'
import {
  BadVersion,
  inWordsOf,
  NoAuth,
  NoNode,
  RequestTooLarge,
  SessionExpired,
  type ZooKeeper,
  ZooKeeperError,
} from '../../zookeeper/index.ts'
import { type Composed, compose, type Done, gather, sizeOf, type Transaction, type Turn } from './batch.ts'
import type { Layout } from './layout.ts'
import { type Marker, Markers } from './marker.ts'
import type { Step } from './transactions.ts'

/** So many connections may break under one transaction that goes out alone; more, and it takes the blame. */
const MOST_BROKEN = 4

export class Committer {
  readonly #zookeeper: ZooKeeper
  readonly #markers: Markers
  readonly #patience: number
  readonly #clock: (serverTime: number) => void
  #waiting: Turn[] = []
  #scheduled = false
  #pumping: Promise<void> | undefined
  /** What was applied and is still being found, and what is being mended. */
  readonly #aside = new Set<Promise<void>>()

  /**
   * @param options.patience how long a transaction waits for a connection, in milliseconds
   * @param options.clock told of the server's time, in milliseconds since 1970, with every answer
   */
  constructor(zookeeper: ZooKeeper, layout: Layout, options: { patience: number; clock: (time: number) => void }) {
    this.#zookeeper = zookeeper
    this.#markers = new Markers(zookeeper, layout, options.clock)
    this.#patience = options.patience
    this.#clock = options.clock
  }

  /**
   * Waits for a connection no longer than a session lasts, counted from the call: those that stand in line while a server
   * is away must not wait one after the other.
   *
   * @throws what `refused` says; NotConnected, OutcomeUnknown; ClaimLost when its session is over
   */
  commit<T>(transaction: Transaction<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const until = monotonic() + this.#patience
      this.#waiting.push({ transaction, until, resolve: resolve as Turn['resolve'], reject })
      this.#schedule()
    })
  }

  /** How large these steps are when they are sent, in bytes, about. */
  sizeOf(steps: readonly Step[]): number {
    return sizeOf(steps, this.#zookeeper.acl)
  }

  /** Makes the marker ahead of the first transaction, and learns what time it is at the server. */
  async prepare(): Promise<void> {
    await this.#markers.current()
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#scheduled || this.#pumping !== undefined || this.#aside.size > 0) {
      await Promise.all([this.#pumping, ...this.#aside])
      // What is scheduled for the end of this turn runs before the next one.
      await nextTurn()
    }
  }

  /** At the end of the turn: what is asked in one turn of the event loop goes together. */
  #schedule(): void {
    if (this.#scheduled || this.#pumping !== undefined) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.#pumping = this.#pump().finally(() => {
        this.#pumping = undefined
        if (this.#waiting.length > 0) this.#schedule()
      })
    })
  }

  async #pump(): Promise<void> {
    while (this.#waiting.length > 0) {
      this.#dismissLate()
      const { batch, rest } = gather(this.#waiting, this.#zookeeper.acl)
      this.#waiting = rest
      try {
        await this.#run(batch)
      } catch (error) {
        for (const turn of batch) turn.reject(error)
      }
    }
  }

  #dismissLate(): void {
    if (this.#zookeeper.state === 'connected') return
    const now = monotonic()
    const late = (turn: Turn) => turn.until < now
    for (const turn of this.#waiting.filter(late)) turn.reject(notConnected(turn.transaction))
    this.#waiting = this.#waiting.filter((turn) => !late(turn))
  }

  async #run(gathered: readonly Turn[]): Promise<void> {
    if (gathered.length === 0) return
    const marker = await this.#markers.current().catch((error: unknown) => this.#nothingSent(gathered, error))
    if (!marker) return
    const batch = gathered.filter((turn) => {
      const { session } = turn.transaction
      if (session === undefined || session === marker.session) return true
      turn.reject(sessionOver(turn.transaction))
      return false
    })
    if (batch.length === 0) return
    const composed = compose(this.#markers.step(marker), batch)
    try {
      const { zxid, results } = await this.#zookeeper.multi(composed.ops, { session: marker.session })
      const [marked] = results
      if (marked && 'mtime' in marked) this.#clock(marked.mtime)
      this.#advanced(marker)
      const { session } = marker
      for (const turn of batch) {
        const applied = { zxid, session, results: composed.resultsOf(turn, results) }
        settle(turn, () => turn.transaction.done(applied))
      }
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
      await this.#failed({ batch, composed, marker }, error)
    }
  }

  async #failed(sent: Sent, error: ZooKeeperError): Promise<void> {
    const { batch, marker } = sent
    if (error.outcome === 'unknown') return this.#findOut(sent, error)
    if (error instanceof RequestTooLarge) return refuseAll(batch, (turn) => tooLarge(turn.transaction, error))
    if (error instanceof SessionExpired) return this.#sessionOver(batch)
    if (error.outcome === 'not-sent') return refuseAll(batch, (turn) => notConnected(turn.transaction, error))
    const blame = error.index === undefined ? undefined : sent.composed.blame(error.index)
    if (!blame) return refuseAll(batch, (turn) => refusal(turn, error))
    if ('first' in blame) return this.#markerRefused(sent, error)
    marker.sentBefore = false
    const refused = new Set<Turn>()
    if ('guarded' in blame) {
      for (const turn of blame.guarded) {
        refused.add(turn)
        turn.reject(refusal(turn, error, 'guard'))
      }
    } else {
      refused.add(blame.turn)
      this.#stepRefused(blame, error)
    }
    const rest = batch.filter((turn) => !refused.has(turn) && !wasOvertaken(turn))
    const doubtful = 'turn' in blame && blame.turn.transaction.doubt !== undefined
    this.#tryAgain(doubtful ? await this.#undoubted(rest) : rest)
  }

  /** Without those of which one look shows that they would be refused. */
  async #undoubted(turns: readonly Turn[]): Promise<readonly Turn[]> {
    const doubted = turns.flatMap((turn) => {
      const { doubt } = turn.transaction
      return doubt ? [{ turn, ...doubt }] : []
    })
    if (doubted.length === 0) return turns
    const looking = this.#zookeeper.multiRead(doubted.map(({ op }) => op))
    // Whatever keeps it from looking: they are tried, and refused one by one.
    const results = await looking.then(
      (answer) => answer.results,
      () => [],
    )
    const refused = new Set<Turn>()
    for (const [index, { turn, judge }] of doubted.entries()) {
      const found = results[index]
      const error = found && judge(found)
      if (!error) continue
      refused.add(turn)
      turn.reject(error)
    }
    return turns.filter((turn) => !refused.has(turn))
  }

  #stepRefused({ turn, step }: { turn: Turn; step: Step }, error: ZooKeeperError): void {
    if (step.mayBeGone && error instanceof NoNode) {
      turn.leftOut ??= new Set()
      turn.leftOut.add(step)
      this.#tryAgain([turn])
      return
    }
    const mending = turn.transaction.mend?.(step, error)
    if (!mending) {
      turn.reject(refusal(turn, error, step))
      return
    }
    this.#beside(async () => {
      try {
        await mending()
        this.#tryAgain([turn])
        this.#schedule()
      } catch (failed) {
        const denied = failed instanceof NoAuth
        const away = failed instanceof ZooKeeperError && !denied
        turn.reject(away ? notConnected(turn.transaction, failed) : inWordsOf('board', turn.transaction.what, failed))
      }
    })
  }

  async #findOut({ batch, marker }: Sent, error: ZooKeeperError): Promise<void> {
    marker.sentBefore = true
    const found = await this.#markers.find(marker)
    if (found === 'not-applied') this.#sendAgain(batch, error)
    else if (found === 'lost') refuseAll(batch, (turn) => outcomeUnknown(turn.transaction, error))
    else this.#applied(batch, marker, found.applied)
  }

  #sendAgain(batch: readonly Turn[], error: ZooKeeperError): void {
    const [first] = batch
    for (const turn of batch) turn.broken = (turn.broken ?? 0) + 1
    const hopeless = batch.length === 1 && first && (first.broken ?? 0) > MOST_BROKEN && first.until < monotonic()
    if (hopeless) first.reject(breaksConnections(first.transaction, this.sizeOf(first.transaction.steps), error))
    else this.#tryAgain(batch)
  }

  /** Either the copy that was sent before has arrived after all, or a stranger has touched the marker. */
  async #markerRefused({ batch, marker }: Sent, error: ZooKeeperError): Promise<void> {
    const ours = error instanceof BadVersion || error instanceof NoNode
    if (!ours) return refuseAll(batch, (turn) => refusal(turn, error))
    if (marker.sentBefore) {
      const found = await this.#markers.find(marker)
      if (typeof found === 'object') return this.#applied(batch, marker, found.applied)
      if (found === 'lost') return refuseAll(batch, (turn) => outcomeUnknown(turn.transaction, error))
    }
    this.#markers.forget(marker)
    this.#tryAgain(batch)
  }

  /** That it was applied is certain: a connection that breaks meanwhile must not read as "nothing was done". */
  #applied(batch: readonly Turn[], marker: Marker, zxid: bigint): void {
    this.#advanced(marker)
    const { session } = marker
    for (const turn of batch) this.#beside(() => this.#recover(turn, { zxid, session }))
  }

  async #recover(turn: Turn, done: Done): Promise<void> {
    while (true) {
      try {
        return turn.resolve(await turn.transaction.recovered(done))
      } catch (error) {
        const over = this.#zookeeper.state === 'closed' || this.#zookeeper.session?.id !== done.session
        if (!(error instanceof NotConnected)) return turn.reject(error)
        if (over) return turn.reject(outcomeUnknown(turn.transaction, error))
      }
    }
  }

  #advanced(marker: Marker): void {
    marker.version += 1
    marker.sentBefore = false
  }

  #sessionOver(batch: readonly Turn[]): void {
    for (const turn of batch) {
      if (turn.transaction.session !== undefined) turn.reject(sessionOver(turn.transaction))
    }
    this.#tryAgain(batch.filter((turn) => turn.transaction.session === undefined))
  }

  #nothingSent(batch: readonly Turn[], error: unknown): undefined {
    if (!(error instanceof ZooKeeperError)) throw error
    const refused = error.outcome === 'refused'
    refuseAll(batch, (turn) => (refused ? refusal(turn, error) : notConnected(turn.transaction, error)))
  }

  #tryAgain(turns: readonly Turn[]): void {
    this.#waiting.unshift(...turns)
  }

  #beside(work: () => Promise<void>): void {
    const promise = work().finally(() => this.#aside.delete(promise))
    this.#aside.add(promise)
  }
}

interface Sent {
  readonly batch: readonly Turn[]
  readonly composed: Composed
  readonly marker: Marker
}

/** What the transaction takes it for, unless it is about who we are. */
function refusal({ transaction }: Turn, error: ZooKeeperError, step?: Step | 'guard'): Error {
  return inWordsOf('board', transaction.what, transaction.refused(error, step))
}

function settle(turn: Turn, value: () => unknown): void {
  try {
    turn.resolve(value())
  } catch (error) {
    turn.reject(error)
  }
}

function refuseAll(batch: readonly Turn[], why: (turn: Turn) => Error): void {
  for (const turn of batch) turn.reject(why(turn))
}

function wasOvertaken(turn: Turn): boolean {
  const error = turn.transaction.overtaken?.()
  if (error) turn.reject(error)
  return error !== undefined
}

function tooLarge({ what }: { what: string }, cause: Error): PayloadTooLarge {
  return new PayloadTooLarge(`${what}: ${cause.message}`, { cause })
}

function sessionOver({ what }: { what: string }): ClaimLost {
  return new ClaimLost(`${what}: the session that claimed it is over; stop and write nothing`)
}

function notConnected({ what }: { what: string }, cause?: ZooKeeperError): Error {
  const why = cause?.message ?? 'there is no connection'
  return new NotConnected(`${what}: nothing was done: ${why}`, cause ? { cause } : {})
}

function breaksConnections({ what }: { what: string }, bytes: number, cause: Error): NotConnected {
  return new NotConnected(
    `${what}: nothing was done: connections break when it is sent, about ${bytes} bytes; ` +
      "see whether the servers' jute.maxbuffer is smaller than the megabyte that they ship with",
    { cause },
  )
}

function outcomeUnknown({ what }: { what: string }, cause: Error): OutcomeUnknown {
  return new OutcomeUnknown(
    `${what}: the connection broke before the answer, and nobody can tell if it was done: the session is over`,
    { cause },
  )
}
