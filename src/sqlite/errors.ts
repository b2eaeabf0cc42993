/** Errors of SQLite as errors of this library. */
import {
  AccessDenied,
  isError,
  JobboardError,
  messageOf,
  NotConnected,
  StorageFailure,
  WritesRefused,
} from '../core/errors.ts'

/** The primary result codes of SQLite that have an error of their own here. */
const CODES = {
  PERM: 3,
  BUSY: 5,
  LOCKED: 6,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  PROTOCOL: 15,
  NOTADB: 26,
} as const

/** The codes of the operating system that mean the same, for the files beside the database. */
const SYSTEM_CODES: Readonly<Record<string, number>> = {
  EACCES: CODES.PERM,
  EPERM: CODES.PERM,
  ENOENT: CODES.CANTOPEN,
  ENOTDIR: CODES.CANTOPEN,
  EISDIR: CODES.CANTOPEN,
  EROFS: CODES.READONLY,
  ENOSPC: CODES.FULL,
  EDQUOT: CODES.FULL,
  EMFILE: CODES.IOERR,
  ENFILE: CODES.IOERR,
}

/** Returns the primary result code of an error of SQLite; undefined for other errors. */
function primaryCode(error: unknown): number | undefined {
  const { errcode } = Object(error) as { readonly errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

/** The code of SQLite for a file of shared memory that cannot grow. */
const IOERR_SHMSIZE = 4_874

/** Returns whether there was no room for one of the files beside the database, which SQLite reports in another way. */
function isFull(error: unknown): boolean {
  return Object(error).errcode === IOERR_SHMSIZE
}

/** A refusal because another connection reads or writes at this moment, where SQLite answers with a row in place of an error. */
export class BusyError extends Error {
  readonly errcode = CODES.BUSY
}

/** Returns whether a statement was refused only because another connection writes, or recovers the file, at this moment. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error)
  return code === CODES.BUSY || code === CODES.LOCKED || code === CODES.PROTOCOL
}

/**
 * Converts an error of SQLite. Other errors are returned as they are.
 *
 * | SQLite | error | what to do |
 * |---|---|---|
 * | FULL | WritesRefused | free disk space: the call may be repeated |
 * | READONLY, PERM, CANTOPEN | AccessDenied | give this user access to the file and its folder |
 * | CORRUPT, NOTADB | StorageFailure | restore the file |
 * | IOERR | StorageFailure | look at the disk, and restart the process |
 * | BUSY, LOCKED, PROTOCOL | NotConnected | the call may be repeated |
 * | others | StorageFailure | it is a defect, or another program has changed the tables |
 */
export function toFileError(error: unknown, file: string): unknown {
  if (error instanceof JobboardError || !isError(error)) return error
  const code = isFull(error)
    ? CODES.FULL
    : (primaryCode(error) ?? SYSTEM_CODES[String((error as NodeJS.ErrnoException).code)])
  const options = { cause: error }
  switch (code) {
    case undefined:
      return error
    case CODES.FULL:
      return new WritesRefused(`${file}: the disk is full; free space, nothing was changed`, options)
    case CODES.READONLY:
    case CODES.PERM:
    case CODES.CANTOPEN:
      return new AccessDenied(
        `${file}: this user cannot write to the file or its folder (${error.message}); change their owner or mode`,
        options,
      )
    case CODES.CORRUPT:
      return new StorageFailure(`${file} is damaged (${error.message}); restore it from a backup`, options)
    case CODES.NOTADB:
      return new StorageFailure(`${file} is not an SQLite database; name another file, or restore this one`, options)
    case CODES.BUSY:
    case CODES.LOCKED:
    case CODES.PROTOCOL:
      return new NotConnected(`${file}: ${messageOf(error)}; try again`, options)
    case CODES.IOERR:
      return new StorageFailure(
        `${file} cannot be read or written (${error.message}); look at its disk, and restart this process`,
        options,
      )
    default:
      return new StorageFailure(`${file}: ${messageOf(error)}`, options)
  }
}
