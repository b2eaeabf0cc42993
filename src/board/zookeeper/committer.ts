/**
 * Commits transactions one after the other, and knows of each what became of it.
 *
 * **The marker.** Every multi ends with a setData of this client's marker, an ephemeral znode of the session, at the
 * version it is known to have. So the marker's version counts the transactions that were applied in this session, and no
 * transaction can be applied twice.
 *
 * **A lost answer** is therefore found out: once the same session is attached again, `sync` and a look at the marker tell.
 * Its version has moved on: the transaction was applied, and the marker's mzxid is its zxid. It has not: the transaction
 * never arrived, or was refused, and is sent again; should the first copy still be on its way somewhere, the version
 * makes one of the two fail. If the session is over by then, nobody can tell any more: OutcomeUnknown.
 *
 * One transaction is in flight at a time; with two, the marker could not say which of them was applied.
 */
import { v7 as uuidv7 } from 'uuid'
import { ClaimLost, NotConnected, OutcomeUnknown, PayloadTooLarge } from '../../core/errors.ts'
import { monotonic } from '../../core/time.ts'
import {
  BadVersion,
  NoNode,
  type Op,
  op,
  RequestTooLarge,
  SessionExpired,
  type Stat,
  type ZooKeeper,
  ZooKeeperError,
} from '../../zookeeper/index.ts'
import type { Layout } from './layout.ts'

/** What a multi answered. */
export interface Answer {
  readonly zxid: bigint
  readonly results: readonly ({ readonly path: string } | Stat | undefined)[]
}

export interface Transaction<T> {
  /** For errors: `claim of job …`. */
  readonly what: string
  readonly ops: readonly Op[]
  /** Never sent in another session: settles belong to the session that claimed. */
  readonly session?: bigint
  done(answer: Answer, session: bigint): T
  /** It was applied, in this zxid; the rest of the answer is lost. */
  recovered(zxid: bigint, session: bigint): T | Promise<T>
  /** What the refusal of one of its operations means. */
  refused(error: ZooKeeperError): Error
}

interface Marker {
  readonly session: bigint
  readonly path: string
  version: number
}

export class Committer {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  readonly #patience: number
  #marker: Marker | undefined
  #last: Promise<unknown> = Promise.resolve()

  /** @param options.patience how long a transaction waits for a connection, in milliseconds */
  constructor(zookeeper: ZooKeeper, layout: Layout, options: { patience: number }) {
    this.#zookeeper = zookeeper
    this.#layout = layout
    this.#patience = options.patience
  }

  /**
   * Waits for a connection no longer than a session lasts, counted from the call: those that stand in line while a server
   * is away must not wait one after the other.
   *
   * @throws what `refused` says; NotConnected, OutcomeUnknown; ClaimLost when its session is over
   */
  commit<T>(transaction: Transaction<T>): Promise<T> {
    const until = monotonic() + this.#patience
    const turn = this.#last.then(() => this.#commit(transaction, until))
    this.#last = turn.catch(() => undefined)
    return turn
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await this.#last
  }

  async #commit<T>(transaction: Transaction<T>, until: number): Promise<T> {
    while (true) {
      if (this.#zookeeper.state !== 'connected' && monotonic() > until) throw notConnected(transaction)
      const marker = await this.#markerFor(transaction)
      const answer = await this.#send(transaction, marker)
      if (answer === 'again') continue
      marker.version += 1
      const { session } = marker
      if ('results' in answer) return transaction.done(answer, session)
      return this.#recovered(transaction, answer.zxid, session)
    }
  }

