/** Where the config file is, if there is one. */
import { stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

export const FILE_NAME = 'jobboard.yaml'

/** The nearest, in `cwd` or in a folder above it. */
export async function nearest(cwd: string): Promise<string | undefined> {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const file = join(folder, FILE_NAME)
    const found = await stat(file).catch(() => undefined)
    if (found?.isFile()) return file
    if (dirname(folder) === folder) return undefined
  }
}
