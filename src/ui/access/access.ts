/** The rights of a request: the levels, and the functions that grant them. */
import { InvalidArgument } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { cutText } from '../../core/texts.ts'
import { LEVELS, type Level } from '../wire/session.ts'

/** The person who sends a request, with the rights that were granted. */
export interface Access {
  /** The name for reasons and the log. */
  readonly who: string
  /** `read`: look. `operate`: cancel, restore, release, post, run schedules, stop and resume limits. `admin`: pause the board, purge, set limits. */
  readonly level: Level
  /** Whether stores and results are shown; false by default. */
  readonly values?: boolean
  /** The levels by the names of the boards, in place of `level`; other boards are not shown. By default, `level` is for all boards. */
  readonly boards?: Readonly<Record<string, Level>>
}

/** The checked access. */
export type CheckedAccess = Required<Omit<Access, 'boards'>> & Pick<Access, 'boards'>

/** The client of a request. */
export interface Client {
  /** The address of the peer: of the proxy, where there is one. */
  readonly address: string | undefined
  /** The log of the dashboard. */
  readonly log?: Logger
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
export function checkAccess(access: unknown): CheckedAccess | undefined {
  if (access === undefined || access === null) return undefined
  const { who, level, values = false, boards }: { readonly [K in keyof Access]: unknown } = Object(access)
  if (typeof who !== 'string' || who === '')
    throw new InvalidArgument('authorize must return { who, level }: who is the name of the person')
  const levels =
    boards === undefined ? undefined : Object.entries(Object(boards)).map(([name, each]) => [name, toLevel(each)])
  return {
    // The name goes into reasons and log lines.
    who: cutText(cleanName(who), MAX_WHO),
    level: toLevel(level),
    values: values === true,
    ...(levels && { boards: Object.fromEntries(levels) }),
  }
}

/** Returns the value if it is a level. @throws InvalidArgument */
function toLevel(level: unknown): Level {
  const known = LEVELS.find((one) => one === level)
  if (known) return known
  throw new InvalidArgument(`authorize must return a level: ${LEVELS.join(', ')}`)
}

/** Returns the level of a person on a board; undefined if the board is not shown to them. */
export function levelOn({ level, boards }: Pick<Access, 'level' | 'boards'>, board: string): Level | undefined {
  if (!boards) return level
  return Object.hasOwn(boards, board) ? boards[board] : undefined
}

/** Returns the name without characters that change how a line is shown. */
export function cleanName(who: string): string {
  return who.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
}

/** Returns whether a level includes another. */
export function includesLevel(level: Level, needed: Level): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(needed)
}
