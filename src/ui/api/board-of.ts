/** Finds the board of a request, and reads its search. */
import { NotFound } from '../../core/errors.ts'
import { shortenText } from '../../core/texts.ts'
import { levelOn } from '../access/access.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import { Refusal } from '../problem.ts'
import { parseSearch, type Search } from '../search/parse.ts'
import type { Call } from './route.ts'

type AnyCall = Pick<Call<unknown, unknown>, 'services' | 'params' | 'access'>

/** Returns the board that a request names, as it is shown to the person who asks. @throws NotFound */
export function boardOf({ services, params, access }: AnyCall): ViewedBoard {
  const name = params['board'] ?? ''
  const viewed = services.boards.get(name)
  const isHidden = (each: ViewedBoard) => levelOn(access, each.name) === undefined
  const all = [...services.boards.values()]
  if (viewed) return access.boards ? viewed.without(all.filter(isHidden)) : viewed
  const shown = all.filter((each) => !isHidden(each)).map((each) => each.name)
  throw new NotFound(`there is no board '${shortenText(name)}' here; there are ${shown.join(', ')}`)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Returns the uuid that a request names. @throws NotFound if no job can have it */
export function uuidOf({ params }: AnyCall): string {
  const given = params['uuid'] ?? ''
  if (UUID.test(given.toLowerCase())) return given.toLowerCase()
  // TaskFlow's services may post under other names, which are found as well.
  if (/^[\w-]{1,64}$/.test(given)) return given
  throw new NotFound(`'${shortenText(given)}' is not a uuid`)
}

/** Reads a search, which may look into stores only with the right to see values. @throws InvalidArgument, Refusal */
export function searchOf({ access }: AnyCall, text: string): Search {
  const search = parseSearch(text)
  if (search.readsStores && !access.values)
    throw new Refusal('FORBIDDEN', 'searching stores needs the right to see values')
  return search
}
