/** The boards of `jobboard conductor`: `--board` repeated, or `--queue`; and their weights. */
import type { ConductorBoard } from '../../conductor/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { parseUri, redactUri } from '../../core/uri.ts'
import type { BoardContext } from '../context.ts'
import { type FlagTable, type FlagValues, texts } from './flags.ts'
import { boardUri, definedOnly, type SharedOptions, withoutEnvironmentPassword } from './shared-options.ts'

/** A board as the settings name it. */
export interface ChosenBoard {
  readonly uri: string
  /** Its credentials in the config file: `user:password`. */
  readonly auth?: string
  /** The URI of its logbooks in the config file, if they are not those of the first board. */
  readonly persistence?: string
}

/** The flags for several boards, beside `--board`. */
export const BOARD_FLAGS = {
  '--queue <name>': [
    'board NAME below the URI of the board, in place of it; may be repeated: jobs of the first come first',
    texts,
  ],
  '--weights <list>': ['shares of the boards in the claims, as in 3,1, in place of their order', () => parseWeights],
} satisfies FlagTable

/** The options as they are on the command line; `boards` are what `--board` or the config file name, if they are several. */
export interface BoardFlags extends FlagValues<typeof BOARD_FLAGS> {
  readonly boards?: readonly ChosenBoard[]
}

/** Returns the boards in their order. @throws InvalidArgument if none is named, or the flags do not fit together */
export function toBoards(
  options: SharedOptions & BoardFlags,
  context: BoardContext,
): readonly (ChosenBoard & Pick<ConductorBoard, 'weight'>)[] {
  const { boards, queue, weights } = options
  const one = (): ChosenBoard => ({ uri: boardUri(options, context) })
  if (queue && boards)
    throw new InvalidArgument(
      '--queue NAME names a board below the only --board; with several, give each as --board URI',
    )
  const chosen = queue ? queue.map((name) => ({ uri: queueUri(one().uri, name) })) : (boards ?? [one()])
  for (const { uri } of chosen) assertShared(uri)
  if (weights) assertWeightCount(weights.length, chosen.length)
  const isFound = context.chosenByFile?.board
  return chosen.map((each, index) => ({
    ...each,
    ...(isFound ? { uri: withoutEnvironmentPassword(each.uri, context) } : {}),
    ...definedOnly({ weight: weights?.[index] }),
  }))
}

/** @throws InvalidArgument */
export function assertWeightCount(weights: number, boards: number): void {
  if (weights === boards) return
  throw new InvalidArgument(`--weights must have one number for each board: ${boards} in place of ${weights}`)
}

/** @throws InvalidArgument */
export function assertQueueName(name: string): void {
  if (/^\w[\w.-]*$/.test(name)) return
  throw new InvalidArgument(`--queue must be a name of letters, digits, _, . and -, got ${JSON.stringify(name)}`)
}

/** Returns the URI of a board below another: a path on ZooKeeper, the parameter `board` on Postgres, a longer prefix on Redis. */
export function queueUri(uri: string, name: string): string {
  assertQueueName(name)
  const { scheme, parameters, printable } = parseUri(uri, 'board')
  const [, place = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(uri) ?? []
  if (/^zookeepers?$/.test(scheme)) return `${place.replace(/\/$/, '')}/${name}${query === '' ? '' : `?${query}`}`
  const rest = (parameter: string) =>
    query.split('&').filter((part) => part !== '' && !part.startsWith(`${parameter}=`))
  if (/^postgres(ql)?$/.test(scheme)) {
    if (parameters.has('board'))
      throw new InvalidArgument(
        `--queue ${name}: ${printable} names its board already; leave board= out of it, or give each board as --board URI`,
      )
    return `${place}?${[...rest('board'), `board=${name}`].join('&')}`
  }
  if (/^rediss?(\+\w+)?$/.test(scheme)) {
    const prefix = encodeURIComponent(`${parameters.get('prefix') ?? 'taskflow'}/${name}`)
    return `${place}?${[...rest('prefix'), `prefix=${prefix}`].join('&')}`
  }
  throw new InvalidArgument(`--queue ${name}: ${redactUri(uri)} has no boards below it; give each board as --board URI`)
}

function assertShared(uri: string): void {
  const { scheme, printable } = parseUri(uri, 'board')
  if (scheme !== 'memory') return
  throw new InvalidArgument(
    `board ${printable} would end with this command; name one that is shared, such as zookeeper://127.0.0.1:2181/demo`,
  )
}

/** @throws InvalidArgument */
function parseWeights(text: string): readonly number[] {
  const weights = text.split(',').map((each) => (/^\d+$/.test(each.trim()) ? Number(each) : 0))
  if (weights.every((weight) => Number.isSafeInteger(weight) && weight > 0)) return weights
  throw new InvalidArgument('--weights must be whole numbers from 1, one for each board, as in --weights 3,1')
}
