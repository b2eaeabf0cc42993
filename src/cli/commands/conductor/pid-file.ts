/** Writes the file of `--pid`, by which process managers and scripts find the conductor. */
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { InvalidArgument } from '../../../core/errors.ts'

/**
 * Writes the number of this process into a file, and removes the file when the result is disposed. A file of a process that has ended is replaced.
 *
 * @param options.cwd the folder of a path that is not absolute
 * @throws InvalidArgument if the process that the file names lives, or if the file cannot be written
 */
export async function writePidFile(path: string, { cwd }: { readonly cwd: string }): Promise<AsyncDisposable> {
  const file = resolve(cwd, path)
  const written = (await createPidFile(file)) || ((await removeStale(file)) && (await createPidFile(file)))
  if (!written)
    throw new InvalidArgument(`--pid ${path}: another process has just written this file; is it a second conductor?`)
  return {
    [Symbol.asyncDispose]: async () => {
      // The file of another process is left alone.
      if ((await readPid(file)) === process.pid) await rm(file, { force: true })
    },
  }
}

/** Creates the file; returns false if there is one. @throws InvalidArgument */
async function createPidFile(file: string): Promise<boolean> {
  try {
    await writeFile(file, `${process.pid}\n`, { flag: 'wx', mode: 0o644 })
    return true
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') return false
    throw new InvalidArgument(`--pid ${file} cannot be written: ${codeOf(cause)}; name a file in a folder of yours`, {
      cause,
    })
  }
}

/** Removes the file of a process that has ended. Always returns true. @throws InvalidArgument if the process lives */
async function removeStale(file: string): Promise<true> {
  assertEnded(file, await readPid(file))
  // Between the look and the removal another conductor may have replaced the file: what is removed is looked at again.
  const removed = `${file}.${process.pid}`
  const isRemoved = await rename(file, removed).then(
    () => true,
    () => false,
  )
  if (!isRemoved) return true
  try {
    assertEnded(file, await readPid(removed))
  } catch (error) {
    await link(removed, file).catch(() => undefined)
    throw error
  } finally {
    await rm(removed, { force: true })
  }
  return true
}

/** @throws InvalidArgument if a process with this number lives */
function assertEnded(file: string, pid: number | undefined): void {
  // A container gives the same number to each process that it starts.
  if (pid === undefined || pid === process.pid || !isAlive(pid)) return
  throw new InvalidArgument(
    `--pid ${file} has the number ${pid} of a process that lives: stop that one, or name another file`,
  )
}

/** Returns the number in the file; undefined if there is none. */
async function readPid(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return /^\s*[1-9]\d{0,9}\s*$/.test(text) ? Number(text) : undefined
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

function codeOf(error: unknown): string {
  return String(Object(error).code ?? error)
}
