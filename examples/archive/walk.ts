/** Finds all files below a folder. Names are bytes: a file's name need not be UTF-8. */
import type { Dirent } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { relative } from 'node:path'

export interface Found {
  /** The path relative to the folder. */
  readonly path: Buffer
  /** The kind; `folder` for one that cannot be listed. */
  readonly kind: 'file' | 'folder' | LeftOut
  /** The reason why it cannot be listed. */
  readonly reason?: string
}

type LeftOut = 'link' | 'pipe' | 'socket' | 'device'

const SLASH = Buffer.from('/')

/**
 * Yields the files of each folder in the order of their names, then the files of its folders. Links are not followed.
 *
 * @param options.except the folders that are skipped
 */
export async function* walk(
  folder: string,
  options: { except: readonly string[] },
): AsyncGenerator<Found, void, undefined> {
  const root = await realpath(folder)
  const except: Buffer[] = []
  for (const folder of options.except) except.push(Buffer.from(relative(root, await realpath(folder))))
  const folders: Buffer[] = [Buffer.alloc(0)]
  for (let path = folders.pop(); path; path = folders.pop()) {
    const entries = await list(root, path)
    if ('reason' in entries) {
      yield { path, kind: 'folder', reason: entries.reason }
      continue
    }
    for (const entry of entries.filter((entry) => !entry.isDirectory())) {
      yield { path: below(path, entry.name), kind: kindOf(entry) }
    }
    const deeper = entries.filter((entry) => entry.isDirectory()).map((entry) => below(path, entry.name))
    folders.push(...deeper.filter((path) => !except.some((skipped) => path.equals(skipped))).reverse())
  }
}

type Entries = readonly Dirent<Buffer>[]

async function list(root: string, path: Buffer): Promise<Entries | { readonly reason: string }> {
  try {
    const absolute = below(Buffer.from(root), path)
    const entries = await readdir(absolute, { withFileTypes: true, encoding: 'buffer' })
    return entries.sort((a, b) => Buffer.compare(a.name, b.name))
  } catch (error) {
    return { reason: error instanceof Error ? error.message.split(', ', 1).join() : String(error) }
  }
}

function below(folder: Buffer, name: Buffer): Buffer {
  return folder.length === 0 ? name : Buffer.concat([folder, SLASH, name])
}

function kindOf(entry: Dirent<Buffer>): 'file' | LeftOut {
  if (entry.isFile()) return 'file'
  if (entry.isSymbolicLink()) return 'link'
  if (entry.isFIFO()) return 'pipe'
  return entry.isSocket() ? 'socket' : 'device'
}
