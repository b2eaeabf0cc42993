/** A Postgres for tests: on a free loopback port in a few seconds, gone without a trace afterwards. */
import { provide } from './install.ts'
import { freePort } from './ports.ts'
import { POSTGRES, PostgresPrograms } from './postgres-programs.ts'
import { type Server, ServerProgram } from './server-program.ts'

export { POSTGRES } from './postgres-programs.ts'

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
  if ((await provide(POSTGRES, { here: true })) === 'skip') {
    throw new Error('there is no Postgres, and JOBBOARD_SKIP says to do without')
  }
  const port = options.port ?? (await freePort())
  const programs = await PostgresPrograms.find()
  const version = await programs.version()
  const folder = await programs.makeCluster()
  const program = new ServerProgram({
    name: 'Postgres',
    command: programs.serve(folder, { port, config: options.config ?? {} }),
    folder,
    ready: () => programs.isReady(port),
    // The server's processes share memory, and only this signal ends all of them at once and gives it back.
    lastSignal: 'SIGQUIT',
  })
  await program.start()
  const stop = () => program.stop()
  return {
    uri: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    version,
    get pid() {
      return program.pid
    },
    stop,
    kill: () => program.kill(),
    restart: () => program.restart(),
    [Symbol.asyncDispose]: stop,
  }
}
