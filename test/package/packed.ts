/** The package as it is published, and a stranger who has installed it. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { ensureBuilt, ROOT } from '../support/build.ts'
import { exists } from '../support/install.ts'

export interface Packed extends AsyncDisposable {
  readonly tarball: string
  readonly files: readonly string[]
}

/** Without its scripts: they would empty the folder that other tests run from. */
export async function pack(): Promise<Packed> {
  await ensureBuilt()
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'jobboard-packed-')))
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
  const { stdout } = await promisify(execFile)('npm', args, { cwd: ROOT, maxBuffer: 16 * 1_024 * 1_024 })
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }]
  return {
    tarball: join(folder, packed.filename),
    files: packed.files.map(({ path }) => path),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

export interface InstalledPackage extends AsyncDisposable {
  readonly folder: string
  write(name: string, text: string): Promise<void>
  /** Runs a line in a shell. @param options.path folders to look for programs in before all others */
  run(line: string, options?: ShellOptions): Promise<string>
}

export interface ShellOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly path?: string
}

const BEGIN = 'npm init --yes && npm pkg set type=module'

/**
 * Makes an empty folder and installs the package in it, as the README says.
 *
 * @param options.beside what else is installed, as `npm install` takes it: an application's own drivers
 * @param options.begin the line that makes the project
 */
export async function installPackage(
  tarball: string,
  { beside = [], begin = BEGIN }: { readonly beside?: readonly string[]; readonly begin?: string } = {},
): Promise<InstalledPackage> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'jobboard-stranger-')))
  const run: InstalledPackage['run'] = async (line, { env = {}, path } = {}) => {
    const PATH = [path, process.env['PATH']].filter((part) => part !== undefined).join(':')
    const options = { cwd: folder, env: { ...process.env, npm_config_loglevel: 'silent', ...env, PATH } }
    return (await promisify(execFile)('/bin/sh', ['-c', line], options)).stdout
  }
  await run(begin)
  await run(`npm install --prefer-offline --no-audit --no-fund ${[...beside, tarball].join(' ')}`)
  // What the README has them install beside it: large, and of no interest here.
  for (const name of ['tsx', '@types/node']) {
    const link = join(folder, 'node_modules', name)
    if (await exists(link)) continue
    await mkdir(dirname(link), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), link)
  }
  return {
    folder,
    write: (name, text) => writeFile(join(folder, name), text),
    run,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
