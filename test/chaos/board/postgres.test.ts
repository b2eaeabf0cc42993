/** Owners on Postgres that die, and one that only seems to. */
import { expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { parseUri } from '../../../src/core/uri.ts'
import { PostgresConnection, parsePostgresLocation } from '../../../src/postgres/index.ts'
import { type PostgresPlace, postgresPlaceOn } from '../../board/backends/postgres/boards.ts'
import { startPostgres } from '../../support/postgres.ts'
import { everyJobOnce, type RemovalCounter } from './exactly-once.ts'

test('of owners that die, and one that only seems to, every job is consumed exactly once', async () => {
  await using server = await startPostgres()
  await using place = await postgresPlaceOn(server.uri)
  await using poster = await place.open({ who: 'poster' })
  await using gone = await goneCounter(server.uri, place)
  await everyJobOnce({ poster, ownersUri: `${place.uri}&sessionTimeout=4s`, gone })
  for (const table of ['jobs', 'trash', 'permits']) expect(await place.query(`SELECT FROM @.${table}`)).toEqual([])
})

/** The table of jobs itself says which rows go. */
async function goneCounter(server: string, place: PostgresPlace): Promise<RemovalCounter & AsyncDisposable> {
  await place.query('CREATE TABLE @.gone (job bigint)')
  await place.query(`CREATE FUNCTION @.went() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO @.gone SELECT id FROM went;
      PERFORM pg_notify('${place.schema}_gone', count(*)::text) FROM went;
      RETURN NULL;
    END $$`)
  await place.query(`CREATE TRIGGER went AFTER DELETE ON @.jobs REFERENCING OLD TABLE AS went
    FOR EACH STATEMENT EXECUTE FUNCTION @.went()`)
  const listener = await PostgresConnection.open(parsePostgresLocation(parseUri(server, 'board')))
  const [enough, failed] = [createDeferred(), createDeferred<never>()]
  failed.promise.catch(() => undefined)
  let wanted = Number.POSITIVE_INFINITY
  const look = async () => {
    const [row] = await place.query('SELECT count(DISTINCT job) AS gone FROM @.gone')
    if (Number(row?.['gone']) >= wanted) enough.resolve()
  }
  // One look at a time: on a busy machine more is told than can be looked at.
  let looking: Promise<void> | undefined
  let again = false
  const told = async () => {
    again = true
    looking ??= (async () => {
      for (; again; await look()) again = false
    })().finally(() => {
      looking = undefined
    })
    await looking
  }
  listener.onNotification(() => void told().catch(failed.reject))
  await listener.query(`LISTEN ${place.schema}_gone`, [])
  let twice: string[] = []
  return {
    reached: async (jobs) => {
      wanted = jobs
      await told()
      await Promise.race([enough.promise, failed.promise])
      const rows = await place.query('SELECT job FROM @.gone GROUP BY job HAVING count(*) > 1')
      twice = rows.map(({ job }) => String(job))
    },
    twice: () => twice,
    [Symbol.asyncDispose]: () => listener.close(),
  }
}
