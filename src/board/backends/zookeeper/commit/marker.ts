/**
 * The marker: an ephemeral znode of this client, by which it finds out what became of a transaction whose answer was lost.
 *
 * Every multi begins with a setData of the marker, at the version that it is known to have. So the marker's version counts
 * the multis that were applied in this session, and none can be applied twice. Once the same session is attached again,
 * `sync` and a look at the marker tell: its version has moved on: the multi was applied, and the marker's mzxid is its zxid;
 * it has not: the multi never arrived, or was refused, and may be sent again. Should the first copy still be on its way
 * somewhere, the version makes the second one fail, at its first operation, which is how it is told from a refusal.
 */
import { newUuid } from '../../../../core/uuid.ts'
import {
  NoNode,
  op,
  SessionExpired,
  type SetDataOp,
  type ZooKeeper,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type { Layout } from '../store/layout.ts'

export interface Marker {
  readonly session: bigint
  readonly path: string
  /** How many multis were applied with it. */
  version: number
  /** A multi was sent with this version, and it is not known to have been refused. */
  sentBefore: boolean
}

/** What a look at the marker showed. */
export type MarkerOutcome = { readonly applied: bigint } | 'not-applied' | 'lost'

export class Markers {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  readonly #onServerTime: (serverTime: number) => void
  #current: Marker | undefined

  constructor(zookeeper: ZooKeeper, layout: Layout, clock: (serverTime: number) => void) {
    this.#zookeeper = zookeeper
    this.#layout = layout
    this.#onServerTime = clock
  }

  /**
   * The marker in the session there is; made where it is missing.
   *
   * @throws ZooKeeperError when there is no connection in time, or the server refuses to make it
   */
  async current(): Promise<Marker> {
    while (true) {
      const session = this.#zookeeper.session?.id
      if (session !== undefined && this.#current?.session === session) return this.#current
      try {
        this.#current = await this.#make(session)
      } catch (error) {
        // Broken while making it: an unknown one goes with its session and harms nobody.
        const again =
          error instanceof ZooKeeperError && (error.outcome === 'unknown' || error instanceof SessionExpired)
        if (!again) throw error
      }
    }
  }

  /** The operation that every multi begins with. */
  checkStep(marker: Marker): SetDataOp {
    return op.setData(marker.path, null, { version: marker.version })
  }

  /** Another is made for the next multi: somebody else has touched this one. */
  forget(marker: Marker): void {
    if (this.#current === marker) this.#current = undefined
  }

  /** What became of the multi that was sent with this marker. Two requests in one round trip, as often as connections break. */
  async recoverOutcome(marker: Marker): Promise<MarkerOutcome> {
    const { session, path, version } = marker
    while (true) {
      try {
        const [, stat] = await Promise.all([
          this.#zookeeper.sync(path, { session }),
          this.#zookeeper.exists(path, { session }),
        ])
        if (stat?.version === version) return 'not-applied'
        return stat?.version === version + 1 ? { applied: stat.mzxid } : 'lost'
      } catch (error) {
        if (!(error instanceof ZooKeeperError)) throw error
        // Broken again while looking: the look is repeated. Anything else means that the session is over.
        if (error.outcome !== 'unknown') return 'lost'
      }
    }
  }

  /** Without a session yet the request waits for one; which one it was, is asked afterwards. */
  async #make(session: bigint | undefined): Promise<Marker> {
    const path = this.#layout.marker(newUuid())
    const bound = session === undefined ? {} : { session }
    const create = () => this.#zookeeper.create(path, null, { ephemeral: true, ...bound })
    const { stat } = await create().catch(async (error: unknown) => {
      if (!(error instanceof NoNode)) throw error
      await this.#zookeeper.mkdirp(this.#layout.sessionsFolder)
      return create()
    })
    this.#onServerTime(stat.ctime)
    return { session: stat.ephemeralOwner, path, version: 0, sentBefore: false }
  }
}
