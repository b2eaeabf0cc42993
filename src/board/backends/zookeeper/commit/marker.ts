/**
 * The marker: an ephemeral znode of this client, from which it determines the outcome of a transaction whose answer was
 * lost.
 *
 * Every multi begins with a setData of the marker, at its known version. So the marker's version counts the multis that
 * were applied in this session, and none can be applied twice. When the same session is attached again, `sync` and a
 * read of the marker give the outcome. If the version has changed, the multi was applied, and the marker's mzxid is its
 * zxid. If it has not, the multi did not arrive or was refused, and may be sent again. If the first copy arrives later
 * than that, the version makes the second copy fail at its first operation; this distinguishes it from a refusal.
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
import type { ZooKeeperLayout } from '../store/layout.ts'

export interface Marker {
  readonly session: bigint
  readonly path: string
  /** The number of multis that were applied with this marker. */
  version: number
  /** Whether a multi was sent with this version and is not known to have been refused. */
  sentBefore: boolean
}

/** The outcome of a multi, as a read of the marker shows it. */
export type MarkerOutcome = { readonly applied: bigint } | 'not-applied' | 'lost'

export class Markers {
  readonly #zookeeper: ZooKeeper
  readonly #layout: ZooKeeperLayout
  readonly #onServerTime: (serverTime: number) => void
  #current: Marker | undefined

  constructor(zookeeper: ZooKeeper, layout: ZooKeeperLayout, clock: (serverTime: number) => void) {
    this.#zookeeper = zookeeper
    this.#layout = layout
    this.#onServerTime = clock
  }

  /** The marker of the current session; undefined if it has to be created first. */
  get known(): Marker | undefined {
    const session = this.#zookeeper.session?.id
    return session !== undefined && this.#current?.session === session ? this.#current : undefined
  }

  /**
   * Returns the marker of the current session, and creates it if it is missing.
   *
   * @throws ZooKeeperError when there is no connection in time, or the server refuses to create it
   */
  async current(): Promise<Marker> {
    while (true) {
      const { known } = this
      if (known) return known
      const session = this.#zookeeper.session?.id
      try {
        this.#current = await this.#make(session)
      } catch (error) {
        // The connection broke during the create: a marker that may exist now is unused and ends with its session.
        const again =
          error instanceof ZooKeeperError && (error.outcome === 'unknown' || error instanceof SessionExpired)
        if (!again) throw error
      }
    }
  }

  /** Returns the operation that begins every multi. */
  checkStep(marker: Marker): SetDataOp {
    return op.setData(marker.path, null, { version: marker.version })
  }

  /** Forgets the marker because another client has changed it. The next multi gets a new one. */
  forget(marker: Marker): void {
    if (this.#current === marker) this.#current = undefined
  }

  /**
   * Determines the outcome of the multi that was sent with this marker: two requests in one round trip, repeated
   * whenever the connection breaks.
   */
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
        // The connection broke again, so the read is repeated. Any other error means that the session is over.
        if (error.outcome !== 'unknown') return 'lost'
      }
    }
  }

  /** Creates a marker. Without a session the request waits for one, and the answer shows which session it is. */
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
