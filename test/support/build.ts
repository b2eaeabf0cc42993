/** The command line as it is shipped, built once where what is there is missing or older than its sources. */
import { execFile } from 'node:child_process'
import { readdir, stat, utimes } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { doOnce } from './process-lock.ts'

export const ROOT = resolve(import.meta.dirname, '../..')
/** What `npx jobboard` runs. */
export const MAIN = join(ROOT, 'dist/cli/main.js')

const SOURCE = join(ROOT, 'src')
const LOCK = join(ROOT, 'node_modules/.jobboard-build.lock')

let built: Promise<void> | undefined

/** Builds it unless that is done. */
export function ensureBuilt(): Promise<void> {
  built ??= doOnce({ lock: LOCK, isDone: async () => !(await stale()), work: build })
  return built
}

async function stale(): Promise<boolean> {
  const built = await modified(MAIN)
  if (built === undefined) return true
  const names = await readdir(SOURCE, { recursive: true })
  const times = await Promise.all(names.map((name) => modified(join(SOURCE, name))))
  return times.some((time) => time !== undefined && time > built)
}

/** Over what is there, so that whoever runs it meanwhile does not find it gone. */
async function build(): Promise<void> {
  try {
    await promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: ROOT })
    // An incremental build leaves alone what has not changed, and this file's age is what tells of the last build.
    await utimes(MAIN, new Date(), new Date())
  } catch (error) {
    const { stdout } = error as { stdout?: string }
    throw new Error(`the command line cannot be built: ${stdout?.trim()}`, { cause: error })
  }
}

async function modified(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  )
}
