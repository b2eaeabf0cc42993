/**
 * Trust in files that decide which code is run: the file must belong to this user or root, and no other user may be
 * able to write to it or replace it. On a system without users there is nothing to compare, and everything is trusted.
 */
import type { Stats } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const WRITABLE_BY_GROUP = 0o020
const WRITABLE_BY_OTHERS = 0o002
/** The mode bit with which only the owner of an entry can remove or replace it. */
const STICKY = 0o1000

/** Returns why a file is not trusted, as words that follow its name; undefined if it is trusted. */
export async function findFileDistrust(file: Stats): Promise<string | undefined> {
  if (isOwnedByOthers(file.uid)) return 'belongs to another user'
  return (await isWritableByOthers(file)) ? 'can be written by other users' : undefined
}

/** Returns why a folder's content is not trusted, as words that follow its name; undefined if it is trusted. */
export async function findFolderDistrust(folder: string): Promise<string | undefined> {
  const stats = await stat(folder)
  if (isOwnedByOthers(stats.uid)) return 'belongs to another user'
  if ((stats.mode & STICKY) !== 0) return undefined
  return (await isWritableByOthers(stats)) ? 'can be written by other users' : undefined
}

/** Returns which of a file and its folder is not trusted, and why, as a sentence; undefined if both are trusted. */
export async function findModuleDistrust(path: string): Promise<string | undefined> {
  const file = await realpath(path)
  const ofFile = await findFileDistrust(await stat(file))
  if (ofFile !== undefined) return `${file} ${ofFile}`
  const folder = dirname(file)
  const ofFolder = await findFolderDistrust(folder)
  return ofFolder === undefined ? undefined : `${folder} ${ofFolder}`
}

export function isOwnedByOthers(owner: number): boolean {
  const own = process.getuid?.()
  return own !== undefined && owner !== own && owner !== 0
}

async function isWritableByOthers({ mode, gid }: Stats): Promise<boolean> {
  if (process.getuid === undefined) return false
  if ((mode & WRITABLE_BY_OTHERS) !== 0) return true
  return (mode & WRITABLE_BY_GROUP) !== 0 && !(await isOwnGroup(gid))
}

/**
 * Returns whether only this user and root are in the group. Many systems give each user such a group, with a umask that
 * lets the group write. A group that is not in the files of this machine is unknown, and not trusted.
 */
async function isOwnGroup(gid: number): Promise<boolean> {
  const [groups, users] = await Promise.all([parseEntries('/etc/group'), parseEntries('/etc/passwd')])
  const ids = new Map(users.map(([name = '', , uid]) => [name, Number(uid)]))
  const group = groups.find(([, , id]) => id !== '' && Number(id) === gid)
  if (!group || ![...ids.values()].includes(Number(process.getuid?.()))) return false
  const listed = (group[3] ?? '').split(',').filter((name) => name !== '')
  const primary = users.filter((user) => Number(user[3]) === gid).map(([name = '']) => name)
  return [...listed, ...primary].every((name) => !isOwnedByOthers(ids.get(name) ?? -1))
}

async function parseEntries(file: string): Promise<string[][]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').map((line) => line.split(':'))
}
