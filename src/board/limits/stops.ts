/** Finds what still stops a key when its own hold has ended: holds and limits of patterns, and of the keys of a pattern. */
import { defined } from '../../core/options.ts'
import { describeStop } from '../model/limit-stops.ts'
import { isLimitOf } from '../model/limits.ts'
import { indexViews, type LimitView } from './limit-view.ts'

/** A limit or hold by which no job of a key starts. */
export interface LimitStop {
  /** The limit as `board.limits.list` shows it: `held`, `concurrency: 0`, or `error`. */
  readonly limit: LimitView
  /** The reason, as a sentence for people. */
  readonly text: string
}

/**
 * Returns the limits and holds that stop a key or pattern: its own, the stops of patterns that it matches, and for a pattern the stops of its keys.
 *
 * @param views all limits and holds of the board
 */
export function stopsOf(key: string, views: readonly LimitView[]): LimitStop[] {
  // A pattern is found by itself too, as the prefix of its own text.
  const above = indexViews(views)
    .findAll(key)
    .filter((view) => isLimitOf(view.key, key))
  const setting = above.find(({ set, error }) => set ?? error)
  const within = views.filter((view) => !above.includes(view) && key.endsWith('*') && isLimitOf(key, view.key))
  return [
    ...above.flatMap((view) => toStop(view, { isSetting: view === setting })),
    ...within.flatMap((view) => toStop(view, { isSetting: true })),
  ]
}

function toStop(limit: LimitView, { isSetting }: { readonly isSetting: boolean }): LimitStop[] {
  const { key, held, concurrency, set, error } = limit
  if (isSetting && error) return [{ limit, text: `limit ${key} cannot be read here: ${error.message}` }]
  if (held) {
    const { until, by, reason, since } = held
    const hold = { id: key, by, at: since.getTime(), ...defined({ reason }) }
    const heldUntil = until?.getTime() ?? Number.POSITIVE_INFINITY
    return [{ limit, text: describeStop(key, { heldUntil, hold }, { isHeld: true }) }]
  }
  if (!isSetting || concurrency !== 0) return []
  const closed = set && { id: key, by: set.by, at: set.at.getTime() }
  return [{ limit, text: describeStop(key, defined({ closed }), { isHeld: false }) }]
}
