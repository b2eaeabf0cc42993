/** The access to the files beside a database: every user of the database has it, as for SQLite's own files. */
import { chmodSync, chownSync, statSync } from 'node:fs'

/** Gives a new file the mode and the group of another one. Does nothing where this user may not: then only this user's processes can use it. */
export function shareAccess(path: string, { like }: { readonly like: string }): void {
  const { mode, gid, uid } = statSync(like)
  try {
    chownSync(path, process.getuid?.() === 0 ? uid : -1, gid)
  } catch {
    // The user is not in the group of the file.
  }
  try {
    chmodSync(path, mode & 0o666)
  } catch {
    // Another user has made the file.
  }
}
