/** What is wrong with a folder of logbooks. */
import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { error, type Finding, ok, warning } from './finding.ts'

/** In bytes, and of the whole: less is soon gone. */
const LITTLE = 256 * 1_024 * 1_024
const SMALL_PART = 0.02

export async function examineDirectory(folder: string): Promise<Finding[]> {
  return [await rightsFinding(folder), await spaceFinding(folder)]
}

async function rightsFinding(folder: string): Promise<Finding> {
  try {
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return ok('rights', `${folder} can be read and written`)
  } catch {
    return error(
      'rights',
      `${folder} cannot be read and written by this user`,
      'run as its owner, or change its rights',
    )
  }
}

async function spaceFinding(folder: string): Promise<Finding> {
  const { bavail, blocks, bsize } = await statfs(folder)
  const free = bavail * bsize
  const text = `${Math.floor(free / 1_024 / 1_024)} MiB are free on the disk of ${folder}`
  if (free > LITTLE && bavail > blocks * SMALL_PART) return ok('disk', text)
  return warning('disk', text, 'make room, as with jobboard logbook destroy --older-than 30d')
}
