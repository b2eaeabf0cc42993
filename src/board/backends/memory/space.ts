/**
 * The state that several memory boards of one process share, by role.
 *
 * Every step is one synchronous function, so nothing can run between its check and its change. This is the reference
 * model of the contract: the other backends are tested against it.
 */
import { type AlarmClock, systemAlarmClock } from '../../../core/time.ts'
import { BatchSteps } from './batches.ts'
import { ClaimSteps } from './claims.ts'
import { DependencySteps } from './dependencies.ts'
import { EntitySteps } from './entities.ts'
import { HistorySteps } from './history.ts'
import { JobSteps } from './jobs.ts'
import { KeySteps } from './keys.ts'
import { LimitSteps } from './limits.ts'
import { RecordSteps } from './records.ts'
import { ResourceSteps } from './resources.ts'
import { SignalSteps } from './signals.ts'
import { ChangeListeners } from './store/change-listeners.ts'
import { JobRows, type TrashRows } from './store/rows.ts'
import { TrashSteps } from './trash.ts'

const spacesByName = new Map<string, MemorySpace>()

/**
 * Returns the space of that name, which all boards of this process share. An empty name returns a new space, which is
 * not shared.
 */
export function memorySpace(name: string): MemorySpace {
  if (name === '') return new MemorySpace()
  const space = spacesByName.get(name) ?? new MemorySpace()
  spacesByName.set(name, space)
  return space
}

export class MemorySpace {
  readonly clock: AlarmClock
  readonly changes = new ChangeListeners()
  readonly history = new HistorySteps()
  readonly entities = new EntitySteps()
  readonly limits: LimitSteps
  readonly batches: BatchSteps
  readonly keys: KeySteps
  readonly dependencies: DependencySteps
  readonly signals: SignalSteps
  readonly jobs: JobSteps
  readonly claims: ClaimSteps
  readonly trash: TrashSteps
  readonly records: RecordSteps
  readonly #rows: JobRows
  #sessions = 0

  /** @param options.clock the clock for the delays of jobs; the clock of the process by default */
  constructor(options: { readonly clock?: AlarmClock } = {}) {
    const { changes, history } = this
    const { clock: alarms, clock = systemAlarmClock } = options
    const rows = new JobRows({ clock, alarms, onAlarm: () => changes.notify() })
    const entries: TrashRows = new Map()
    const shared = { clock, rows, changes }
    const [limits, batches, keys] = [new LimitSteps(clock), new BatchSteps(shared), new KeySteps(shared)]
    const [dependencies, signals] = [new DependencySteps(rows), new SignalSteps(shared)]
    const counted = { ...shared, keys, dependencies, batches }
    const jobs = new JobSteps({ ...counted, entries, history })
    const claims = new ClaimSteps({ ...counted, jobs, limits, signals, resources: new ResourceSteps() })
    this.clock = clock
    this.limits = limits
    this.batches = batches
    this.keys = keys
    this.dependencies = dependencies
    this.signals = signals
    this.jobs = jobs
    this.claims = claims
    this.trash = new TrashSteps({ ...counted, entries, jobs })
    this.records = new RecordSteps({ ...counted, jobs, limits })
    this.#rows = rows
  }

  newSession(): string {
    this.#sessions += 1
    return `session ${this.#sessions}`
  }

  /** Releases everything that the session holds, as the end of a process does. */
  endSession(session: string): void {
    this.entities.removeOf(session)
    for (const row of this.#rows.all()) {
      if (row.held?.session !== session) continue
      this.claims.free(row)
      row.held = undefined
      this.changes.notify({ kind: 'released', id: row.id })
    }
  }

  /** Adds any bytes as a posting, as if they were put there by hand. @returns its id */
  putRaw(bytes: Uint8Array): string {
    return this.jobs.add({ posting: { uuid: '' }, bytes }).id
  }

  /** Removes a posting as if it were removed by hand: its key stays. */
  removeRaw(id: string): void {
    const row = this.#rows.find(id)
    if (!row) return
    this.#rows.delete(row)
    this.changes.notify({ kind: 'gone', id })
  }
}
