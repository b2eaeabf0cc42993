/** File operations, and the meaning of their errors. */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { access, chmod, type FileHandle, link, mkdir, open, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isError, StorageFailure } from '../../core/errors.ts'

/**
 * The errors of the record or its name, which are permanent. All others concern the disk or the machine: another try
 * may succeed, and no job is charged.
 */
const FINAL_CODES: ReadonlySet<string> = new Set('ENAMETOOLONG EFBIG EINVAL EISDIR ENOTDIR ELOOP'.split(' '))

/** Returns `ENOENT` and the like; undefined for every error that is not the file system's. */
export function toErrno(error: unknown): string | undefined {
  const code = isError(error) ? (error as { code?: unknown }).code : undefined
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined
}

/** Returns the file system's error as an error that names the operation; any other error is returned as it is. */
export function toStorageFailure(error: unknown, doing: string): unknown {
  const code = toErrno(error)
  if (!isError(error) || code === undefined) return error
  return new StorageFailure(`cannot ${doing}: ${error.message}`, { cause: error, retryable: !FINAL_CODES.has(code) })
}

export async function translateErrors<T>(doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw toStorageFailure(error, doing)
  }
}

/** Resolves to the result, or to undefined where the file or folder is missing. */
export async function missingAsUndefined<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (toErrno(error) === 'ENOENT') return undefined
    throw error
  }
}

export async function exists(path: string): Promise<boolean> {
  return (await missingAsUndefined(access(path).then(() => true))) ?? false
}

/**
 * The limit of attempts. An attempt fails only because another process destroys the book, so more than a few mean
 * another fault.
 */
const MAX_ATTEMPTS = 20

/** Repeats the work when a folder vanished during it, or was about to: its book was destroyed, and is created again. */
export async function retryIfDestroyed<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!GONE_CODES.has(toErrno(error) ?? '') || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

const GONE_CODES: ReadonlySet<string> = new Set(['ENOENT', 'EEXIST'])

/** A folder that stays open, even if its name changes. */
export interface OpenFolder {
  /** A path to this very folder, also when it was moved away and another one has its name. */
  readonly path: string
  /** Throws ENOENT when the name leads to another folder, or to none. */
  assertInPlace(): Promise<void>
}

/**
 * Works in one folder from beginning to end. A book can be destroyed, which moves its folder away, and created again
 * under the same name: by names alone, a slow process would then remove or link files in the new folder that it means
 * for the old one.
 *
 * Linux names an open folder by its descriptor. On other systems the name must suffice, and such a process must not be
 * that slow.
 */
export async function inFolder<T>(path: string, work: (folder: OpenFolder) => Promise<T>): Promise<T> {
  const handle = await open(path, 'r')
  const opened = `/proc/self/fd/${handle.fd}`
  try {
    const own = process.platform === 'linux' && (await exists(opened)) ? opened : path
    const assertInPlace = async () => {
      const [held, current] = await Promise.all([handle.stat({ bigint: true }), stat(path, { bigint: true })])
      if (held.ino === current.ino && held.dev === current.dev) return
      throw Object.assign(new Error(`ENOENT: ${path} was destroyed meanwhile`), { code: 'ENOENT' })
    }
    return await work({ path: own, assertInPlace })
  } catch (error) {
    // The message shows the folder's real name.
    if (isError(error)) error.message = error.message.replace(new RegExp(`${opened}(?!\\d)`, 'g'), () => path)
    throw error
  } finally {
    await handle.close()
  }
}

/**
 * Reads a file that this library has written; undefined where it is missing. It is opened without following a link and
 * without waiting: a FIFO would never open, a link to `/dev/zero` would never end, and any other link could show the
 * reader a file of another user.
 *
 * @throws StorageFailure when it is not a regular file
 */
