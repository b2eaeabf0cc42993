/** Opening of boards and logbooks by their URIs, within a time limit. Drivers are loaded here, when they are used. */
import type { JobBoard, OpenBoardOptions } from '../board/index.ts'
import type { BoardSide } from '../board/internal.ts'
import type { ConductorBoard } from '../conductor/index.ts'
import { abortAfter, followSignals } from '../core/async/abort.ts'
import { retry } from '../core/async/retry.ts'
import { InvalidArgument, NotConnected, NotFound } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import type { Duration } from '../core/time.ts'
import { parseUri } from '../core/uri.ts'
import type { Persistence } from '../persistence/index.ts'
import type { AuthInfo } from '../zookeeper/index.ts'
import type { BoardContext, CliContext } from './context.ts'
import type { ChosenBoard } from './input/board-flags.ts'
import { openCodec } from './input/codecs.ts'
import {
  boardUri,
  DEFAULT_TIMEOUT,
  definedOnly,
  parseDuration,
  persistenceUri,
  type SharedOptions,
} from './input/shared-options.ts'
import type { BoardLog } from './output/board-log.ts'
import { reportError } from './output/output.ts'

/** The pause between two attempts to open a board. */
const RETRY_PAUSE_MS = 200

export interface OpenedBoard extends AsyncDisposable {
  readonly board: JobBoard
  /** The errors of postings on the board or in its trash that could not be read, as far as they were read. */
  readonly unreadable: readonly Error[]
}

/**
 * Opens the board that `--board` or JOBBOARD_BOARD names.
 *
 * @throws InvalidArgument if none is named, or if only this process could see it
 * @param settings.create false for a command that only reads, and must not create a board
 * @throws NotFound if a board does not exist and is not created
 * @throws NotConnected naming the servers when `--timeout` is over
 */
export async function openNamedBoard(
  options: SharedOptions,
  context: CliContext,
  settings: Pick<OpenBoardOptions, 'log' | 'who' | 'create' | 'unacceptedAfter' | 'telemetry'> = {},
): Promise<OpenedBoard> {
  const { openBoard } = await import('../board/index.ts')
  const opened = await openWithin(boardUri(options, context), openBoard, { options, context, settings })
  return { board: opened.value, unreadable: opened.unreadable, [Symbol.asyncDispose]: () => opened.value.close() }
}

/** A board to copy, with its backend. */
export interface OpenedSide extends AsyncDisposable, BoardSide {}

/** Opens a board to copy, or as the target of a copy. @throws as {@link openNamedBoard} */
export async function openSideAt(
  uri: string,
  { options, context, create }: Omit<OpenOptions, 'log'>,
): Promise<OpenedSide> {
  const { openSide } = await import('../board/internal.ts')
  const { value } = await openWithin(uri, openSide, { options, context, settings: { create } })
  return { ...value, [Symbol.asyncDispose]: () => value.board.close() }
}

interface OpenWithin {
  readonly options: SharedOptions
  readonly context: CliContext
  readonly settings: Pick<OpenBoardOptions, 'log' | 'who' | 'create' | 'unacceptedAfter' | 'telemetry'>
}

/** Opens a board within `--timeout`. @throws as {@link openNamedBoard} */
async function openWithin<T>(
  uri: string,
  opener: (uri: string, options: OpenBoardOptions) => Promise<T>,
  { options, context, settings }: OpenWithin,
): Promise<{ readonly value: T; readonly unreadable: readonly Error[] }> {
  const { scheme, printable } = parseUri(uri, 'board')
  if (scheme === 'memory') {
    throw new InvalidArgument(
      `board ${printable} would end with this command; name one that is shared, such as zookeeper://127.0.0.1:2181/demo`,
    )
  }
  const timeout = parseDuration(options.timeout ?? DEFAULT_TIMEOUT, '--timeout')
  const { BoardLog } = await import('./output/board-log.ts')
  const log = new BoardLog(settings.log)
  const { log: _log, ...rest } = settings
  const given = { log: log.logger, ...(scheme.startsWith('zookeeper') ? credentials('board', context) : {}), ...rest }
  const open = (signal: AbortSignal) => opener(uri, { signal, ...given })
  return { value: await withTimeout(open, { log, timeout, uri: printable }), unreadable: log.unreadable }
}

