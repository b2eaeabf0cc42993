/**
 * Packages that the tests and benchmarks use and the library does not: in folders with a lock of their own, installed
 * when they are first needed and kept until the lock or Node changes.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from './build.ts'
import { exists } from './install.ts'
import { doOnce } from './process-lock.ts'

const PREFIX = join(process.execPath, '../..')

/** Installs the packages of the folder unless that is done. */
export function ensureInstalled(folder: string, options: { readonly because: string }): Promise<void> {
  const lock = join(ROOT, 'node_modules', `.jobboard-${basename(folder)}.lock`)
  return doOnce({ lock, isDone: () => installed(folder), work: () => install(folder, options.because) })
}

/** What a package of that folder exports. */
export function requireFrom(folder: string, name: string): unknown {
  return createRequire(join(folder, 'package.json'))(name)
}

async function install(folder: string, because: string): Promise<void> {
  const args = ['ci', '--no-audit', '--no-fund', ...(await headers())]
  const command = `cd ${folder} && npm ${args.join(' ')}`
  if (process.env['JOBBOARD_NO_INSTALL'] === '1')
    throw new Error(`${because}, and may not be installed; run: ${command}`)
  process.stderr.write(`${because}; installing: ${command} (JOBBOARD_NO_INSTALL=1 forbids it)\n`)
  try {
    await promisify(execFile)('npm', args, { cwd: folder, maxBuffer: 64 * 1_024 * 1_024 })
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string }
    throw new Error(`${command} failed:\n${stderr.trim().slice(-2_000)}`, { cause: error })
  }
  await writeFile(stampOf(folder), await fingerprint(folder))
}

/** Packages that compile use the headers of the Node that runs, and load nothing, where they are beside it. */
async function headers(): Promise<string[]> {
  return (await exists(join(PREFIX, 'include/node/node.h'))) ? [`--nodedir=${PREFIX}`] : []
}

async function installed(folder: string): Promise<boolean> {
  const stamp = await readFile(stampOf(folder), 'utf8').catch(() => '')
  return stamp === (await fingerprint(folder))
}

const stampOf = (folder: string) => join(folder, 'node_modules/.jobboard-installed')

async function fingerprint(folder: string): Promise<string> {
  const lock = await readFile(join(folder, 'package-lock.json'))
  const node = `${process.version} ${process.platform} ${process.arch}`
  return createHash('sha256').update(lock).update(node).digest('hex')
}
