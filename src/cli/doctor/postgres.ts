/** What is wrong with a Postgres, or with what this user may do there. */
import { parseUri } from '../../core/uri.ts'
import { PostgresConnection, postgresPlace, type Row } from '../../postgres/index.ts'
import { clockFinding, error, type Finding, ok, warning } from './finding.ts'

/** Parameters that boards and logbooks read by themselves. */
const OWN = ['board', 'sessionTimeout', 'scanPeriod', 'retryFor']

/** Of connections, from where on the next may be refused. */
const NEARLY_ALL = 0.9

const QUESTION = `
  SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby, clock_timestamp() AS now,
    current_setting('max_connections')::int AS most, (SELECT count(*)::int FROM pg_stat_activity) AS connections,
    CASE WHEN to_regnamespace($1) IS NULL THEN NULL ELSE has_schema_privilege($1, 'USAGE') END AS usage,
    (SELECT count(*)::int FROM pg_tables WHERE schemaname = $1
      AND NOT has_table_privilege(pg_catalog.quote_ident(schemaname) || '.' || pg_catalog.quote_ident(tablename),
        'SELECT, INSERT, UPDATE, DELETE')) AS closed`

export async function examinePostgres(
  uri: string,
  { what, timeout }: { what: 'board' | 'persistence'; timeout: number },
): Promise<Finding[]> {
  const place = postgresPlace(parseUri(uri, what), OWN)
  const connection = await PostgresConnection.open(place, { signal: AbortSignal.timeout(timeout) })
  try {
    const before = Date.now()
    const { rows } = await connection.query(QUESTION, [place.schema])
    const after = Date.now()
    const [row = {}] = rows
    const now = row['now'] instanceof Date ? row['now'].getTime() : before
    return [...serverFindings(row), clockFinding([now - after, now - before]), ...rightsFindings(row, place.schema)]
  } finally {
    await connection.close()
  }
}

function serverFindings({ version, standby, most, connections }: Row): Finding[] {
  const text = `Postgres ${String(version).split(' ')[0]}`
  if (standby === true)
    return [error('server', `${text} is a standby, which takes no writes`, 'name the primary in the URI')]
  const busy = Number(connections) > Number(most) * NEARLY_ALL
  const crowd = `${connections} of ${most} connections are taken`
  if (busy)
    return [ok('server', text), warning('connections', crowd, 'raise max_connections, or start fewer processes')]
  return [ok('server', `${text}, ${crowd}`)]
}

function rightsFindings({ usage, closed }: Row, schema: string): Finding[] {
  // Without the schema there is no board, or there are no logbooks, which others say.
  if (usage === null || usage === undefined) return []
  const advice = `grant them, as in: GRANT USAGE ON SCHEMA ${schema} TO …; GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO …`
  if (usage === false) return [error('rights', `this user may not use schema ${schema}`, advice)]
  if (Number(closed) === 0) return [ok('rights', `all that is needed in schema ${schema}`)]
  return [error('rights', `this user may not read and write ${closed} tables in schema ${schema}`, advice)]
}
