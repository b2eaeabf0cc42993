/** Postgres' programs, which Debian keeps off the PATH and which refuse to run as root. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { exists, type Provision, which } from './install.ts'

const run = promisify(execFile)

export const POSTGRES: Provision = {
  name: 'postgres',
  packages: ['postgresql'],
  installed: async () => (await programsFolder()) !== undefined,
}

const DEBIAN = '/usr/lib/postgresql'
/** The system's user that the package makes; the database's first user is called the same. */
const USER = 'postgres'

export class PostgresPrograms {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async find(): Promise<PostgresPrograms> {
    const folder = await programsFolder()
    if (folder === undefined) throw new Error(`there is no initdb on PATH or in ${DEBIAN}`)
    return new PostgresPrograms(folder)
  }

  /** `15.18` */
  async version(): Promise<string> {
    const { stdout } = await run(this.#path('postgres'), ['--version'])
    return /\) (\S+)/.exec(stdout)?.[1] ?? stdout.trim()
  }

  /** @returns a temporary folder with an empty database cluster, which belongs to the user that Postgres runs as */
  async makeCluster(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-postgres-'))
    try {
      if (isRoot()) await run('chown', [`${USER}:`, folder])
      const flags = ['--no-sync', '--auth=trust', `--username=${USER}`, '--encoding=UTF8', '--locale=C.UTF-8']
      const [command = '', ...args] = this.#inside(folder, ['initdb', ...flags, '-D', dataIn(folder)])
      await run(command, args)
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
    return folder
  }

  /** The command that serves a cluster. */
  serve(folder: string, options: { port: number; config: Readonly<Record<string, string>> }): readonly string[] {
    const { port, config } = options
    const settings = { listen_addresses: '127.0.0.1', unix_socket_directories: folder, port: String(port), ...config }
    const flags = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])
    return this.#inside(folder, ['postgres', '-D', dataIn(folder), ...flags])
  }

  async isReady(port: number): Promise<boolean> {
    return run(this.#path('pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(port)]).then(
      () => true,
      () => false,
    )
  }

  /** Returns a schema as SQL, as `pg_dump` writes it. */
  async dump(uri: string, { schema }: { readonly schema: string }): Promise<string> {
    const { stdout } = await run(this.#path('pg_dump'), [`--dbname=${uri}`, `--schema=${schema}`])
    return stdout
  }

  /** Runs SQL, such as a dump, in one transaction. */
  async runSql(uri: string, sql: string): Promise<void> {
    const flags = ['--quiet', '--no-psqlrc', '--single-transaction', '--set=ON_ERROR_STOP=1']
    const running = run(this.#path('psql'), [...flags, uri])
    running.child.stdin?.end(sql)
    await running
  }

  /** From that folder, since its user may not enter ours; and without root's rights, which it refuses. */
  #inside(folder: string, [program = '', ...args]: readonly string[]): readonly string[] {
    const asUser = isRoot() ? ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--init-groups'] : []
    return ['env', `--chdir=${folder}`, ...asUser, this.#path(program), ...args]
  }

  #path(program: string): string {
    return join(this.#folder, program)
  }
}

const isRoot = () => process.getuid?.() === 0

const dataIn = (folder: string) => join(folder, 'data')

/** Where `initdb` and its siblings are; of several versions the newest. */
async function programsFolder(): Promise<string | undefined> {
  const versions = await readdir(DEBIAN).catch(() => [])
  for (const version of versions.sort((a, b) => Number(b) - Number(a))) {
    const folder = join(DEBIAN, version, 'bin')
    if (await exists(join(folder, 'initdb'))) return folder
  }
  const onPath = await which('initdb')
  return onPath === undefined ? undefined : dirname(onPath)
}
