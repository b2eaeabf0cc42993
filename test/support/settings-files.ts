/** What a server's settings name of this machine's files, for a container that has none of them. */
import { readFile } from 'node:fs/promises'
import { isAbsolute } from 'node:path'

/** Returns the contents of the files whose absolute paths are values of settings, by path; other values are no files. */
export async function contentsOf(settings: Readonly<Record<string, unknown>>): Promise<Record<string, string>> {
  const paths = Object.values(settings).filter((value) => typeof value === 'string' && isAbsolute(value))
  const read = async (path: string) => [path, await readFile(path, 'utf8').catch(() => undefined)] as const
  const files = await Promise.all(paths.map((path) => read(String(path))))
  return Object.fromEntries(files.flatMap(([path, content]) => (content === undefined ? [] : [[path, content]])))
}
