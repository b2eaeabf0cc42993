/** Boards in SQLite files, in a folder of a benchmark. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface BenchFolder extends AsyncDisposable {
  readonly path: string
}

/** Makes a folder that is removed at the end. */
export async function benchFolder(): Promise<BenchFolder> {
  const path = await mkdtemp(join(tmpdir(), 'jobboard-bench-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Returns the URI of a file of that name: of a board, and of logbooks. Its default is `synchronous=full`. */
export function sqliteUri(folder: string, name: string): string {
  return `sqlite:${folder}/${name}.db`
}
