/** The doctor's checks of a folder of logbooks. */
import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { errorFinding, type Finding, okFinding, warningFinding } from './finding.ts'

/** The limits below which free space is a warning: in bytes, and as a fraction of the disk. */
const MIN_FREE_BYTES = 256 * 1_024 * 1_024
const MIN_FREE_FRACTION = 0.02

export async function examineDirectory(folder: string): Promise<Finding[]> {
  return [await rightsFinding(folder), await spaceFinding(folder)]
}

async function rightsFinding(folder: string): Promise<Finding> {
  try {
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return okFinding('rights', `${folder} can be read and written`)
  } catch {
    return errorFinding(
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
  if (free > MIN_FREE_BYTES && bavail > blocks * MIN_FREE_FRACTION) return okFinding('disk', text)
  return warningFinding('disk', text, 'make room, as with jobboard logbook destroy --older-than 30d')
}
