/** No statement of a job's life reads all rows of a table: its cost must not grow with the board, the trash or the history. */
import { afterEach, expect, test, vi } from 'vitest'
import { SqliteConnection } from '../../../../src/sqlite/connection.ts'
import { openDatabase } from '../../../../src/sqlite/driver.ts'
import { sqlitePlace } from './boards.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

/** Statements that are meant to read all rows of a board: a listing of the trash, and the number of jobs when a session begins. */
const WHOLE = [/FROM trash\s+WHERE board = \? ORDER BY number$/, /SELECT count\(\*\) FROM jobs WHERE board = b\.id/]

test('each statement finds its rows by an index', async () => {
  const seen = new Set<string>()
  for (const name of ['get', 'all', 'run', 'insert'] as const) {
    const original = SqliteConnection.prototype[name] as (sql: string, ...values: readonly unknown[]) => unknown
    vi.spyOn(SqliteConnection.prototype, name).mockImplementation(function (this: SqliteConnection, sql, ...values) {
      seen.add(sql)
      return original.call(this, sql, ...values) as never
    })
  }
  await using place = await sqlitePlace({ parameters: 'window=3' })
  await using board = await place.open()
  await board.limits.set('api', { concurrency: 2, rate: { limit: 10, per: '1s' } })
  const batch = await board.batch({ name: 'all' })
  const first = await board.post('flow', {}, { key: 'one', batch, resources: { exclusive: ['disk'] }, limits: ['api'] })
  await board.post('flow', {}, { after: [first], delay: '1h' })
  await board.post('flow', { text: 'x'.repeat(5_000) }, { priority: 'HIGH' })
  for (let done = 0; done < 2; done += 1) {
    const [claim] = await board.claimNext()
    if (done === 0) await claim.consume()
    else await claim.trash({ reason: 'none' })
  }
  for await (const entry of board.trashed()) await board.restore(entry)
  await board.findEnded(first.uuid)
  await board.findTrashed(first.uuid)
  await board.limits.show('api')
  const database = openDatabase(place.file)
  const whole = [...seen].filter(
    (sql) => /^(SELECT|UPDATE|DELETE|INSERT)/.test(sql) && !WHOLE.some((each) => each.test(sql)),
  )
  const plans = whole.flatMap((sql) =>
    (database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(
      ({ detail }) => `${detail}: ${sql}`,
    ),
  )
  database.close()
  expect(plans.length).toBeGreaterThan(50)
  expect(
    plans.filter((plan) => /^SCAN (jobs|history|trash|changes|bodies|dependencies|permits|slots)\b/.test(plan)),
  ).toEqual([])
  expect(plans.filter((plan) => /^SEARCH (jobs|history|trash) USING [^:]*\(board=\?\)/.test(plan))).toEqual([])
})
