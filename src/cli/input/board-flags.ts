/** The boards of `jobboard conductor`: `--board` repeated, and their weights. */
import type { ConductorBoard } from '../../conductor/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { parseUri } from '../../core/uri.ts'
import type { BoardContext } from '../context.ts'
import type { FlagTable, FlagValues } from './flags.ts'
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
  const { boards, weights } = options
  const chosen: readonly ChosenBoard[] = boards ?? [{ uri: boardUri(options, context) }]
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
