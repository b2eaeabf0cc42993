/** What a Redis says when it does not do what it is asked, in this library's words. */
import { AccessDenied, NotConnected, WritesRefused } from '../../../core/errors.ts'

/**
 * - `denied`: other credentials are needed, or another right
 * - `refused`: it is there, and takes no writes now; nothing was changed
 * - `away`: this connection is of no use (it leads to a replica, to a server that is loading), another may be
 * - `forgotten`: it does not know the script (any more)
 * - `odd`: anything else, which is a mistake of somebody's
 */
export type RedisErrorKind = 'denied' | 'refused' | 'away' | 'forgotten' | 'odd'

/** What servers from 7 on say of a command within a script, where others say NOPERM. */
const WITHIN_SCRIPT = 'The user executing the script'

const ERROR_KINDS: readonly (readonly [RedisErrorKind, readonly string[]])[] = [
  ['denied', ['NOAUTH', 'WRONGPASS', 'NOPERM', WITHIN_SCRIPT]],
  ['refused', ['OOM', 'MISCONF', 'NOREPLICAS']],
  ['away', ['READONLY', 'LOADING', 'MASTERDOWN', 'CLUSTERDOWN', 'MOVED', 'ASK', 'TRYAGAIN', 'BUSY']],
  ['forgotten', ['NOSCRIPT']],
]

/** Undefined for what is no answer of a server: the connection broke. */
export function toErrorKind(error: unknown): RedisErrorKind | undefined {
  if (!(error instanceof Error)) return undefined
  // Servers before 7 wrap what a command within a script is answered.
  const found = ERROR_KINDS.find(([, words]) =>
    words.some((word) => new RegExp(`(^|[\\s-])${word}\\b`).test(error.message)),
  )
  if (found) return found[0]
  return error.name === 'ReplyError' ? 'odd' : undefined
}

const ERROR_ADVICE: readonly (readonly [word: string, advice: string])[] = [
  ['OOM', 'its memory is full: raise maxmemory, or let jobs be done (settling goes on)'],
  ['MISCONF', 'it cannot write its snapshots to disk: make room there, or see its log'],
  ['NOREPLICAS', 'too few replicas are with it (min-replicas-to-write)'],
]

/** @param what was asked, for the message */
export function writesRefusedError(what: string, cause: Error): WritesRefused {
  const advice = ERROR_ADVICE.find(([word]) => cause.message.includes(word))?.[1] ?? 'see its log'
  return new WritesRefused(`${what}: Redis takes no writes now, ${advice}; nothing was changed`, { cause })
}

export function accessDeniedError(uri: string, cause: Error, options: { readonly given: boolean }): AccessDenied {
  const who = options.given ? 'the credentials that were given' : 'nobody without credentials'
  const lacksRight = ['NOPERM', WITHIN_SCRIPT].some((words) => cause.message.includes(words))
  const what = lacksRight
    ? 'the user lacks a right: a board takes scripts (EVALSHA, EVAL) and what they do, SUBSCRIBE, INFO, and all keys and channels of its prefix'
    : options.given
      ? `it does not accept ${who}`
      : `it accepts ${who}; write user:password@ before the host`
  return new AccessDenied(`${uri}: ${what}`, { cause })
}

export function notConnectedError(what: string, cause?: unknown): NotConnected {
  const why = cause instanceof Error ? ` (${cause.message})` : ''
  return new NotConnected(`${what}: there is no connection to Redis${why}; nothing was done, try again`, { cause })
}
