/** Finds the nearest config file, and checks that no other user could have changed it. */
import { constants } from 'node:fs'
import { lstat, open, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { InvalidArgument } from '../../../core/errors.ts'
import { findFileDistrust, findFolderDistrust, isOwnedByOthers } from './trust.ts'

export const FILE_NAME = 'jobboard.yaml'

/** A config file that no user named. */
export interface FoundConfig {
  /** The path that was found; it may be a symbolic link. */
  readonly file: string
  /** The path of the file itself. */
  readonly real: string
  /** The content, read from the very file that was checked. */
  readonly text: string
}

/**
 * Finds the nearest config file, in `cwd` or in a folder above it. The file names code that is run and servers that
 * receive secrets, so a file that another user placed there, for example in /tmp, or could change, is refused unless it
 * is named explicitly.
 *
 * @throws InvalidArgument if the file, the link to it, or one of their folders belongs to a user other than this one
 * and root, or can be written by others
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
  // The owner of a link chose which of this user's files is read.
  if (isOwnedByOthers(link.uid)) throw untrustedError(file, `${file} belongs to another user`)
  const real = await realpath(file).catch(() => undefined)
  if (real === undefined) return undefined
  // The flags refuse a link that was placed there meanwhile, and a pipe, which would block.
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

/** Checks the folders: a user who can write to a folder can replace the file, or a module of flows, in it. */
async function assertFolders(file: string, real: string): Promise<void> {
  for (const folder of new Set([dirname(file), dirname(real)])) {
    const why = await findFolderDistrust(folder)
    if (why !== undefined) throw untrustedError(file, `${folder} ${why}, who could replace what is in it`)
  }
}

function untrustedError(file: string, why: string): InvalidArgument {
  return new InvalidArgument(`${why}: name it with --config ${file}, or remove it`)
}
