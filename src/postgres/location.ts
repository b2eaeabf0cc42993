/** `postgres://user:password@host:5432/database?schema=jobboard&sslmode=verify-full&…`: where the database is, and how to talk to it. */
import { readFile } from 'node:fs/promises'
import type { ConnectionOptions } from 'node:tls'
import { InvalidArgument } from '../core/errors.ts'
import { MAX_TIMER_MS } from '../core/time.ts'
import { assertParameters, type ResourceUri, readDurationParameter } from '../core/uri.ts'

export interface PostgresLocation {
  readonly uri: ResourceUri
  /** The schema with all tables of jobboard. */
  readonly schema: string
}

/** Returns a text that is the same for two locations only if they are one schema of one database, which one user uses. */
export function postgresPlace({ uri, schema }: PostgresLocation): string {
  return JSON.stringify(['postgres', uri.authority, uri.path, uri.credentials?.user ?? '', schema])
}

const POOL_PARAMETERS = ['schema', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'application_name'].concat([
  'statementTimeout',
  'connectTimeout',
  'poolSize',
])

const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full']

/**
 * Checks everything that can be checked without opening anything.
 *
 * @param own further parameters, which the caller reads
 * @throws InvalidArgument
 */
export function parsePostgresLocation(uri: ResourceUri, own: readonly string[] = []): PostgresLocation {
  assertParameters(uri, [...POOL_PARAMETERS, ...own])
  const { parameters } = uri
  if (uri.authority.includes(','))
    throw new InvalidArgument(
      `${uri.printable}: several hosts; name one, such as the address that moves with the primary`,
    )
  if (!URL.canParse(parseAddress(uri)))
    throw new InvalidArgument(`${uri.printable}: no address; write postgres://user:password@127.0.0.1:5432/database`)
  const { sslmode, from } = readSslMode(uri)
  if (!SSL_MODES.includes(sslmode))
    throw new InvalidArgument(`${uri.printable}: ${from} must be one of ${SSL_MODES.join(', ')}, got ${sslmode}`)
  const strays = ['sslrootcert', 'sslcert', 'sslkey'].filter((name) => parameters.has(name))
  if (sslmode === 'disable' && strays.length > 0)
    throw new InvalidArgument(`${uri.printable}: ${strays.join(', ')} without TLS; add sslmode=verify-full`)
  for (const name of ['statementTimeout', 'connectTimeout']) readDurationParameter(uri, name)
  const poolSize = parameters.get('poolSize') ?? '4'
  if (!/^[1-9]\d{0,3}$/.test(poolSize))
    throw new InvalidArgument(`${uri.printable}: poolSize must be a whole number from 1 to 9999, got ${poolSize}`)
  return { uri, schema: schemaName(parameters.get('schema') ?? 'jobboard') }
}

/** Reads the TLS mode from the URI, else from the environment, as `libpq` does. */
function readSslMode({ parameters }: ResourceUri): { readonly sslmode: string; readonly from: string } {
  const mode = parameters.get('sslmode')
  if (mode !== undefined) return { sslmode: mode, from: 'sslmode' }
  // An empty variable counts as not set.
  return { sslmode: process.env['PGSSLMODE'] || 'disable', from: 'PGSSLMODE (of the environment)' }
}

/** The environment variables for files that the URI does not name. */
const FILE_VARIABLES = { sslrootcert: 'PGSSLROOTCERT', sslcert: 'PGSSLCERT', sslkey: 'PGSSLKEY' } as const

/** @throws InvalidArgument for a name that needs quotes, here and in the statements of administrators */
export function schemaName(schema: string): string {
  const isOwn = !schema.startsWith('pg_') && schema !== 'information_schema'
  if (/^[a-z_][a-z0-9_]{0,58}$/.test(schema) && isOwn) return schema
  throw new InvalidArgument(
    `schema ${JSON.stringify(schema)}: use lower-case letters, digits and _, no pg_ in front, and no schema of Postgres' own`,
  )
}

/** Quotes a schema name for statements: `user` and `order` are words of SQL, too. */
export function quoteIdentifier(schema: string): string {
  return `"${schema}"`
}

/** The default limit of a statement; longer than any of jobboard's takes on a healthy server. */
const STATEMENT_TIMEOUT_MS = 30_000
const CONNECT_TIMEOUT_MS = 5_000
/** The time after the server's own limit when a connection without an answer is given up. */
const QUERY_GRACE_MS = 5_000