  /** That it was applied is certain by now: a connection that breaks meanwhile must not read as "nothing was done". */
  async #recovered<T>(transaction: Transaction<T>, zxid: bigint, session: bigint): Promise<T> {
    while (true) {
      try {
        return await transaction.recovered(zxid, session)
      } catch (error) {
        if (!(error instanceof NotConnected)) throw error
        const over = this.#zookeeper.state === 'closed' || this.#zookeeper.session?.id !== session
        if (over) throw outcomeUnknown(transaction, error)
      }
    }
  }

  async #send<T>(transaction: Transaction<T>, marker: Marker): Promise<Answer | { readonly zxid: bigint } | 'again'> {
    const { session, path, version } = marker
    const ops = [...transaction.ops, op.setData(path, null, { version })]
    try {
      return await this.#zookeeper.multi(ops, { session })
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
      if (error instanceof RequestTooLarge)
        throw new PayloadTooLarge(`${transaction.what}: ${error.message}`, { cause: error })
      if (error.outcome === 'unknown') return this.#findOut(transaction, marker)
      if (error.index === transaction.ops.length) return this.#lookAfter(transaction, marker, error)
      if (error instanceof SessionExpired && transaction.session === undefined) return 'again'
      if (error instanceof SessionExpired) throw sessionOver(transaction)
      if (error.outcome === 'refused') throw transaction.refused(error)
      throw notConnected(transaction, error)
    }
  }

  async #findOut<T>(transaction: Transaction<T>, marker: Marker): Promise<{ readonly zxid: bigint } | 'again'> {
    const { session, path, version } = marker
    while (true) {
      try {
        const [, stat] = await Promise.all([
          this.#zookeeper.sync(path, { session }),
          this.#zookeeper.exists(path, { session }),
        ])
        if (stat?.version === version) return 'again'
        if (stat?.version === version + 1) return { zxid: stat.mzxid }
        throw outcomeUnknown(transaction)
      } catch (error) {
        // Broken again while looking: the look is repeated. Anything else means that the session is over.
        if (error instanceof ZooKeeperError && error.outcome === 'unknown') continue
        throw error instanceof ZooKeeperError ? outcomeUnknown(transaction, error) : error
      }
    }
  }

  /** Only a stranger can have touched the marker: begin anew with another. Nothing of the multi was applied. */
  #lookAfter<T>(transaction: Transaction<T>, marker: Marker, error: ZooKeeperError): 'again' {
    if (!(error instanceof BadVersion || error instanceof NoNode)) throw notConnected(transaction, error)
    if (this.#marker === marker) this.#marker = undefined
    return 'again'
  }

  async #markerFor<T>(transaction: Transaction<T>): Promise<Marker> {
    const wanted = transaction.session
    while (true) {
      const session = this.#zookeeper.session?.id
      if (wanted !== undefined && session !== wanted) throw sessionOver(transaction)
      if (session !== undefined && this.#marker?.session === session) return this.#marker
      try {
        this.#marker = await this.#newMarker(session)
      } catch (error) {
        // Broken while making it: an unknown one goes with the session and harms nobody.
        if (error instanceof ZooKeeperError && (error.outcome === 'unknown' || error instanceof SessionExpired))
          continue
        throw error instanceof ZooKeeperError ? notConnected(transaction, error) : error
      }
    }
  }

  /** Without a session yet the request waits for one; which one it was, is asked afterwards. */
  async #newMarker(session: bigint | undefined): Promise<Marker | undefined> {
    const path = this.#layout.marker(uuidv7())
    const bound = session === undefined ? {} : { session }
    const create = () => this.#zookeeper.create(path, null, { ephemeral: true, ...bound })
    const { stat } = await create().catch(async (error: unknown) => {
      if (!(error instanceof NoNode)) throw error
      await this.#zookeeper.mkdirp(this.#layout.sessionsFolder)
      return create()
    })
    return { session: stat.ephemeralOwner, path, version: 0 }
  }
}

function sessionOver(transaction: { what: string }): ClaimLost {
  return new ClaimLost(`${transaction.what}: the session that claimed it is over; stop and write nothing`)
}

function notConnected(transaction: { what: string }, cause?: ZooKeeperError): Error {
  const why = cause?.message ?? 'there is no connection'
  return new NotConnected(`${transaction.what}: nothing was done: ${why}`, cause ? { cause } : {})
}

function outcomeUnknown(transaction: { what: string }, cause?: Error): OutcomeUnknown {
  const why = cause ? ': the session is over' : ''
  return new OutcomeUnknown(
    `${transaction.what}: the connection broke before the answer, and nobody can tell if it was done${why}`,
    cause ? { cause } : {},
  )
}
