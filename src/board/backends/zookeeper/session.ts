/** The session of an open board, and the clock of its servers. */
import { asError } from '../../../core/errors.ts'
import { monotonic, toTimerMs } from '../../../core/time.ts'
import { SessionExpired, type StateEvent, toOpenError, toTenantError } from '../../../zookeeper/index.ts'
import type { BackendClock, BackendSession, BackendSink, LeaseWatch } from '../../contract/index.ts'
import type { ZooKeeperChanges } from './changes.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { assembleComponents, type ZooKeeperComponents } from './parts/components.ts'
import { ownBoard } from './store/board-kind.ts'
import { openBoardPath } from './store/board-path.ts'
import type { ZooKeeperBackendOptions } from './store/options.ts'
import { translateErrors } from './store/reader.ts'
import { sharedBoard } from './taskflow/shared-board.ts'

export interface ZooKeeperSessionOptions {
  readonly board: BoardHandle
  readonly options: ZooKeeperBackendOptions
  readonly changes: Pick<ZooKeeperChanges, 'reportGap'>
}

export class ZooKeeperSession implements BackendSession {
  readonly #board: BoardHandle
  readonly #options: ZooKeeperBackendOptions
  readonly #changes: ZooKeeperSessionOptions['changes']

  constructor({ board, options, changes }: ZooKeeperSessionOptions) {
    this.#board = board
    this.#options = options
    this.#changes = changes
  }

  get timeout(): number | undefined {
    return this.#board.zookeeper.session?.timeout
  }

  async open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void> {
    await this.#open(sink, options).catch((error: unknown) => {
      throw toOpenError(error, this.#options)
    })
  }

  async #open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void> {
    const { uri, zookeeper, layout, committer, clock } = this.#board
    const what = `opening ${uri}`
    await zookeeper.connect(options).catch((error: unknown) => {
      throw toTenantError('board', what, error)
    })
    const { record, created } = await translateErrors(what, () => openBoardPath(zookeeper, layout, this.#options))
    const { scanPeriod = '10s', numbersFrom, limitsUnusedAfterMs } = this.#options
    const components = assembleComponents({
      ...{ zookeeper, layout, committer, clock },
      kind: record.shared ? sharedBoard : ownBoard,
      ...{ sink, created, numbersFrom, limitsUnusedAfterMs },
      scanPeriod: toTimerMs(scanPeriod, 'scanPeriod'),
      onError: (error) => this.#onError(error, sink),
    })
    this.#board.opened(components)
    zookeeper.on('state', (event) => this.#stateChanged(event, components))
    // An open board always knows whether it is paused.
    await Promise.all([
      translateErrors(what, () => committer.prepare()),
      translateErrors(what, () => components.gate.read()),
    ])
    this.#onAttached(components)
  }

  async close(): Promise<void> {
    const { zookeeper, committer, componentsIfOpen } = this.#board
    componentsIfOpen?.scan.close()
    await committer.idle()
    await componentsIfOpen?.batches.idle()
    await componentsIfOpen?.history.idle()
    await zookeeper.close()
  }

  watchLease(): LeaseWatch {
    const lease = this.#board.zookeeper.holdLease()
    return {
      whenAlive: () => (lease.isProven ? undefined : lease.proven()),
      [Symbol.dispose]: () => lease.release(),
    }
  }

  isAlive(session: string): boolean {
    const info = this.#board.zookeeper.session
    return info !== undefined && this.#board.labels.labelFor(info.id) === session && info.leaseUntil > monotonic()
  }

  leftMs(): number | undefined {
    const info = this.#board.zookeeper.session
    return info && info.leaseUntil - monotonic()
  }

  /** Reports the session, old or new. */
  #onAttached(components: ZooKeeperComponents): void {
    const session = this.#board.zookeeper.session?.id
    if (session === undefined) return
    this.#changes.reportGap(components)
    components.sink.session({ state: 'connected', session: this.#board.labels.labelFor(session) })
  }

  /** Reports an error, unless the connection or the session is lost: then a gap follows, and with it another read. */
  #onError(error: unknown, sink: BackendSink): void {
    if (this.#board.zookeeper.state !== 'connected' || error instanceof SessionExpired) return
    sink.error(asError(error))
  }

  #stateChanged(event: StateEvent, components: ZooKeeperComponents): void {
    const { sink, limits } = components
    const session = this.#board.labels.newest
    const reason = event.reason ? { reason: event.reason } : {}
    if (event.state === 'connected') this.#onAttached(components)
    if (event.state === 'suspended') sink.session({ state: 'disconnected', session, ...reason })
    if (event.state === 'lost') limits.clear()
    if (event.state === 'lost' || event.state === 'closed') sink.session({ state: event.state, session, ...reason })
  }
}

export class ZooKeeperClock implements BackendClock {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  now(): number {
    return this.#board.clock.now()
  }

  async read(): Promise<void> {
    if (this.#board.clock.isKnown) return
    await translateErrors('reading the clock of the servers', () => this.#board.committer.prepare())
  }
}
