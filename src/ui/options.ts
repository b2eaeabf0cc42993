/** The options of a dashboard, and their checks. */
import type { JobBoard } from '../board/index.ts'
import { isBoard } from '../board/internal.ts'
import { InvalidArgument } from '../core/errors.ts'
import { assertLogger, type Logger, silentLog } from '../core/log.ts'
import { assertOptions } from '../core/options.ts'
import { Redactor } from '../core/redaction.ts'
import type { Persistence } from '../persistence/index.ts'
import type { Access, Authenticator, Authorize } from './access/access.ts'
import { AllowedHosts } from './access/hosts.ts'
import { localAccess } from './access/local.ts'
import type { WireFinding } from './wire/board.ts'

/** A board with its logbooks. */
export interface DashboardBoard {
  readonly board: JobBoard
  /** The logbooks of its jobs; by default those of the dashboard. */
  readonly persistence?: Persistence
}

export interface DashboardOptions {
  /** An open board, which the dashboard names `main`. The caller closes it. */
  readonly board?: JobBoard
  /** Several open boards by their names. */
  readonly boards?: Readonly<Record<string, JobBoard | DashboardBoard>>
  /** The logbooks, opened by `openPersistence`; without them a job is shown without its tasks. */
  readonly persistence?: Persistence
  /**
   * Returns the person and their rights; undefined refuses the request. Without it, every program of this machine may do everything: requests
   * of other addresses, of proxies, and of clients whose address is not known are refused.
   */
  readonly authorize?: Authorize | Authenticator
  /** Whether the server refuses all changes, for all users; false by default. */
  readonly readOnly?: boolean
  /** The host names under which the dashboard answers, in addition to those of this machine, without ports; `*` allows all. */
  readonly allowedHosts?: readonly string[]
  /** The path of the mount, as in `/ops/jobs`. By default it is the mount of Express, or is derived from the first requests. */
  readonly base?: string
  /** Origins that may show the dashboard in a frame; none by default. */
  readonly frameAncestors?: readonly string[]
  /** Names of keys whose values are never shown, as in `['password']`. */
  readonly redact?: readonly string[]
  /** A pino logger; it receives a line for each change that somebody asks for. */
  readonly log?: Logger
  /** Examines a board, for the page of the doctor. `jobboard ui` has it. */
  readonly examine?: (board: { readonly name: string; readonly board: JobBoard }) => Promise<readonly WireFinding[]>
}

export interface DashboardSettings {
  readonly boards: readonly (DashboardBoard & { readonly name: string })[]
  readonly authenticator: Authenticator
  readonly readOnly: boolean
  readonly hosts: AllowedHosts
  readonly base: string | undefined
  readonly frameAncestors: readonly string[] | undefined
  readonly redaction: Redactor
  readonly log: Logger
  readonly examine: DashboardOptions['examine']
}

/** The name of a single board. */
const ONLY_BOARD = 'main'
const EVERYTHING: Access = { who: 'local', level: 'admin', values: true }

/** Checks the options, and returns the settings. @throws InvalidArgument */
export function dashboardSettings(options: DashboardOptions): DashboardSettings {
  assertOptions<DashboardOptions>(
    options,
    {
      ...({
        board: true,
        boards: true,
        persistence: true,
        authorize: true,
        readOnly: true,
        allowedHosts: true,
      } as const),
      ...({ base: true, frameAncestors: true, redact: true, log: true, examine: true } as const),
    },
    'dashboard',
  )
  const {
    authorize,
    readOnly = false,
    allowedHosts,
    base,
    frameAncestors,
    redact = [],
    log = silentLog,
    examine,
  } = options
  if (authorize === undefined && allowedHosts !== undefined && allowedHosts.length > 0)
    throw new InvalidArgument(
      'dashboard: allowedHosts without authorize would let everybody who reaches it do everything: add authorize, as in authorize: (request) => ({ who, level })',
    )
  if (base !== undefined && !/^(\/[\w.~%-]+)*\/?$/.test(base))
    throw new InvalidArgument(`dashboard: base must be a path such as /ops/jobs, got '${base}'`)
  for (const origin of frameAncestors ?? [])
    if (!/^('self'|https?:\/\/[\w.:*-]+)$/.test(origin))
      throw new InvalidArgument(
        `dashboard: frameAncestors must be origins such as https://portal.example.com, got '${origin}'`,
      )
  assertLogger(log)
  return {
    boards: toBoards(options),
    authenticator: toAuthenticator(authorize),
    readOnly,
    hosts: new AllowedHosts(allowedHosts),
    base: base?.replace(/\/$/, ''),
    frameAncestors,
    redaction: new Redactor(redact),
    ...{ log, examine },
  }
}

/** Returns the authenticator of the options. @throws InvalidArgument */
function toAuthenticator(authorize: DashboardOptions['authorize']): Authenticator {
  if (authorize === undefined) return localAccess(EVERYTHING)
  if (typeof authorize === 'function') return { authorize }
  if (typeof Object(authorize).authorize === 'function') return authorize
  throw new InvalidArgument('dashboard: authorize must be a function that returns { who, level } or undefined')
}

/** Returns the boards of the options with their names. @throws InvalidArgument */
function toBoards({ board, boards, persistence }: DashboardOptions): DashboardSettings['boards'] {
  if ((board === undefined) === (boards === undefined))
    throw new InvalidArgument('dashboard needs board, or boards, as in { board: await openBoard(uri) }')
  const named = Object.entries(boards ?? { [ONLY_BOARD]: board as JobBoard })
  if (named.length === 0) throw new InvalidArgument('dashboard: boards is empty')
  return named.map(([name, given]) => {
    const { board: inside, persistence: own = persistence }: DashboardBoard =
      'board' in given ? given : { board: given }
    if (!/^[\w.~ -]{1,100}$/.test(name) || /^\.+$/.test(name))
      throw new InvalidArgument(
        `dashboard: the name of a board has letters, digits, '-', '_', '.' and '~' only, got '${name}'`,
      )
    if (!isBoard(inside))
      throw new InvalidArgument(`dashboard: board ${name} must be an open board, as openBoard returns it`)
    return { name, board: inside, ...(own ? { persistence: own } : {}) }
  })
}
