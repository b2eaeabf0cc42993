/** The board of `jobboard dev`: a file in the folder of the project, which is kept between starts. */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { InvalidArgument, messageOf } from '../../core/errors.ts'
import { isInUse } from '../../sqlite/index.ts'

/** The path of the file, relative to the folder of the project. */
const FILE = '.jobboard/jobs.db'

export interface LocalBoard {
  /** The URI of the board, and of the logbooks. */
  readonly uri: string
  /** The path of the file. */
  readonly file: string
}

/**
 * Prepares the folder of the file, which Git ignores.
 *
 * @param options.fresh whether a file that is there is deleted
 * @throws InvalidArgument for a file that is to be deleted while a process uses it, and for a folder that cannot be written to
 */
export function prepareLocalBoard({ cwd, fresh }: { readonly cwd: string; readonly fresh: boolean }): LocalBoard {
  const file = join(cwd, FILE)
  const folder = dirname(file)
  if (fresh) deleteFile(file)
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, '.gitignore'), '*\n')
  } catch (cause) {
    throw new InvalidArgument(`cannot write to ${folder}: ${messageOf(cause)}; change to another folder`, { cause })
  }
  return { uri: `sqlite:${pathToFileURL(file).pathname}`, file }
}

function deleteFile(file: string): void {
  if (!existsSync(file)) return
  if (isInUse(file))
    throw new InvalidArgument(`--fresh: another process uses ${file}; stop it, or start without --fresh`)
  const folder = dirname(file)
  const name = basename(file)
  for (const each of readdirSync(folder))
    if (each === name || each.startsWith(`${name}-`)) rmSync(join(folder, each), { force: true })
}
