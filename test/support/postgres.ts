/** A Postgres for tests: on a free loopback port in a few seconds, gone without a trace afterwards. */
import { dirname } from 'node:path'
import pg from 'pg'
import { provide } from './install.ts'
import { freePort } from './ports.ts'
import { POSTGRES, PostgresPrograms } from './postgres-programs.ts'
import { type ContainerDefinition, ServerContainer } from './server-container.ts'
import { type Server, ServerProgram } from './server-program.ts'
import { contentsOf } from './settings-files.ts'

/** Of Debian's version, so that tests meet the same server with an engine and without. */
const IMAGE = 'postgres:15'
const TIMEOUT_MS = 2_000

export interface PostgresOptions {
  readonly port?: number
  /** Further settings, as in `postgresql.conf`: `{ fsync: 'off' }` where no data is lost to a power cut. */
  readonly config?: Readonly<Record<string, string>>
}

export interface PostgresServer extends Server {
  /** `postgres://postgres@127.0.0.1:PORT/postgres`: its superuser needs no password. */
  readonly uri: string
}

/**
 * With Postgres' own defaults: it fsyncs.
 *
 * @throws Error saying what to install when there is no Postgres
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const way = await provide(POSTGRES)
  if (way === 'skip') throw new Error('there is no Postgres, and JOBBOARD_SKIP says to do without')
  const port = options.port ?? (await freePort())
  const uri = `postgres://postgres@127.0.0.1:${port}/postgres`
  const { config = {} } = options
  const { server: program, version } =
    way === 'container' ? await containerOn(port, { config, uri }) : await programOn(port, config)
  await program.start()
  const stop = () => program.stop()
  return {
    uri,
    port,
    version: await version(),
    get pid() {
      return program.pid
    },
    stop,
    kill: () => program.kill(),
    restart: () => program.restart(),
    [Symbol.asyncDispose]: stop,
  }
}

type Config = Readonly<Record<string, string>>

interface Startable {
  readonly server: ServerProgram | ServerContainer
  /** Resolves once it serves. */
  readonly version: () => Promise<string>
}

async function programOn(port: number, config: Config): Promise<Startable> {
  const programs = await PostgresPrograms.find()
  const folder = await programs.makeCluster({ files: Object.keys(await contentsOf(config)) })
  const server = new ServerProgram({
    name: 'Postgres',
    command: programs.serve(folder, { port, config }),
    folder,
    ready: () => programs.isReady(port),
    // The server's processes share memory, and only this signal ends all of them at once and gives it back.
    lastSignal: 'SIGQUIT',
  })
  return { server, version: () => programs.version() }
}

async function containerOn(port: number, { config, uri }: { config: Config; uri: string }): Promise<Startable> {
  const definition = postgresContainer(port, config, await contentsOf(config))
  const version = () => serverVersion(uri)
  const ready = async () => (await version().catch(() => '')) !== ''
  return { server: new ServerContainer({ definition, ready }), version }
}

/** @param files contents by path, of what the settings name */
export function postgresContainer(
  port: number,
  config: Config,
  files: Readonly<Record<string, string>>,
): ContainerDefinition {
  const settings = { listen_addresses: '127.0.0.1', port: String(port), ...config }
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])
  return {
    name: 'Postgres',
    image: IMAGE,
    // It makes the database cluster at the first start, and becomes the server without root's rights.
    command: ['docker-entrypoint.sh', 'postgres', ...flags],
    setup: Object.keys(files).map(ownedByPostgres).join('\n'),
    environment: {
      POSTGRES_HOST_AUTH_METHOD: 'trust',
      POSTGRES_INITDB_ARGS: '--no-sync --encoding=UTF8 --locale=C.UTF-8',
    },
    files,
  }
}

/** It refuses a key that others may read. */
function ownedByPostgres(path: string): string {
  return `chmod 755 '${dirname(path)}'\nchown postgres '${path}'\nchmod 600 '${path}'`
}

async function serverVersion(uri: string): Promise<string> {
  const client = new pg.Client({ connectionString: uri, connectionTimeoutMillis: TIMEOUT_MS })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version')
    return rows[0]?.server_version.split(' ')[0] ?? ''
  } finally {
    await client.end().catch(() => undefined)
  }
}
