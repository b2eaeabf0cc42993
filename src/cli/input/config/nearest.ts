/** Where the config file is, if there is one. */
import { constants } from 'node:fs'
import { lstat, open, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { InvalidArgument } from '../../../core/errors.ts'
import { findFileDistrust, findFolderDistrust, isOwnedByOthers } from './trust.ts'

export const FILE_NAME = 'jobboard.yaml'

/** A config file that nobody named. */
export interface FoundConfig {
  /** As it was found; it may be a symbolic link. */
  readonly file: string
  /** The file itself. */
  readonly real: string
  /** What is in it, read from the very file that was checked. */
  readonly text: string
}

/**
 * Finds the nearest, in `cwd` or in a folder above it. It names code that is run and where secrets are sent, so one that
 * somebody else has put there, in /tmp say, or could change, is not believed unless it is named.
 *
 * @throws InvalidArgument where it, the link to it, or a folder of them belongs to another user than ours and root, or can be
 * written by others
 */
export async function findNearestConfig(cwd: string): Promise<FoundConfig | undefined> {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const found = await findConfigIn(folder)
    if (found) return found
    if (dirname(folder) === folder) return undefined
  }
}

async function findConfigIn(folder: string): Promise<FoundConfig | undefined> {
  const file = join(folder, FILE_NAME)
  const link = await lstat(file).catch(() => undefined)
  if (!link) return undefined
  // Whoever made a link chose which of our files it is that is read.
  if (isOwnedByOthers(link.uid)) throw untrustedError(file, `${file} belongs to another user`)
  const real = await realpath(file).catch(() => undefined)
  if (real === undefined) return undefined
  // Neither a link that was put there meanwhile nor a pipe, which would never open.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
  const handle = await open(real, flags).catch((cause: NodeJS.ErrnoException) => {
    throw new InvalidArgument(`config file ${file} cannot be read: ${cause.message}`, { cause })
  })
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) return undefined
    const why = await findFileDistrust(stats)
    if (why !== undefined) throw untrustedError(file, `${real} ${why}`)
    await assertFolders(file, real)
    return { file, real, text: await handle.readFile('utf8') }
  } finally {
    await handle.close()
  }
}

/** Who can write to a folder can put another file, or another module of flows, in the place of ours. */
async function assertFolders(file: string, real: string): Promise<void> {
  for (const folder of new Set([dirname(file), dirname(real)])) {
    const why = await findFolderDistrust(folder)
    if (why !== undefined) throw untrustedError(file, `${folder} ${why}, who could replace what is in it`)
  }
}

function untrustedError(file: string, why: string): InvalidArgument {
  return new InvalidArgument(`${why}: name it with --config ${file}, or remove it`)
}