/** Returns whether {@link openNamedBoard} would find a named board. */
export function boardIsNamed(options: SharedOptions, { env }: CliContext): boolean {
  return Boolean(options.board || env['JOBBOARD_BOARD'])
}

/**
 * Returns the credentials of the environment, for boards and logbooks whose URI may be visible to all users, like
 * command lines. A config file that was only found may lead to another user's server, so the credentials are not used
 * for its choices, unless it contains `auth` itself.
 */
export function credentials(
  what: 'board' | 'persistence',
  { env, chosenByFile, logbookAuth }: BoardContext,
): { auth?: readonly AuthInfo[] } {
  if (what === 'persistence' && logbookAuth !== undefined) return { auth: toAuth(logbookAuth) }
  const auth = env['JOBBOARD_ZOOKEEPER_AUTH']
  if (!auth || (chosenByFile?.[what] && !chosenByFile.auth)) return {}
  return { auth: toAuth(auth) }
}

/**
 * Returns the context in which one of several boards, and its own logbooks, are opened: with the credentials of its entry in the config file.
 * Every command that takes several boards opens them in it.
 */
export function contextOf<T extends BoardContext>({ auth, persistence }: BoardIdentity, context: T): T {
  if (auth === undefined) return context
  const { chosenByFile, env, logbookAuth } = context
  return {
    ...context,
    env: { ...env, JOBBOARD_ZOOKEEPER_AUTH: auth },
    logbookAuth: persistence === undefined ? (logbookAuth ?? env['JOBBOARD_ZOOKEEPER_AUTH']) : auth,
    ...(chosenByFile && { chosenByFile: { ...chosenByFile, auth: true } }),
  }
}

/** The credentials of one of several boards, and its own logbooks. */
interface BoardIdentity {
  readonly auth?: string | undefined
  readonly persistence?: string | undefined
}

/** @throws InvalidArgument */
function toAuth(auth: string): readonly AuthInfo[] {
  if (/^[^:]+:./s.test(auth)) return [{ scheme: 'digest', auth }]
  throw new InvalidArgument('JOBBOARD_ZOOKEEPER_AUTH must be user:password')
}

/**
 * Opens a board within a time limit. A board itself stops connecting after its session's timeout, which may be sooner;
 * then this function tries again.
 */
async function withTimeout<T>(
  open: (signal: AbortSignal) => Promise<T>,
  { log, timeout, uri }: { log: BoardLog; timeout: Duration; uri: string },
): Promise<T> {
  using time = followSignals([])
  using _timer = abortAfter(time, timeout, (within) => {
    const why = log.noConnection ?? 'no answer in this time'
    const isFile = uri.startsWith('sqlite:')
    const advice = isFile ? 'end the process that holds the file' : 'start a server there, or correct --board'
    return new NotConnected(`cannot open ${uri} within ${within}: ${why}; ${advice}`)
  })
  return await retry(() => open(time.signal), {
    ...{ firstPauseMs: RETRY_PAUSE_MS, maxPauseMs: RETRY_PAUSE_MS, jitter: 'none', signal: time },
    isRetryable: (error) => error instanceof NotConnected && error.retryable,
    onRetry: (error) => {
      if (error instanceof NotConnected) log.noteFailure(error)
    },
  })
}

/** Logbooks to read. */
export interface Logbooks extends AsyncDisposable {
  readonly persistence: Persistence
  /** The URI for people, without credentials. */
  readonly uri: string
}

/**
 * Opens the logbooks that `--persistence` or JOBBOARD_PERSISTENCE names, for reading only; returns undefined if none
 * are named. Reading must not create any: if there are none yet, that is reported on standard error, and they are
 * treated as empty.
 */
