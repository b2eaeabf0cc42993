/** Where the config file is, if there is one. */
import { stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { InvalidArgument } from '../../core/errors.ts'

export const FILE_NAME = 'jobboard.yaml'

/**
 * The nearest, in `cwd` or in a folder above it. It names code that is run and where secrets are sent, so one that somebody
 * else has put there, in /tmp say, is not believed unless it is named.
 *
 * @throws InvalidArgument where it belongs to another user than ours and root
 */
export async function nearest(cwd: string): Promise<string | undefined> {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const file = join(folder, FILE_NAME)
    const found = await stat(file).catch(() => undefined)
    if (found?.isFile()) {
      if (isTrusted(found.uid)) return file
      throw new InvalidArgument(`${file} belongs to another user: name it with --config ${file}, or remove it`)
    }
    if (dirname(folder) === folder) return undefined
  }
}

/** Where there are no users there is nothing to compare. */
function isTrusted(owner: number): boolean {
  const own = process.getuid?.()
  return own === undefined || owner === own || owner === 0
}
