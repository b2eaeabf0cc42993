/** The rights of a request: the levels, and the functions that grant them. */
import { InvalidArgument } from '../../core/errors.ts'
import { LEVELS, type Level } from '../wire/session.ts'

/** The person who sends a request, with the rights that were granted. */
export interface Access {
  /** The name for reasons and the log. */
  readonly who: string
  /** `read`: look. `operate`: cancel, restore, release, post, run schedules, stop and resume limits. `admin`: pause the board, purge, set limits. */
  readonly level: Level
  /** Whether stores and results are shown; false by default. */
  readonly values?: boolean
}

/** The client of a request. */
export interface Client {
  /** The address of the peer, which is that of a proxy where there is one. */
  readonly address: string | undefined
}

/** Returns the rights of a request; undefined refuses it with 401. */
export type Authorize = (request: Request, client: Client) => Access | undefined | Promise<Access | undefined>

/** A way to authenticate that also answers requests that sign in. */
export interface Authenticator {
  readonly authorize: Authorize
  /** Answers a request that signs in; undefined for others. `mount` is the path of the dashboard, with its slash. */
  readonly signIn?: (request: Request, mount: string) => Response | undefined
  /** The value of `WWW-Authenticate` in refusals. */
  readonly challenge?: string
  /** What people who are refused can do. */
  readonly advice?: string
}

const MAX_WHO = 200

/** Checks what `authorize` returned. @throws InvalidArgument */
export function checkAccess(access: unknown): Required<Access> | undefined {
  if (access === undefined || access === null) return undefined
  const { who, level, values = false }: { who?: unknown; level?: unknown; values?: unknown } = Object(access)
  if (typeof who !== 'string' || who === '')
    throw new InvalidArgument('authorize must return { who, level }: who is the name of the person')
  const known = LEVELS.find((one) => one === level)
  if (!known) throw new InvalidArgument(`authorize must return a level: ${LEVELS.join(', ')}`)
  // The name goes into reasons and log lines.
  return { who: cleanName(who).slice(0, MAX_WHO), level: known, values: values === true }
}

/** Returns the name without characters that change how a line is shown. */
function cleanName(who: string): string {
  return who.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
}

/** Returns whether a level includes another. */
export function includesLevel(level: Level, needed: Level): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(needed)
}