/**
 * The settings that statements and functions rely on, whatever the defaults of the database and the role are. They are sent when a connection
 * is opened, and take no further round trip.
 */
const RELIED_ON: Readonly<Record<string, string>> = {
  // Each statement of a function sees what was committed before it; nothing is retried after a serialization failure.
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  bytea_output: 'hex',
  extra_float_digits: '1',
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  // A role that may create functions in another schema must not put its own in the place of Postgres'.
  search_path: 'pg_catalog, pg_temp',
  // Waits are bounded by statement_timeout.
  lock_timeout: '0',
}

/** Returns the settings for the command line of the server's process, after the user's own, which they replace. */
function startupOptions(): string {
  const own = Object.entries(RELIED_ON).map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  return [process.env['PGOPTIONS'] ?? '', ...own].join(' ').trim()
}

/** The settings for the pool of `pg`, under its names. */
export interface PoolSettings {
  readonly host?: string
  readonly port?: number
  readonly user?: string
  readonly password?: string | (() => string)
  readonly database?: string
  readonly statement_timeout?: number
  readonly options?: string
  readonly query_timeout: number
  readonly connectionTimeoutMillis: number
  readonly application_name: string
  readonly max: number
  readonly keepAlive: boolean
  readonly ssl: ConnectionOptions | false
}

/**
 * @param options.statementTimeoutMs the time limit of a statement, in place of the one in the URI
 * @throws InvalidArgument when a certificate's file cannot be read
 */
export async function poolSettings(
  { uri }: PostgresLocation,
  { statementTimeoutMs }: { readonly statementTimeoutMs?: number | undefined } = {},
): Promise<PoolSettings> {
  const { parameters, credentials: { user = '', password } = {} } = uri
  const { hostname, port } = new URL(parseAddress(uri))
  const inUri = readDurationParameter(uri, 'statementTimeout') ?? STATEMENT_TIMEOUT_MS
  // 0 in the URI means that a pooler takes no settings, whatever the limit is.
  const timeout = inUri > 0 ? (statementTimeoutMs ?? inUri) : 0
  const limit = statementTimeoutMs ?? (inUri || STATEMENT_TIMEOUT_MS)
  const database = uri.path.replace(/^\//, '')
  return {
    ...(hostname === '' ? {} : { host: decodeURIComponent(hostname).replace(/^\[|\]$/g, '') }),
    ...(port === '' ? {} : { port: Number(port) }),
    ...(user === '' ? {} : { user }),
    // The driver takes an empty text for none, and would read PGPASSWORD, which `user:@host` excludes.
    ...(password === undefined ? {} : { password: password || (() => '') }),
    ...(database === '' ? {} : { database }),
    // Poolers refuse settings they do not know; with 0 there is none, and only our own limit holds.
    ...(timeout > 0 ? { statement_timeout: timeout, options: startupOptions() } : {}),
    query_timeout: Math.min(limit + QUERY_GRACE_MS, MAX_TIMER_MS),
    connectionTimeoutMillis: readDurationParameter(uri, 'connectTimeout') ?? CONNECT_TIMEOUT_MS,
    application_name: parameters.get('application_name') ?? 'jobboard',
    max: Number(parameters.get('poolSize') ?? 4),
    keepAlive: true,
    ssl: await readTls(uri),
  }
}

async function readTls(uri: ResourceUri): Promise<ConnectionOptions | false> {
  const { parameters, printable } = uri
  const { sslmode } = readSslMode(uri)
  if (sslmode === 'disable') return false
  const file = async (name: keyof typeof FILE_VARIABLES, key: 'ca' | 'cert' | 'key') => {
    const variable = FILE_VARIABLES[name]
    const path = parameters.get(name) ?? process.env[variable]
    if (!path) return {}
    const content = await readFile(path).catch((cause: Error) => {
      const from = parameters.has(name) ? name : `${variable} (of the environment)`
      throw new InvalidArgument(`${printable}: ${from} cannot be read: ${cause.message}`, { cause })
    })
    return { [key]: content }
  }
  const files = await Promise.all([file('sslrootcert', 'ca'), file('sslcert', 'cert'), file('sslkey', 'key')])
  const identity = sslmode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}
  return Object.assign({ rejectUnauthorized: sslmode !== 'require' }, identity, ...files)
}

/** Returns the address under a scheme for which `URL` has no special rules. */
function parseAddress({ authority }: ResourceUri): string {
  return `postgres://${authority}/`
}
