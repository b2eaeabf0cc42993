/**
 * The Postgres backend implements `Backend` with functions of the database (`functions/`) over a few connections.
 * `session.ts` keeps the session alive, `commit/function-caller.ts` sends each change at most once, `connection/feed.ts` delivers the changes
 * of others, and `connection/clean-up.ts` takes over from dead participants.
 */
import type { Backend } from '../../contract/index.ts'
import { ServerClock } from '../server-clock.ts'
import { PostgresBatches } from './batches.ts'
import { PostgresCallerTransactions } from './caller-transactions.ts'
import { PostgresChanges } from './changes.ts'
import { PostgresClaims } from './claims.ts'
import { BoardWriter } from './commit/writer.ts'
import { CleanUp } from './connection/clean-up.ts'
import { PostgresChangeFeed } from './connection/feed.ts'
import { HostPeers } from './connection/host-peers.ts'
import { PostgresDependencies } from './dependencies.ts'
import { PostgresEntities } from './entities.ts'
import { PostgresHistory } from './history.ts'
import { PostgresJobs } from './jobs.ts'
import { PostgresKeys } from './keys.ts'
import { PostgresLimits } from './limits.ts'
import { PostgresRecords } from './records.ts'
import { PostgresResources } from './resources.ts'
import { PostgresSections } from './sections.ts'
import { PostgresClock, PostgresSession } from './session.ts'
import { PostgresSignals } from './signals.ts'
import { type PostgresBackendOptions, PostgresBoard } from './store/board.ts'
import { PostgresTrash } from './trash.ts'

export class PostgresBackend implements Backend {
  readonly uri: string
  readonly shared = false
  readonly session: PostgresSession
  readonly clock: PostgresClock
  readonly changes: PostgresChanges
  readonly jobs: PostgresJobs
  readonly sections: PostgresSections
  readonly keys: PostgresKeys
  readonly claims: PostgresClaims
  readonly signals: PostgresSignals
  readonly trash: PostgresTrash
  readonly limits: PostgresLimits
  readonly resources: PostgresResources
  readonly dependencies: PostgresDependencies
  readonly history: PostgresHistory
  readonly batches: PostgresBatches
  readonly records: PostgresRecords
  readonly entities: PostgresEntities
  readonly callerTransactions: PostgresCallerTransactions

  constructor(options: PostgresBackendOptions) {
    const { uri, scanPeriod: period, listen: listens = true } = options
    const board = new PostgresBoard(options)
    const clock = new ServerClock()
    const cleanUp = new CleanUp(board)
    const peers = new HostPeers(board, cleanUp)
    const feed = new PostgresChangeFeed({
      ...{ schema: board.schema, period, listens },
      get board() {
        return board.number
      },
      get sink() {
        return board.sink
      },
      onServerTime: (at) => clock.observe(at),
      misnumbered: (number) => board.reportInvalidNumber(number),
    })
    const writer = new BoardWriter(board, feed, cleanUp)
    this.uri = uri
    this.clock = new PostgresClock(board, clock)
    this.jobs = new PostgresJobs(board, writer)
    this.sections = new PostgresSections(board)
    this.keys = new PostgresKeys(writer)
    this.resources = new PostgresResources(board)
    this.claims = new PostgresClaims(board, writer, this.resources)
    this.signals = new PostgresSignals(board, writer)
    this.trash = new PostgresTrash(board, writer)
    this.limits = new PostgresLimits(board, writer)
    this.dependencies = new PostgresDependencies(board)
    this.history = new PostgresHistory(board)
    this.batches = new PostgresBatches(board, writer)
    this.records = new PostgresRecords(board, writer)
    this.entities = new PostgresEntities(board)
    this.callerTransactions = new PostgresCallerTransactions(board)
    const [records, batches] = [this.records.watches, this.batches.watches]
    this.changes = new PostgresChanges(board, { feed, writer, records, batches })
    // Created last, because it notifies the other roles of changes of the session. They find the session on the board.
    const { changes, resources, jobs, claims } = this
    const pending = [jobs, claims]
    this.session = new PostgresSession(board, { feed, writer, changes, resources, cleanUp, peers, pending })
  }
}
