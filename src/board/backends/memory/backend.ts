/**
 * The memory backend: a board inside one process, for tests, for trying things out, and for work that may end with the
 * process. The file of each role has its steps, which all boards of a space share (`space.ts`), and the role of one board.
 */
import type { Backend, BackendJobs } from '../../contract/index.ts'
import { noCallerTransactions } from '../../contract/unsupported.ts'
import { MemoryBatches } from './batches.ts'
import { MemoryChanges } from './changes.ts'
import { MemoryClaims } from './claims.ts'
import { MemoryDependencies } from './dependencies.ts'
import { MemoryEntities } from './entities.ts'
import { MemoryHistory } from './history.ts'
import { MemoryJobs } from './jobs.ts'
import { MemoryKeys } from './keys.ts'
import { MemoryLimits } from './limits.ts'
import { MemoryRecords } from './records.ts'
import { MemoryResources } from './resources.ts'
import { MemoryClock, MemorySession } from './session.ts'
import { MemorySignals } from './signals.ts'
import type { MemorySpace } from './space.ts'
import { MemoryBoard } from './store/board.ts'
import { MemoryTrash } from './trash.ts'

export class MemoryBackend implements Backend {
  readonly uri: string
  readonly shared: boolean = false
  readonly session: Backend['session']
  readonly clock: Backend['clock']
  readonly changes: Backend['changes']
  readonly jobs: BackendJobs & Required<Pick<BackendJobs, 'list'>>
  readonly sections = undefined
  readonly keys: Backend['keys']
  readonly claims: Backend['claims']
  readonly signals: Backend['signals']
  readonly trash: Backend['trash']
  readonly limits: Backend['limits']
  readonly resources: Backend['resources'] = new MemoryResources()
  readonly dependencies: Backend['dependencies']
  readonly history: Backend['history']
  readonly batches: Backend['batches']
  readonly records: Backend['records']
  readonly entities: Backend['entities']
  readonly callerTransactions: Backend['callerTransactions']
  readonly #board: MemoryBoard<MemorySpace>
  readonly #space: MemorySpace

  constructor({ uri, space }: { readonly uri: string; readonly space: MemorySpace }) {
    const board = new MemoryBoard({ uri, steps: space })
    this.uri = uri
    this.session = new MemorySession(board, space)
    this.clock = new MemoryClock(space.clock)
    this.changes = new MemoryChanges(board)
    this.jobs = new MemoryJobs(board)
    this.keys = new MemoryKeys(board)
    this.claims = new MemoryClaims(board)
    this.signals = new MemorySignals(board)
    this.trash = new MemoryTrash(board)
    this.limits = new MemoryLimits(board)
    this.dependencies = new MemoryDependencies(board)
    this.history = new MemoryHistory(board)
    this.batches = new MemoryBatches(board)
    this.records = new MemoryRecords(board)
    this.entities = new MemoryEntities(board)
    this.callerTransactions = noCallerTransactions(uri)
    this.#board = board
    this.#space = space
  }

  /** Ends the session and begins another one, as when a session expires on a server. Tests of takeovers use it. */
  expireSession(): void {
    const open = this.#board.requireOpen()
    open.sink.session({ state: 'lost', session: open.session })
    this.#space.endSession(open.session)
    open.session = this.#space.newSession()
    open.sink.session({ state: 'connected', session: open.session })
    open.sink.gap()
  }
}
