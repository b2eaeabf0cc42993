/**
 * The Redis backend: an object for each role of `Backend`. Roles send steps of Lua scripts through `commit/`, and read keys that
 * `store/layout.ts` describes. `scripts/shared/steps.lua` has the steps.
 */
import type { Backend, BackendCallerTransactions } from '../../contract/index.ts'
import { noCallerTransactions } from '../../contract/unsupported.ts'
import { RedisBatches } from './batches.ts'
import { RedisChanges } from './changes.ts'
import { RedisClaims } from './claims.ts'
import { type RedisBackendOptions, RedisBoard } from './commit/board.ts'
import { RedisDependencies } from './dependencies.ts'
import { RedisEntities } from './entities.ts'
import { RedisHistory } from './history.ts'
import { RedisJobs } from './jobs.ts'
import { RedisKeys } from './keys.ts'
import { RedisLimits } from './limits.ts'
import { RedisRecords } from './records.ts'
import { RedisResources } from './resources.ts'
import { RedisSections } from './sections.ts'
import { RedisClock, RedisSession } from './session.ts'
import { RedisSignals } from './signals.ts'
import { RedisTrash } from './trash.ts'

export class RedisBackend implements Backend {
  readonly shared = false
  readonly uri: string
  readonly session: RedisSession
  readonly clock: RedisClock
  readonly changes: RedisChanges
  readonly jobs: RedisJobs
  readonly sections: RedisSections
  readonly keys: RedisKeys
  readonly claims: RedisClaims
  readonly signals: RedisSignals
  readonly trash: RedisTrash
  readonly limits: RedisLimits
  readonly resources: RedisResources
  readonly dependencies: RedisDependencies
  readonly history: RedisHistory
  readonly batches: RedisBatches
  readonly records: RedisRecords
  readonly entities: RedisEntities
  readonly callerTransactions: BackendCallerTransactions

  /** @throws InvalidArgument for an invalid prefix */
  constructor(options: RedisBackendOptions) {
    const board = new RedisBoard(options)
    this.uri = board.location.uri
    this.clock = new RedisClock(board)
    this.changes = new RedisChanges(board)
    this.jobs = new RedisJobs(board)
    this.sections = new RedisSections(board)
    this.keys = new RedisKeys(board)
    this.claims = new RedisClaims(board)
    this.signals = new RedisSignals(board)
    this.trash = new RedisTrash(board)
    this.session = new RedisSession(board, this.trash)
    this.limits = new RedisLimits(board)
    this.resources = new RedisResources()
    this.dependencies = new RedisDependencies(board)
    this.history = new RedisHistory(board)
    this.batches = new RedisBatches(board)
    this.records = new RedisRecords(board, this.jobs)
    this.entities = new RedisEntities(board)
    this.callerTransactions = noCallerTransactions(this.uri)
  }
}
