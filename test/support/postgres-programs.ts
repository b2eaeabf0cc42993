/** Postgres' programs, which Debian keeps off the PATH and which refuse to run as root. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from './build.ts'
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
/** Empty clusters to copy, one for each version: making one takes most of a second of processor time, and a run needs thirty. */
const TEMPLATES = join(ROOT, '.test/postgres')
const INIT_FLAGS = ['--no-sync', '--auth=trust', `--username=${USER}`, '--encoding=UTF8', '--locale=C.UTF-8']

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

  /**
   * @param options.files given to the user that Postgres runs as, as is the folder
   * @returns a temporary folder with an empty database cluster
   */
  async makeCluster({ files = [] }: { readonly files?: readonly string[] } = {}): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-postgres-'))
    try {
      if (isRoot()) await run('chown', [`${USER}:`, folder, ...files])
      const template = join(TEMPLATES, await this.version())
      if (await exists(template)) await run('cp', ['-a', '--reflink=auto', template, dataIn(folder)])
      else await this.#initialize(folder, { template })
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
    return folder
  }

  /** Makes a cluster, and keeps a copy as the template. */
  async #initialize(folder: string, { template }: { readonly template: string }): Promise<void> {
    const [command = '', ...args] = this.#inside(folder, ['initdb', ...INIT_FLAGS, '-D', dataIn(folder)])
    await run(command, args)
    // Test files run side by side: no template is ever half written, and the first one stays.
    await mkdir(TEMPLATES, { recursive: true })
    const draft = await mkdtemp(join(TEMPLATES, 'draft-'))
    await run('cp', ['-a', dataIn(folder), join(draft, 'data')])
    await rename(join(draft, 'data'), template).catch(() => undefined)
    await rm(draft, { recursive: true, force: true })
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
