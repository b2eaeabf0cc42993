/**
 * The ZooKeeper backend: the roles of `Backend` over znodes and multis. `store/layout.ts` defines the paths, `commit/transactions.ts` the
 * transactions, `parts/` what features add to them, and `commit/committer.ts` how transactions are sent and their outcomes are determined.
 */
import { silentLog } from '../../../core/log.ts'
import { toMilliseconds } from '../../../core/time.ts'
import { ZooKeeper, type ZooKeeperOptions } from '../../../zookeeper/index.ts'
import type {
  Backend,
  BackendBatches,
  BackendCallerTransactions,
  BackendDependencies,
  BackendHistory,
} from '../../contract/index.ts'
import { NO_DEPENDENCIES, NO_HISTORY, noBatches, noCallerTransactions } from '../../contract/unsupported.ts'
import { ServerClock } from '../server-clock.ts'
import { ZooKeeperBatches } from './batches.ts'
import { ZooKeeperChanges } from './changes.ts'
import { ZooKeeperClaims } from './claims.ts'
import { TransactionCommitter } from './commit/committer.ts'
import { ZooKeeperDependencies } from './dependencies.ts'
import { ZooKeeperEntities } from './entities.ts'
import { ZooKeeperHistory } from './history.ts'
import { ZooKeeperJobs } from './jobs.ts'
import { ZooKeeperKeys } from './keys.ts'
import { ZooKeeperLimits } from './limits.ts'
import { BoardHandle } from './parts/board-handle.ts'
import { ZooKeeperRecords } from './records.ts'
import { ZooKeeperResources } from './resources.ts'
import { ZooKeeperClock, ZooKeeperSession } from './session.ts'
import { ZooKeeperSignals } from './signals.ts'
import type { ZooKeeperBackendOptions } from './store/options.ts'
import { ZooKeeperTrash } from './trash.ts'

export class ZooKeeperBackend implements Backend {
  readonly uri: string
  readonly session: ZooKeeperSession
  readonly clock: ZooKeeperClock
  readonly changes: ZooKeeperChanges
  readonly jobs: ZooKeeperJobs
  readonly sections = undefined
  readonly keys: ZooKeeperKeys
  readonly claims: ZooKeeperClaims
  readonly signals: ZooKeeperSignals
  readonly trash: ZooKeeperTrash
  readonly limits: ZooKeeperLimits
  readonly resources: ZooKeeperResources
  readonly records: ZooKeeperRecords
  readonly entities: ZooKeeperEntities
  readonly callerTransactions: BackendCallerTransactions
  readonly #board: BoardHandle
  readonly #dependencies: ZooKeeperDependencies
  readonly #history: ZooKeeperHistory
  readonly #batches: ZooKeeperBatches
  readonly #noBatches: BackendBatches

  constructor(options: ZooKeeperBackendOptions) {
    const { uri, hosts, layout, sessionTimeout = '10s', log = silentLog } = options
    const clock = new ServerClock()
    const zookeeper = new ZooKeeper({ hosts, log, sessionTimeout, ...toOptionalSettings(options) })
    const committer = new TransactionCommitter(zookeeper, layout, {
      timeoutMs: toMilliseconds(sessionTimeout, 'sessionTimeout'),
      clock: (time) => clock.observe(time),
    })
    const board = new BoardHandle({ uri, zookeeper, layout, committer, clock })
    this.uri = uri
    this.#board = board
    this.changes = new ZooKeeperChanges(board)
    this.session = new ZooKeeperSession({ board, options, changes: this.changes })
    this.clock = new ZooKeeperClock(board)
    this.jobs = new ZooKeeperJobs(board)
    this.keys = new ZooKeeperKeys(board)
    this.claims = new ZooKeeperClaims(board)
    this.signals = new ZooKeeperSignals(board)
    this.trash = new ZooKeeperTrash(board)
    this.limits = new ZooKeeperLimits(board)
    this.resources = new ZooKeeperResources(board)
    this.#dependencies = new ZooKeeperDependencies(board)
    this.#history = new ZooKeeperHistory(board)
    this.#batches = new ZooKeeperBatches(board)
    this.#noBatches = noBatches(uri)
    this.records = new ZooKeeperRecords(board)
    this.entities = new ZooKeeperEntities(board)
    this.callerTransactions = noCallerTransactions(uri)
  }

  get shared(): boolean {
    return this.#board.componentsIfOpen?.kind.shared ?? false
  }

  get dependencies(): BackendDependencies {
    return this.shared ? NO_DEPENDENCIES : this.#dependencies
  }

  get history(): BackendHistory {
    return this.shared ? NO_HISTORY : this.#history
  }

  get batches(): BackendBatches {
    return this.shared ? this.#noBatches : this.#batches
  }
}

/**
 * Returns the options for which the client has defaults. The ACL is missing: it is the board's, and the board is not
 * open yet.
 */
function toOptionalSettings({
  tick,
  auth,
  sasl,
  tls,
  maxReplyBytes,
  maxRequestBytes,
}: ZooKeeperBackendOptions): Partial<ZooKeeperOptions> {
  return {
    ...(tick === undefined ? {} : { tick }),
    ...(maxReplyBytes === undefined ? {} : { maxReplyBytes }),
    ...(maxRequestBytes === undefined ? {} : { maxRequestBytes }),
    ...(auth ? { auth } : {}),
    ...(sasl ? { sasl } : {}),
    ...(tls ? { tls } : {}),
  }
}
