/** Parses the boards of a conductor from the options `board` and `boards`. */
import type {
  DeclaredFlowSettings,
  DeclaredLimits,
  DeclaredSchedule,
  DeclaredSchedules,
  JobBoard,
  OpenBoardOptions,
} from '../../board/index.ts'
import { boardId, toDeclaredFlowSettings, toDeclaredLimits, toDeclaredSchedules } from '../../board/internal.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, defined, type KnownOptions } from '../../core/options.ts'
import { parseUri } from '../../core/uri.ts'
import type { Persistence } from '../../persistence/index.ts'

/** A board of a conductor that has several. */
export interface ConductorBoard {
  /** The board: a URI, which the conductor opens, and closes at its stop; or an open board, which it leaves open. */
  readonly board: string | JobBoard
  /**
   * The share of the claims that this board gets while all boards have jobs: a whole number. If no board has a weight, jobs of earlier
   * boards are claimed before jobs of later ones; if one has, the weight of the others is 1.
   */
  readonly weight?: number
  /** The logbooks of the jobs of this board; the conductor's by default. */
  readonly persistence?: string | Persistence
  /**
   * The schedules that the conductor puts on this board. By default, the first board has the schedules of the conductor, and the others have none.
   */
  readonly schedules?: readonly DeclaredSchedule[] | DeclaredSchedules
  /** The limits that the conductor sets on this board; the conductor's own by default. */
  readonly limits?: DeclaredLimits
  /** The settings of flows that the conductor sets on this board; the conductor's own by default. */
  readonly flowSettings?: DeclaredFlowSettings
  /** The options with which it is opened, where `board` is a URI. */
  readonly options?: Omit<OpenBoardOptions, 'who' | 'log' | 'signal'>
}

/** The options of a conductor that concern its boards. */
export interface GivenBoards extends Pick<ConductorBoard, 'schedules' | 'limits' | 'flowSettings'> {
  readonly board?: ConductorBoard['board']
  readonly boards?: readonly (ConductorBoard['board'] | ConductorBoard)[]
}

/** A board of a conductor whose options were checked. */
export interface BoardEntry extends Pick<ConductorBoard, 'board' | 'weight' | 'persistence' | 'options'> {
  /** The URI without a password. */
  readonly uri: string
  readonly schedules: Required<DeclaredSchedules> | undefined
  readonly limits: Required<DeclaredLimits> | undefined
  readonly flowSettings: Required<DeclaredFlowSettings> | undefined
}

const KNOWN: KnownOptions<ConductorBoard> = {
  board: true,
  weight: true,
  persistence: true,
  schedules: true,
  limits: true,
  flowSettings: true,
  options: true,
}

const BOARD_ADVICE = 'board must be a URI such as zookeeper://127.0.0.1:2181/demo, or an open board'
const BOARDS_ADVICE = 'boards must be a list of URIs, open boards, or { board, weight }, of one at least'

/** Returns the boards in their order. @throws InvalidArgument */
export function toBoardEntries({ board, boards, schedules, limits, flowSettings }: GivenBoards): readonly BoardEntry[] {
  if (boards === undefined) {
    assertBoard(board, `a conductor: ${BOARD_ADVICE}`)
    return [toEntry({ board, ...defined({ schedules, limits, flowSettings }) })]
  }
  if (board !== undefined)
    throw new InvalidArgument('a conductor: give board, or boards for several, and not both of them')
  if (!Array.isArray(boards) || boards.length === 0) throw new InvalidArgument(`a conductor: ${BOARDS_ADVICE}`)
  const checked = boards.map((each: unknown, index) => checkBoard(each, `a conductor: boards[${index}]`))
  // Schedules that are put on several boards would post each job once on each of them.
  const entries = checked.map((each, index) =>
    toEntry({ ...defined({ schedules: index === 0 ? schedules : undefined, limits, flowSettings }), ...each }),
  )
  assertDistinct(entries)
  return entries
}

/** Returns a name of the board for people, without its servers: `zookeeper:/jobs`, `postgres:default`, `redis:taskflow`. */
export function toBoardLabel(uri: string): string {
  const { scheme, path, parameters } = parseUri(boardId(uri), 'board')
  if (scheme === 'zookeeper' || scheme === 'memory') return `${scheme}:${path}`
  return `${scheme}:${parameters.get(scheme === 'postgres' ? 'board' : 'prefix')}`
}

function checkBoard(value: unknown, what: string): ConductorBoard {
  if (typeof value === 'string' || isOpenBoard(value)) {
    assertBoard(value, `${what}: ${BOARD_ADVICE}`)
    return { board: value }
  }
  assertOptions<ConductorBoard>(value, KNOWN, what)
  const entry = value as ConductorBoard
  const { board, weight, persistence } = entry
  assertBoard(board, `${what}: ${BOARD_ADVICE}`)
  if (weight !== undefined && (!Number.isSafeInteger(weight) || weight < 1))
    throw new InvalidArgument(`${what}: weight must be a whole number from 1, got ${String(weight)}`)
  if (persistence !== undefined && !isUriOrOpen(persistence, 'acquire'))
    throw new InvalidArgument(
      `${what}: persistence must be a URI such as directory:./logbooks, or an open persistence; omit it to use that of the conductor`,
    )
  if (entry.options !== undefined && typeof board !== 'string')
    throw new InvalidArgument(
      `${what}: options are only for a board that is given as a URI, and this board is open already; omit them`,
    )
  return entry
}

function toEntry({ board, weight, persistence, schedules, limits, flowSettings, options }: ConductorBoard): BoardEntry {
  return {
    board,
    uri: typeof board === 'string' ? parseUri(board, 'board').printable : board.uri,
    schedules: schedules && toDeclaredSchedules(schedules),
    limits: limits && toDeclaredLimits(limits),
    flowSettings: flowSettings && toDeclaredFlowSettings(flowSettings),
    ...defined({ weight, persistence, options }),
  }
}

/** Checks that no board is named twice: two owners of the same name would claim its jobs. @throws InvalidArgument */
function assertDistinct(entries: readonly BoardEntry[]): void {
  const known = new Map<unknown, number>()
  for (const [index, { board, uri }] of entries.entries()) {
    const id = boardId(uri)
    // Each open board at `memory:` is a board of its own.
    const identity = id === 'memory:' ? board : id
    const earlier = identity === 'memory:' ? undefined : known.get(identity)
    if (earlier !== undefined)
      throw new InvalidArgument(
        `a conductor: boards[${earlier}] and boards[${index}] are the same board, ${uri}: name each board once`,
      )
    known.set(identity, index)
  }
}

function isOpenBoard(value: unknown): value is JobBoard {
  return typeof Object(value).claimNext === 'function'
}

function assertBoard(board: unknown, message: string): asserts board is string | JobBoard {
  if (!isUriOrOpen(board, 'claimNext')) throw new InvalidArgument(message)
}

/** Returns whether a value is a URI or an open object. @param method the name of a method of such an object */
export function isUriOrOpen(place: unknown, method: string): boolean {
  const open: Record<string, unknown> = Object(place)
  return (typeof place === 'string' && place !== '') || typeof open[method] === 'function'
}
