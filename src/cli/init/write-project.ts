/** Writing of a new project's files: all of them, or none. */
import { lstat, mkdir, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import type { ProjectFile } from './project.ts'

/**
 * Writes files into a folder, which is created if it does not exist. Files that exist are never changed, unless `force`
 * replaces them.
 *
 * @throws InvalidArgument naming the files that are in the way; nothing is written then
 * @throws JobboardError if the folder cannot be written to; what was written is removed
 */
export async function writeProject(
  folder: string,
  files: readonly ProjectFile[],
  { force }: { readonly force: boolean },
): Promise<void> {
  await makeFolder(folder)
  const existing = await findExisting(folder, files)
  if (existing.length > 0 && !force) throw inTheWay(folder, existing)
  const written: string[] = []
  for (const { path, text } of files) {
    const file = join(folder, path)
    try {
      // A symbolic link is replaced, and the file that it leads to stays as it is.
      if (existing.includes(path)) await rm(file)
      // The flag refuses a file that was created meanwhile.
      await writeFile(file, text, { flag: 'wx' })
      written.push(file)
    } catch (cause) {
      for (const each of written) await rm(each, { force: true })
      throw cannotWrite(file, cause)
    }
  }
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await makeFolders(folder)
  } catch (cause) {
    throw cannotWrite(folder, cause)
  }
  const found = await stat(folder)
  if (!found.isDirectory()) throw new InvalidArgument(`${folder} is a file; name a folder for the project`)
}

/**
 * Creates a folder and those above it. The `recursive` of Node.js never returns in a place where the system creates
 * nothing, such as /proc.
 */
async function makeFolders(folder: string): Promise<void> {
  const make = () =>
    mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  await make().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' || dirname(folder) === folder) throw error
    await makeFolders(dirname(folder))
    await make()
  })
}

async function findExisting(folder: string, files: readonly ProjectFile[]): Promise<string[]> {
  const found = await Promise.all(
    files.map(async ({ path }) => {
      const stats = await lstat(join(folder, path)).catch(() => undefined)
      if (stats?.isDirectory()) throw new InvalidArgument(`${join(folder, path)} is a folder: move it, or name another`)
      return stats ? [path] : []
    }),
  )
  return found.flat()
}

function inTheWay(folder: string, paths: readonly string[]): InvalidArgument {
  const [are, them] = paths.length === 1 ? ['exists', 'it'] : ['exist', 'them']
  return new InvalidArgument(
    `in ${folder}, ${paths.join(', ')} ${are}, and nothing was written: name another folder, as in jobboard init my-jobs, or replace ${them} with --force`,
  )
}

function cannotWrite(path: string, cause: unknown): JobboardError {
  const { code } = cause as NodeJS.ErrnoException
  return new JobboardError(`cannot write ${path}: ${code}; name a folder that you can write to`, { cause })
}
