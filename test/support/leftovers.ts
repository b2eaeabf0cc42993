/**
 * Finds what a run of tests has left behind: files, and processes. Everything that a run makes in the temporary folder is in one folder of its own. A
 * process belongs to the run if that folder is in its environment, its command or its working directory. Containers are not found.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../src/core/errors.ts'

const RUN_VARIABLE = 'JOBBOARD_TEST_RUN'
/**
 * Caches of tools, and Chromium's shared memory: it makes a file, opens it and unlinks it, and one that is closed in between leaves it. They go with
 * the folder.
 */
const FILES_OF_TOOLS = /^tsx-\d+$|^node-compile-cache$|^\.org\.chromium\.Chromium\.\w+$/
const RUNNER_PROGRAMS = /vitest\/dist\/workers\/|^\S+ \(vitest|esbuild\/bin\/esbuild/
/** The time that processes which have their signal have to end, in milliseconds. */
const ENDING_MS = 5_000
const LOOK_AGAIN_MS = 100

export interface Leftovers {
  /** Removes the folder of the run. Returns what was left, one line each. */
  removeAll(): Promise<string[]>
}

/** Makes the folder of this run the temporary folder of all processes that are started from now on. */
export function watchLeftovers(): Leftovers {
  const former = process.env['TMPDIR']
  const folder = mkdtempSync(join(tmpdir(), 'jobboard-tests-'))
  // Postgres does not run as root: its user must get to its folder.
  chmodSync(folder, 0o755)
  process.env['TMPDIR'] = folder
  process.env[RUN_VARIABLE] = folder
  return {
    removeAll: async () => {
      for (let left = ENDING_MS; left > 0 && find(folder).length > 0; left -= LOOK_AGAIN_MS) await sleep(LOOK_AGAIN_MS)
      const found = find(folder)
      if (former === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = former
      try {
        rmSync(folder, { recursive: true, force: true })
      } catch (error) {
        found.push(`folder ${folder}, which cannot be removed: ${messageOf(error)}`)
      }
      return found
    },
  }
}

function find(folder: string): string[] {
  return [...findProcesses(folder), ...findFiles(folder)]
}

/** Returns a line for each file and folder, apart from files of tools. */
function findFiles(folder: string): string[] {
  return listNames(folder).flatMap((name) =>
    FILES_OF_TOOLS.test(name) ? [] : [`file or folder ${join(folder, name)}`],
  )
}

/** Returns a line for each process of the run. Nothing where there is no `/proc`. */
function findProcesses(folder: string): string[] {
  return listNames('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return []
    const command = readText(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      .replaceAll('\0', ' ')
      .trim()
    // A process that has ended, and that nobody has waited for, has no command.
    if (command === '' || RUNNER_PROGRAMS.test(command)) return []
    const environment = readText(() => readFileSync(`/proc/${pid}/environ`, 'utf8'))
    const cwd = readText(() => readlinkSync(`/proc/${pid}/cwd`))
    const isOfRun = [command, environment, cwd].some((text) => text.includes(folder))
    return isOfRun ? [`process ${pid}: ${command.slice(0, 200)}`] : []
  })
}

function listNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Returns what is read, or '' for what is gone, or is another user's. */
function readText(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
