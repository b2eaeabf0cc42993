/** Reads and changes the records of schedules. If a firing or another change is faster, the record is read again, and the change repeated. */
import { Conflict, NotFound } from '../../core/errors.ts'
import type { PostRequest } from '../contract/index.ts'
import type { BoardRecord, ReadRecord, RecordStore } from '../records/record-store.ts'
import { cancelPrevious, keysFor } from './firing.ts'
import { SCHEDULES, type ScheduleRecord } from './record.ts'
import { assertScheduleId } from './schedule.ts'
import type { ScheduleHost } from './schedule-host.ts'

/** The maximum number of attempts of a change, when other processes change the schedule at the same time: it changes a few times a second. */
export const MAX_ATTEMPTS = 20

/** The writes of a change: the new value, and the jobs that are posted in the same transaction. */
export interface Change {
  readonly value: ScheduleRecord
  readonly posts?: readonly PostRequest[]
}

export class ScheduleEditor {
  readonly store: RecordStore<ScheduleRecord>
  readonly #host: ScheduleHost

  constructor(host: ScheduleHost) {
    this.#host = host
    this.store = host.records.of(SCHEDULES)
  }

  /**
   * Returns the schedule, and takes in the time of the servers.
   *
   * @throws NotFound; IncompatibleVersion, InvalidPosting for a record that cannot be read
   */
  async read(id: string): Promise<BoardRecord<ScheduleRecord>> {
    const found = await this.#find(id)
    if ('error' in found) throw found.error
    return found
  }

  /**
   * Changes a schedule.
   *
   * @param change called again after a conflict; returns undefined to leave the schedule as it is
   * @returns `key taken` if a job of the change has a key that another job on the board has
   * @throws NotFound, Conflict
   */
  async change(
    id: string,
    change: (record: BoardRecord<ScheduleRecord>) => Promise<Change | undefined> | Change | undefined,
  ): Promise<'done' | 'key taken'> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const record = await this.read(id)
      const changed = await change(record)
      if (!changed) return 'done'
      const written = await this.store.write([{ id, revision: record.revision, value: changed.value }], changed.posts)
      if (written.done) return 'done'
      if ('key' in written.conflict) return 'key taken'
    }
    throw this.conflict(id)
  }

  /** Changes a schedule and posts a job of it, with one of the keys of its overlap policy. */
  async changeWithKey(
    id: string,
    change: (record: BoardRecord<ScheduleRecord>, key: string | undefined) => Promise<Change | undefined>,
  ): Promise<'done' | 'key taken'> {
    const { value } = await this.read(id)
    for (const key of keysFor(id, value.policies.overlap)) {
      const outcome = await this.change(id, (record) => change(record, key))
      if (outcome === 'done') return outcome
    }
    return 'key taken'
  }

  /** Removes a schedule, also one whose record cannot be read. @throws NotFound, Conflict */
  async remove(id: string): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { revision } = await this.#find(id)
      if ((await this.store.write([{ id, revision, value: undefined }])).done) return
    }
    throw this.conflict(id)
  }

  /** Cancels the previous job, if the overlap policy says so. */
  async cancelPrevious(record: BoardRecord<ScheduleRecord>): Promise<void> {
    if (record.value.policies.overlap !== 'cancelPrevious') return
    await cancelPrevious(record, { cancel: (uuid, reason) => this.#host.cancelJob(uuid, reason) })
  }

  notFound(id: string): NotFound {
    return new NotFound(`there is no schedule ${id} on board ${this.#host.uri}; jobboard schedule list shows them`)
  }

  conflict(id: string): Conflict {
    return new Conflict(
      `schedule ${id} was not changed: other processes changed it during all ${MAX_ATTEMPTS} attempts; try again`,
    )
  }

  async #find(id: string): Promise<ReadRecord<ScheduleRecord>> {
    assertScheduleId(id)
    await this.#host.readClock()
    const found = await this.store.get(id)
    if (found) return found
    throw this.notFound(id)
  }
}
