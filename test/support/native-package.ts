/** The `zookeeper` package, ZooKeeper's own C client, as an observer in tests and benchmarks: compiled here, once. */
import { join } from 'node:path'
import { ROOT } from './build.ts'
import { type Provision, provide, which } from './install.ts'
import { ensureInstalled, requireFrom } from './npm-folder.ts'

export const NATIVE_FOLDER = join(ROOT, 'test/support/native')

/** What it takes to compile it. */
const COMPILER: Provision = {
  name: 'native',
  packages: ['build-essential', 'python3'],
  installed: async () => {
    const programs = await Promise.all(['c++', 'cc', 'make', 'python3'].map(which))
    return programs.every((program) => program !== undefined)
  },
}

/** JOBBOARD_SKIP=native: the last line of the run says that it was left out. */
export const nativeLeftOut: boolean = (process.env['JOBBOARD_SKIP'] ?? '')
  .split(',')
  .some((name) => name.trim() === COMPILER.name)

/** How long compiling the package may take on a busy machine: longer than a test may. */
export const COMPILING_LIMIT_MS = 600_000

/** Compiles the package where it is not there yet, and loads nothing of it into this process. */
export async function ensureNativePackage(): Promise<void> {
  await provide(COMPILER, { here: true })
  await ensureInstalled(NATIVE_FOLDER, { because: 'a test needs the package zookeeper, compiled' })
}

/** @returns what `require('zookeeper')` gives */
export async function nativePackage(): Promise<unknown> {
  await ensureNativePackage()
  return requireFrom(NATIVE_FOLDER, 'zookeeper')
}