export async function readIfPresent(path: string): Promise<Buffer | undefined> {
  const file = await missingAsUndefined(openRegular(path))
  if (!file) return undefined
  try {
    if (!(await file.stat()).isFile()) throw notRegular(path)
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** The flags of `open`; some systems do not have all of them. */
const READ_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

async function openRegular(path: string): Promise<FileHandle> {
  try {
    return await open(path, READ_FLAGS)
  } catch (error) {
    if (!IRREGULAR.has(toErrno(error) ?? '')) throw error
    // A link to nothing is ENOENT; callers that read the file repeatedly report it.
    await access(path)
    throw notRegular(path, error)
  }
}

/** The errors of `open` for a link (FreeBSD: EMLINK), and for a socket or a device without a driver. */
const IRREGULAR: ReadonlySet<string> = new Set(['ELOOP', 'EMLINK', 'ENXIO', 'EOPNOTSUPP', 'ENODEV'])

function notRegular(path: string, cause?: unknown): StorageFailure {
  const why = 'it is a link, a folder or a device, not a regular file'
  return new StorageFailure(`${path} is damaged: ${why}; remove it`, { cause, retryable: false })
}

/**
 * Creates a folder in an existing parent, unless it exists; resolves to whether it was created. It is for this user
 * alone, or also for the group when `shared` is true: by default, when the group may write to the parent.
 */
export async function createFolder(path: string, options: { shared?: boolean } = {}): Promise<boolean> {
  try {
    const shared = options.shared ?? (await isShared(dirname(path)))
    await mkdir(path, PRIVATE_FOLDER_MODE)
    if (shared) await chmod(path, SHARED_FOLDER_MODE)
    return true
  } catch (error) {
    const existing = toErrno(error) === 'EEXIST' ? await missingAsUndefined(stat(path)) : undefined
    if (existing?.isDirectory()) return false
    throw error
  }
}

/** The modes of private files: they contain results and failures, which other users of the machine must not read. */
const PRIVATE_FOLDER_MODE = 0o700
const PRIVATE_FILE_MODE = 0o600
/**
 * The mode of a shared folder, with the setgid bit: new files get the folder's group, not the creator's primary one.
 */
const SHARED_FOLDER_MODE = 0o2770
const SHARED_FILE_MODE = 0o660
const GROUP_WRITE_BIT = 0o020
const OTHERS_WRITE_BIT = 0o002

/**
 * Returns whether the folder's group may write there, and so must be able to read and write new files in it. A folder
 * in which all users may write, such as `/tmp`, does not count as shared with a group.
 */
export async function isShared(folder: string): Promise<boolean> {
  const { mode } = await stat(folder)
  return (mode & (GROUP_WRITE_BIT | OTHERS_WRITE_BIT)) === GROUP_WRITE_BIT
}

/** Creates an empty file with a new name, readable for the users who may write in its folder. */
export async function createFile(path: string): Promise<FileHandle> {
  const shared = await isShared(dirname(path))
  const file = await open(path, 'wx', PRIVATE_FILE_MODE)
  // The mode of `open` would be reduced by the umask.
  if (shared) await file.chmod(SHARED_FILE_MODE)
  return file
}

/**
 * Creates a file with all its content in one step, unless one of that name exists. The entry in its folder is durable
 * after {@link syncFolder}.
 *
 * @param options.durable whether the content must be on disk before the name is: a name without its content would be
 * damage
 * @returns the open file, or undefined when the name was taken
 */
export async function publish(
  path: string,
  bytes: Uint8Array,
  options: { durable?: boolean } = {},
): Promise<FileHandle | undefined> {
  const temporary = `${path}.${randomUUID()}.tmp`
  const file = await createFile(temporary)
  try {
    await writeAll(file, bytes, 0)
    if (options.durable) await file.datasync()
    await link(temporary, path)
    return file
  } catch (error) {
    await file.close()
    if (toErrno(error) === 'EEXIST') return undefined
    throw error
  } finally {
    await missingAsUndefined(unlink(temporary))
  }
}

/**
 * Checks whether files can have several names here, without which no run could take over from another.
 *
 * @throws StorageFailure when they cannot
 */
export async function assertHardLinks(folder: string): Promise<void> {
  const probe = join(folder, `.links.${randomUUID()}`)
  try {
    await (await publish(probe, new Uint8Array()))?.close()
  } catch (error) {
    if (!NO_LINK_CODES.has(toErrno(error) ?? '')) throw error
    throw new StorageFailure(
      `cannot keep logbooks in ${folder}: its file system has no hard links; name a folder on another file system`,
      {
        cause: error,
      },
    )
  } finally {
    await missingAsUndefined(unlink(probe))
  }
}

/** The errors of `link` on file systems without hard links. */
const NO_LINK_CODES: ReadonlySet<string> = new Set('EPERM ENOTSUP EOPNOTSUPP ENOSYS EMLINK'.split(' '))

/** Writes all bytes: one `write` may take fewer bytes than it is given, for example when the disk is nearly full. */
export async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}

/** Makes the names in these folders durable. It is cheap for a folder in which nothing has changed. */
export async function syncFolders(folders: readonly string[]): Promise<void> {
  await Promise.all(folders.map(syncFolder))
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
