/**
 * The files of the output folder:
 *
 *     files/<job>.gz         an archived file
 *     manifest/<job>.json    its record: the file is archived when this exists
 *     manifest.jsonl         all records, written at the end
 *     summary.json           what was archived, skipped, and failed
 *     logbooks/              the logbook of each job
 */
import { mkdir, readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Target } from './flow.ts'
import { UsageError } from './options.ts'
import { printableText } from './printable.ts'

export interface Output {
  /** The absolute path. */
  readonly folder: string
  readonly files: string
  readonly manifest: string
  readonly manifestFile: string
  readonly summaryFile: string
  readonly logbooks: string
}

/** Checks the output folder. @throws UsageError when it is not empty */
export async function assertEmpty(out: string): Promise<void> {
  const there = await readdir(out).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw unusable(out, error)
  })
  if (there.length > 0)
    throw new UsageError(`--out ${printableText(out)} is not empty: name a folder that is empty or not there`)
}

/** Creates the output folder; without a name, a new one. @throws UsageError when it cannot be created */
export async function makeOutput(out: string | undefined): Promise<Output> {
  const folder = resolve(out ?? (await makeNewFolder('archives')))
  const output: Output = {
    folder,
    files: join(folder, 'files'),
    manifest: join(folder, 'manifest'),
    manifestFile: join(folder, 'manifest.jsonl'),
    summaryFile: join(folder, 'summary.json'),
    logbooks: join(folder, 'logbooks'),
  }
  for (const made of [output.files, output.manifest]) {
    await mkdir(made, { recursive: true }).catch((error: Error) => {
      throw unusable(folder, error)
    })
  }
  return output
}

export function targetOf(output: Output, job: string): Target {
  return { folder: output.folder, archive: `files/${job}.gz`, manifest: `manifest/${job}.json` }
}

/** Returns the logbooks' URI. Characters of a folder's name may need escaping in a URI. */
export function logbooksUri({ logbooks }: Output): string {
  return `directory:${logbooks.replace(/[%?#]/g, encodeURIComponent)}`
}

/** Creates a folder named after the current time. */
async function makeNewFolder(parent: string): Promise<string> {
  const now = new Date().toISOString().slice(0, 19).replaceAll(':', '-')
  for (let number = 1; ; number += 1) {
    const folder = join(parent, number === 1 ? now : `${now}-${number}`)
    try {
      await mkdir(parent, { recursive: true })
      await mkdir(folder)
      return folder
    } catch (error) {
      // Another run started in the same second.
      if (isError(error, 'EEXIST') && number < MOST_IN_A_SECOND) continue
      throw unusable(folder, error)
    }
  }
}

const MOST_IN_A_SECOND = 100

function isError(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

function unusable(folder: string, error: unknown): UsageError {
  const why = error instanceof Error ? printableText(error.message) : String(error)
  return new UsageError(`${printableText(folder)} cannot be used for the output (${why}): name another with --out`)
}
