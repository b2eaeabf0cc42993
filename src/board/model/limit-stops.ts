/** Describes why no job of a key starts: who has stopped or pushed back the key, or permits it no job, and why. */
import { oneLine, shortenText } from '../../core/texts.ts'
import { toDate } from '../../core/time.ts'
import { isQueueKey, type LimitRule, toQueueOfKey } from './limits.ts'

/**
 * Returns whether no job of the key starts until a setting is changed: the key was stopped, or permits 0 jobs at once. False if this
 * release cannot read the setting.
 */
export function isStopped({ heldUntil, hold, concurrency }: LimitRule): boolean {
  return concurrency === 0 || (heldUntil === Number.POSITIVE_INFINITY && hold !== undefined)
}

/** Describes why no job of a key starts now: it is held, or else permits 0 jobs at once. */
export function describeStop(
  key: string,
  { heldUntil = 0, hold, closed }: Pick<LimitRule, 'heldUntil' | 'hold' | 'closed'>,
  { isHeld }: { readonly isHeld: boolean },
): string {
  if (isHeld && !hold) return `what is set for ${key} cannot be read here: it is of a newer release, or damaged`
  const { id = key, by = 'somebody', reason, flow } = (isHeld ? hold : closed) ?? {}
  const why = reason === undefined ? '' : `: ${oneLine(shortenText(reason))}`
  if (flow !== undefined) return `flow ${flow}${id === flow ? '' : ` (${id})`} was disabled by ${by}${why}`
  const name = id === key ? describeKey(key) : `${describeKey(key)} (${id})`
  if (!isHeld) return `${name} permits 0 jobs at once, as ${by} has set`
  if (heldUntil === Number.POSITIVE_INFINITY)
    return `${name} was ${isQueueKey(key) ? 'paused' : 'stopped'} by ${by}${why}`
  return `${name} is held until ${toDate(Math.ceil(heldUntil)).toISOString()} by ${by}${why}`
}

function describeKey(key: string): string {
  return isQueueKey(key) ? `queue ${toQueueOfKey(key)}` : `limit ${key}`
}
