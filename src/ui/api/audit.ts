/** Checks the right to a change, carries it out, and writes who asked for it to the log. */

import { asError } from '../../core/errors.ts'
import { cutText } from '../../core/texts.ts'
import { includesLevel } from '../access/access.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import { Refusal } from '../problem.ts'
import { NEEDS } from '../wire/actions.ts'
import type { Call } from './route.ts'

export interface Change {
  /** The name of the action, by which its right is found. */
  readonly action: string
  /** The thing that is changed, for the log. */
  readonly what: string
  readonly reason?: string | undefined
}

type AnyCall = Pick<Call<unknown, unknown>, 'services' | 'access' | 'client'>

const MAX_REASON = 1_000

/**
 * Carries out a change.
 *
 * @param work receives the reason with the name of the person
 * @throws Refusal without the right; what the work throws
 */
export async function carryOut<T>(
  call: AnyCall,
  viewed: ViewedBoard,
  change: Change,
  work: (reason: string) => Promise<T>,
): Promise<T> {
  const { services, access, client } = call
  const { action, what, reason } = change
  const line = { audit: action, who: access.who, board: viewed.name, what, reason, address: client.address }
  try {
    assertMay(call, action)
    const result = await work(toReason(reason, access.who))
    services.log.info(line, `dashboard: ${action} of ${what} carried out for ${access.who}`)
    return result
  } catch (error) {
    services.log.warn({ ...line, err: asError(error) }, `dashboard: ${action} of ${what} for ${access.who} failed`)
    throw error
  } finally {
    viewed.cache.clear()
  }
}

/** Checks that the person may do this, and that the dashboard is not read-only. @throws Refusal */
export function assertMay({ services, access }: AnyCall, action: string): void {
  const needed = NEEDS[action]
  if (services.settings.readOnly) throw new Refusal('FORBIDDEN', 'this dashboard is read-only: it changes nothing')
  if (needed !== undefined && includesLevel(access.level, needed)) return
  throw new Refusal('FORBIDDEN', `${action} needs level ${needed ?? 'admin'}, and ${access.who} has ${access.level}`)
}

/** Returns the reason with the name of the person at its end. A long reason is cut, and the name never is. */
function toReason(reason: string | undefined, who: string): string {
  const name = ` (${who})`
  const given = reason?.trim() || 'asked for in the dashboard'
  return `${cutText(given, MAX_REASON - name.length)}${name}`
}
