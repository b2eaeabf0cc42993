/**
 * Finds what a run of tests has left behind: folders, and processes. Everything that the run makes in the temporary folder is in one folder of its
 * own, and every process that it starts, however far down, has a mark in its environment.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MARK = 'JOBBOARD_TEST_RUN'
/** What tools keep there for the next time. */
const CACHES = /^tsx-\d+$|^node-compile-cache$/
/** Programs of the runner itself. */
const OWN_PROGRAMS = /vitest|esbuild/

export interface Leftovers {
  /** Removes the folder of the run. Returns what was left, one line each. */
  end(): string[]
}

/** Makes the folder of this run the temporary folder of all processes that are started from now on. */
export function watchLeftovers(): Leftovers {
  const folder = mkdtempSync(join(tmpdir(), 'jobboard-tests-'))
  // Postgres does not run as root: its user must get to its folder.
  chmodSync(folder, 0o755)
  process.env['TMPDIR'] = folder
  process.env[MARK] = folder
  return {
    end: () => {
      const left = [...findProcesses(folder), ...findFiles(folder)]
      rmSync(folder, { recursive: true, force: true })
      return left
    },
  }
}

/** Returns a line for each file and folder, apart from caches. */
function findFiles(folder: string): string[] {
  return listNames(folder).flatMap((name) => (CACHES.test(name) ? [] : [`folder or file ${join(folder, name)}`]))
}

/** Returns a line for each process with the mark. Nothing where there is no `/proc`. */
function findProcesses(folder: string): string[] {
  return listNames('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return []
    const command = readText(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
    const isMarked = readText(`/proc/${pid}/environ`).split('\0').includes(`${MARK}=${folder}`)
    // A process that has ended, and that nobody has waited for, has no command.
    return isMarked && command !== '' && !OWN_PROGRAMS.test(command) ? [`process ${pid}: ${command.slice(0, 200)}`] : []
  })
}

function listNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Returns the text of a file, or '' for one that is gone, or is another user's. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
