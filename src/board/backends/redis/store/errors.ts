/** Translates errors of Redis into errors of this library. */
import { AccessDenied, isError, NotConnected, WritesRefused } from '../../../../core/errors.ts'
import type { RedisLocation } from './location.ts'

/**
 * The kinds of errors that a server returns:
 *
 * - `denied`: other credentials, or more rights, are needed
 * - `refused`: the server accepts no writes now; nothing was changed
 * - `away`: this connection cannot be used (it leads to a replica or to a server that is loading); another one may work
 * - `forgotten`: the server does not know the script, or no longer knows it
 * - `odd`: any other error, which a retry does not solve
 */
export type RedisErrorKind = 'denied' | 'refused' | 'away' | 'forgotten' | 'odd'

/** The text with which servers from 7 on refuse a command within a script; older servers write NOPERM. */
const WITHIN_SCRIPT = 'The user executing the script'

const ERROR_KINDS: readonly (readonly [RedisErrorKind, readonly string[]])[] = [
  ['denied', ['NOAUTH', 'WRONGPASS', 'NOPERM', WITHIN_SCRIPT]],
  ['refused', ['OOM', 'MISCONF', 'NOREPLICAS']],
  ['away', ['READONLY', 'LOADING', 'MASTERDOWN', 'CLUSTERDOWN', 'MOVED', 'ASK', 'TRYAGAIN', 'BUSY']],
  ['forgotten', ['NOSCRIPT']],
]

/** Returns the kind of an error; undefined if it is not an answer of a server, because the connection broke. */
export function toErrorKind(error: unknown): RedisErrorKind | undefined {
  if (!isError(error)) return undefined
  // Servers before 7 wrap the error of a command within a script.
  const found = ERROR_KINDS.find(([, words]) =>
    words.some((word) => new RegExp(`(^|[\\s-])${word}\\b`).test(error.message)),
  )
  if (found) return found[0]
  return error.name === 'ReplyError' ? 'odd' : undefined
}

const ERROR_ADVICE: readonly (readonly [word: string, advice: string])[] = [
  ['OOM', 'its memory is full: raise maxmemory, or wait until jobs are done (jobs can still be settled)'],
  ['MISCONF', 'it cannot write its snapshots to disk: free disk space, or see its log'],
  ['NOREPLICAS', 'too few replicas are connected (min-replicas-to-write)'],
]

/** Returns the error for refused writes. @param what names the operation, for the message */
export function writesRefusedError(what: string, cause: Error): WritesRefused {
  const advice = ERROR_ADVICE.find(([word]) => cause.message.includes(word))?.[1] ?? 'see its log'
  return new WritesRefused(`${what}: Redis accepts no writes now, ${advice}; nothing was changed`, { cause })
}

/** The board, and the credentials that were given, for the errors of its requests. */
type AskedBoard = Pick<RedisLocation, 'uri' | 'credentials'>

export function accessDeniedError({ uri, credentials }: AskedBoard, cause: Error): AccessDenied {
  const lacksRight = ['NOPERM', WITHIN_SCRIPT].some((words) => cause.message.includes(words))
  const what = lacksRight
    ? 'the user lacks a right: a board needs scripts (EVALSHA, EVAL) and the commands within them, SUBSCRIBE, INFO, and all keys and channels of its prefix'
    : credentials
      ? 'the server does not accept the credentials that were given'
      : 'the server requires credentials; write user:password@ before the host'
  return new AccessDenied(`${uri}: ${what}`, { cause })
}

export function notConnectedError(what: string, cause?: unknown): NotConnected {
  const why = isError(cause) ? ` (${cause.message})` : ''
  return new NotConnected(`${what}: no connection to Redis${why}; nothing was done, try again`, { cause })
}

/** Throws the error of a request that failed: what the server has answered, or NotConnected. */
export function throwRequestError(error: unknown, board: AskedBoard): never {
  const kind = toErrorKind(error)
  if (kind === 'denied' && isError(error)) throw accessDeniedError(board, error)
  if (kind === 'odd' || kind === 'refused') throw error
  throw notConnectedError(board.uri, error)
}

/** Returns the error of a request whose session ended before its answer. */
export function sessionOverError(uri: string): NotConnected {
  return notConnectedError(uri, new Error('the session is over'))
}
