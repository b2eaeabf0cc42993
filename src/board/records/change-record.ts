/** Changes a record by compare-and-set. */
import { Conflict } from '../../core/errors.ts'
import type { ReadRecord, RecordStore } from './record-store.ts'

/** The maximum number of attempts of a change, when other processes change the same record at the same time. */
const MAX_ATTEMPTS = 20

/**
 * Changes one record.
 *
 * @param decide returns the new value; undefined to remove the record, `keep` to leave it as it is
 * @returns whether there was a record before
 */
export async function changeRecord<T extends object>(
  store: RecordStore<T>,
  id: string,
  decide: (record: ReadRecord<T> | undefined) => T | undefined | 'keep',
): Promise<boolean> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const found = await store.get(id)
    const value = decide(found)
    if (value === 'keep' || (value === undefined && !found)) return found !== undefined
    const written = await store.write([{ id, revision: found?.revision, value }])
    if (written.done) return found !== undefined
  }
  throw new Conflict(
    `${store.kind.name} ${id} was not changed: other processes changed it during all ${MAX_ATTEMPTS} attempts; try again`,
  )
}