export async function openLogbooks(
  options: SharedOptions,
  context: CliContext,
  settings: { missing?: 'complain' | 'throw' } = {},
): Promise<Logbooks | undefined> {
  const uri = persistenceUri(options, context)
  if (uri === undefined) return undefined
  const { scheme, printable } = parseUri(uri, 'persistence')
  if (scheme === 'memory') {
    throw new InvalidArgument(
      `logbooks in ${printable} are visible in their own process only; name shared ones, as in directory:./logbooks`,
    )
  }
  const persistence = await openLogbooksAt(uri, { options, context, create: false }).catch(async (error: unknown) => {
    if (!(error instanceof NotFound) || settings.missing === 'throw') throw error
    reportError(error, context)
    return (await import('../persistence/index.ts')).openPersistence('memory:')
  })
  return { persistence, uri: printable, [Symbol.asyncDispose]: () => persistence.close() }
}

/** Opens the logbooks like {@link openLogbooks}. @throws InvalidArgument if none are named */
export async function requireLogbooks(
  options: SharedOptions,
  context: CliContext,
  settings: { missing?: 'complain' | 'throw' } = {},
): Promise<Logbooks> {
  const logbooks = await openLogbooks(options, context, settings)
  if (logbooks) return logbooks
  throw noLogbooksError()
}

/**
 * Opens the logbooks of a conductor.
 *
 * @throws InvalidArgument if none are named: a conductor must not lose its records
 */
export async function openConductorsLogbooks(
  options: SharedOptions,
  context: CliContext,
  settings: { log?: Logger } = {},
): Promise<Persistence> {
  const uri = persistenceUri(options, context)
  if (uri !== undefined) return openLogbooksAt(uri, { options, context, create: true, ...settings })
  throw noLogbooksError()
}

/** The logbooks of single boards of a conductor. */
export interface BoardsLogbooks extends AsyncDisposable {
  /** The logbooks of each board, in their order; undefined where they are those of the conductor. */
  readonly persistences: readonly (Persistence | undefined)[]
}

/** Opens the logbooks that the config file names for single boards of a conductor. */
export async function openBoardsLogbooks(
  boards: readonly ChosenBoard[],
  { options, context, log }: { readonly options: SharedOptions; readonly context: CliContext; readonly log: Logger },
): Promise<BoardsLogbooks> {
  const common = persistenceUri(options, context)
  const opened: (Persistence | undefined)[] = []
  const close = async () => {
    for (const each of opened) await each?.close()
  }
  try {
    for (const { persistence, auth } of boards) {
      const isOwn = persistence !== undefined && persistence !== common
      const own = contextOf({ auth, persistence }, context)
      opened.push(isOwn ? await openLogbooksAt(persistence, { options, context: own, create: true, log }) : undefined)
    }
  } catch (error) {
    await close()
    throw error
  }
  return { persistences: opened, [Symbol.asyncDispose]: close }
}

/** Returns one of several boards as a conductor takes it. */
export function toConductorBoard(
  { uri, weight, auth }: ChosenBoard & Pick<ConductorBoard, 'weight'>,
  {
    context,
    unacceptedAfter,
    persistence,
  }: Pick<OpenBoardOptions, 'unacceptedAfter'> & {
    readonly context: BoardContext
    readonly persistence: Persistence | undefined
  },
): ConductorBoard {
  const onZooKeeper = parseUri(uri, 'board').scheme.startsWith('zookeeper')
  const given = credentials('board', contextOf({ auth }, context))
  return {
    board: uri,
    options: { ...(onZooKeeper ? given : {}), ...definedOnly({ unacceptedAfter }) },
    ...definedOnly({ weight, persistence }),
  }
}

function noLogbooksError(): InvalidArgument {
  return new InvalidArgument(
    'no logbooks were named: give --persistence URI or set JOBBOARD_PERSISTENCE, as in --persistence sqlite:./jobs.db',
  )
}

interface OpenOptions {
  readonly options: SharedOptions
  readonly context: CliContext
  readonly create: boolean
  readonly log?: Logger
}

export async function openLogbooksAt(
  uri: string,
  { options, context, create, log }: OpenOptions,
): Promise<Persistence> {
  const [{ openPersistence }, codec] = await Promise.all([
    import('../persistence/index.ts'),
    openCodec(options, context),
  ])
  const onZooKeeper = /^zookeepers?$/.test(parseUri(uri, 'persistence').scheme)
  return openPersistence(uri, {
    create,
    ...codec,
    ...(log ? { log } : {}),
    ...(onZooKeeper ? credentials('persistence', context) : {}),
  })
}
