/** Owners on a file that die, and one that only seems to. */
import { expect, test } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { openDatabase } from '../../../src/sqlite/driver.ts'
import { type SqlitePlace, sqlitePlace } from '../../board/backends/sqlite/boards.ts'
import { everyJobOnce, type RemovalCounter } from './exactly-once.ts'

test.each(['full', 'normal'])(
  'of owners that die, and one that only seems to, every job is consumed exactly once (%s)',
  async (synchronous) => {
    await using place = await sqlitePlace()
    const uri = `${place.uri}&synchronous=${synchronous}`
    await using poster = await openBoard(uri, { who: 'poster' })
    await everyJobOnce({ poster, ownersUri: `${uri}&sessionTimeout=4s`, gone: goneCounter(place) })
    for (const table of ['jobs', 'trash', 'permits']) expect(place.query(`SELECT * FROM ${table}`)).toEqual([])
    expect(place.query('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  },
)

/** The table of jobs itself says which rows go. */
function goneCounter(place: SqlitePlace): RemovalCounter {
  const database = openDatabase(place.file)
  database.exec(`CREATE TABLE gone (job INTEGER NOT NULL);
    CREATE TRIGGER went AFTER DELETE ON jobs BEGIN INSERT INTO gone VALUES (OLD.id); END`)
  database.close()
  const count = () => Number(place.query('SELECT count(DISTINCT job) AS count FROM gone')[0]?.['count'])
  return {
    reached: (jobs) => expect.poll(count, { interval: 200, timeout: 3_000_000 }).toBe(jobs),
    twice: () => place.query('SELECT job FROM gone GROUP BY job HAVING count(*) > 1').map(({ job }) => String(job)),
  }
}
