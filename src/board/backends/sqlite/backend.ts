/**
 * The SQLite backend: boards in a file, for the processes of one machine. Each step is a synchronous function that runs in a transaction of the
 * file (`sqlite/committer.ts`); the file of each role has its steps, and the role, which runs them. `life/` keeps the session alive, and frees
 * what dead processes held; `store/feed.ts` delivers changes.
 */
import type { Backend, BackendCallerTransactions } from '../../contract/index.ts'
import { noCallerTransactions } from '../../contract/unsupported.ts'
import type { WindowSize } from '../window-size.ts'
import { BatchSteps, SqliteBatches } from './batches.ts'
import { SqliteChanges } from './changes.ts'
import { ClaimSteps, SqliteClaims } from './claims.ts'
import { DependencySteps, SqliteDependencies } from './dependencies.ts'
import { EntitySteps, SqliteEntities } from './entities.ts'
import { HistorySteps, SqliteHistory } from './history.ts'
import { JobSteps, SqliteJobs } from './jobs.ts'
import { KeySteps, SqliteKeys } from './keys.ts'
import { SqliteBoard } from './life/open-board.ts'
import { LimitSteps, SqliteLimits } from './limits.ts'
import { RecordSteps, SqliteRecords } from './records.ts'
import { ResourceSteps, SqliteResources } from './resources.ts'
import { SectionSteps, SqliteSections } from './sections.ts'
import { SqliteClock, SqliteSession, type SqliteSessionOptions } from './session.ts'
import { SignalSteps, SqliteSignals } from './signals.ts'
import { type BoardContext, ChangeLog } from './store/change-log.ts'
import { JobRows } from './store/job-rows.ts'
import { endSession } from './store/session-rows.ts'
import { SqliteTrash, TrashSteps } from './trash.ts'

export interface SqliteBackendOptions extends SqliteSessionOptions, WindowSize {}

export class SqliteBackend implements Backend {
  readonly uri: string
  readonly shared = false
  readonly session: SqliteSession
  readonly clock = new SqliteClock()
  readonly changes: SqliteChanges
  readonly jobs: SqliteJobs
  readonly sections: SqliteSections
  readonly keys: SqliteKeys
  readonly claims: SqliteClaims
  readonly signals: SqliteSignals
  readonly trash: SqliteTrash
  readonly limits: SqliteLimits
  readonly resources = new SqliteResources()
  readonly dependencies: SqliteDependencies
  readonly history: SqliteHistory
  readonly batches: SqliteBatches
  readonly records: SqliteRecords
  readonly entities: SqliteEntities
  readonly callerTransactions: BackendCallerTransactions
  readonly #board: SqliteBoard<BoardSteps>

  constructor(options: SqliteBackendOptions) {
    const board = new SqliteBoard({ uri: options.uri, toSteps: boardSteps })
    this.uri = options.uri
    this.session = new SqliteSession(board, this.clock, options)
    this.changes = new SqliteChanges(board)
    this.jobs = new SqliteJobs(board)
    this.sections = new SqliteSections(board, options)
    this.keys = new SqliteKeys(board)
    this.claims = new SqliteClaims(board)
    this.signals = new SqliteSignals(board)
    this.trash = new SqliteTrash(board)
    this.limits = new SqliteLimits(board)
    this.dependencies = new SqliteDependencies(board)
    this.history = new SqliteHistory(board)
    this.batches = new SqliteBatches(board)
    this.records = new SqliteRecords(board)
    this.entities = new SqliteEntities(board)
    this.callerTransactions = noCallerTransactions(this.uri)
    this.#board = board
  }

  /** Ends the session as another process does that takes it for dead. For tests. */
  async expireSession(): Promise<void> {
    const { file, context } = this.#board.requireOpen()
    const { id } = this.#board.requireSession('expiring')
    await file.run(() => endSession(context.db, { session: id, board: context.board }))
  }
}

type BoardSteps = ReturnType<typeof boardSteps>

/** Returns the steps of a board, by role. */
function boardSteps(context: BoardContext) {
  const changes = new ChangeLog(context)
  const rows = new JobRows(context)
  const shared = { context, rows, changes }
  const [keys, resources, limits] = [new KeySteps(shared), new ResourceSteps(context), new LimitSteps(context)]
  const [dependencies, batches] = [new DependencySteps(context, changes), new BatchSteps(context, changes)]
  const history = new HistorySteps(context)
  const counted = { ...shared, keys, dependencies, batches }
  const jobs = new JobSteps({ ...counted, history })
  return {
    ...{ keys, limits, dependencies, batches, history, jobs },
    claims: new ClaimSteps({ ...shared, jobs, resources, limits }),
    signals: new SignalSteps({ ...shared, dependencies }),
    trash: new TrashSteps({ ...counted, jobs }),
    records: new RecordSteps({ ...counted, jobs, limits }),
    entities: new EntitySteps(context),
    sections: new SectionSteps(context),
  }
}
