/** A temporary folder that is deleted at the end. */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { JobboardError } from '../../core/errors.ts'

/** Makes a temporary folder. @throws JobboardError if none can be made */
export async function temporaryFolder(prefix: string): Promise<string> {
  const above = tmpdir()
  try {
    return await mkdtemp(join(above, prefix))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new JobboardError(`cannot create a folder in ${above}: ${code}; set TMPDIR to a writable folder`, {
      cause,
    })
  }
}
