/** Chooses the board of a run: the board that is named, or a file that is deleted at the end. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isMemory } from './options.ts'

export interface Place extends AsyncDisposable {
  /** The URI of the board. */
  readonly board: string
  /** The folder of the file; undefined for a board that is named. */
  readonly folder: string | undefined
  /** Whether the jobs that are left stay on the board after the run. */
  readonly isKept: boolean
}

/** Returns the place of a board, and makes the folder of a file if no board is named. */
export async function makePlace(board: string | undefined): Promise<Place> {
  if (board !== undefined)
    return { board, folder: undefined, isKept: !isMemory(board), [Symbol.asyncDispose]: async () => undefined }
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-archive-'))
  return {
    // The path of the folder may have characters that a URI escapes.
    board: `sqlite:${pathToFileURL(join(folder, 'jobs.db')).pathname}`,
    folder,
    isKept: false,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
