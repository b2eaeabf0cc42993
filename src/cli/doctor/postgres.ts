/** The doctor's checks of a Postgres, and of this user's rights in it. */
import { isDate } from '../../core/errors.ts'
import { timeoutSignal } from '../../core/time.ts'
import { parseUri, type ResourceUri } from '../../core/uri.ts'
import {
  decodeText,
  encodeText,
  foreignOwner,
  foreignOwnerAdvice,
  PostgresConnection,
  parsePostgresLocation,
  type Row,
} from '../../postgres/index.ts'
import { clockFinding, errorFinding, type Finding, okFinding, warningFinding } from './finding.ts'

/** The parameters that boards and logbooks read themselves. */
const OWN_PARAMETERS = ['board', 'sessionTimeout', 'scanPeriod', 'window', 'retryFor']

/** The fraction of connections from which on a finding warns that new ones may be refused. */
const CONNECTIONS_WARNING_FRACTION = 0.9

const SERVER_QUERY = `
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
  const parsed = parseUri(uri, what)
  const place = parsePostgresLocation(parsed, OWN_PARAMETERS)
  const connection = await PostgresConnection.open(place, { signal: timeoutSignal(timeout) })
  try {
    const before = Date.now()
    const { rows } = await connection.query(SERVER_QUERY, [place.schema])
    const after = Date.now()
    const [row = {}] = rows
    const now = isDate(row['now']) ? row['now'].getTime() : before
    const findings = [...serverFindings(row), clockFinding([now - after, now - before])]
    const rights = rightsFindings(row, place.schema)
    const owner = await foreignOwner(connection, place.schema)
    const mayLook = what === 'board' && rights.every(({ severity }) => severity === 'ok')
    const stopped = mayLook ? await stoppedFindings(connection, { schema: place.schema, uri: parsed }) : []
    return [...findings, ...rights, ...ownerFindings(owner, place.schema), ...stopped]
  } finally {
    await connection.close()
  }
}

/** Returns findings for backends that were asked to end and do not, because they are stopped. */
async function stoppedFindings(
  connection: PostgresConnection,
  { schema, uri }: { readonly schema: string; readonly uri: ResourceUri },
): Promise<Finding[]> {
  // A board that no process of this release has opened yet.
  const { rows: known } = await connection.query('SELECT to_regproc($1) IS NOT NULL AS known', [
    `${schema}.stopped_backends`,
  ])
  if (known[0]?.['known'] !== true) return []
  const text = `SELECT ${schema}.stopped_backends(id) AS stopped FROM ${schema}.boards WHERE name = $1`
  const { rows } = await connection.query(text, [encodeText(uri.parameters.get('board') ?? 'default')])
  const stopped: unknown = rows[0]?.['stopped']
  return (Array.isArray(stopped) ? stopped : []).map(({ who, backend, seconds, jobs }: Record<string, unknown>) =>
    errorFinding(
      'backend',
      `backend ${backend} of ${decodeText(String(who))} was asked to end ${Math.round(Number(seconds))} s ago, and is still there` +
        `${Number(jobs) > 0 ? `: ${jobs} claimed ${jobs === 1 ? 'job waits' : 'jobs wait'} for it` : ''}`,
      `look at process ${backend} on the database's server: let it continue (kill -CONT), or restart Postgres`,
    ),
  )
}

function ownerFindings(owner: string | undefined, schema: string): Finding[] {
  if (owner === undefined) return []
  const { problem, advice } = foreignOwnerAdvice(owner, schema)
  return [warningFinding('schema', problem, advice)]
}

function serverFindings({ version, standby, most, connections }: Row): Finding[] {
  const text = `Postgres ${String(version).split(' ')[0]}`
  if (standby === true)
    return [errorFinding('server', `${text} is a standby, which takes no writes`, 'name the primary in the URI')]
  const busy = Number(connections) > Number(most) * CONNECTIONS_WARNING_FRACTION
  const usage = `${connections} of ${most} connections are taken`
  if (busy)
    return [
      okFinding('server', text),
      warningFinding('connections', usage, 'raise max_connections, or start fewer processes'),
    ]
  return [okFinding('server', `${text}, ${usage}`)]
}

function rightsFindings({ usage, closed }: Row, schema: string): Finding[] {
  // Without the schema there is no board and there are no logbooks; other findings report that.
  if (usage === null || usage === undefined) return []
  const advice = `grant them, as in: GRANT USAGE ON SCHEMA ${schema} TO …; GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO …`
  if (usage === false) return [errorFinding('rights', `this user may not use schema ${schema}`, advice)]
  if (Number(closed) === 0) return [okFinding('rights', `all rights that are needed in schema ${schema}`)]
  return [errorFinding('rights', `this user may not read and write ${closed} tables in schema ${schema}`, advice)]
}
