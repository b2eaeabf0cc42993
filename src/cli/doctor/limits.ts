/** The doctor's checks of limits: keys that are stopped, limits that start nothing, and some that this release cannot read. */
import type { JobBoard, LimitView } from '../../board/index.ts'
import { openCommand, resumeCommand } from '../limit-commands.ts'
import { errorFinding, type Finding, formatCount, okFinding, warningFinding } from './finding.ts'

/** Examines the limits of a board. @throws NotConnected, UnsupportedCapability */
export async function examineLimits(board: JobBoard): Promise<Finding[]> {
  const limits = await board.limits.list()
  if (limits.length === 0) return []
  const found = limits.flatMap(toFindings)
  return found.length > 0 ? found : [okFinding('limits', formatCount(limits.length, 'limit'))]
}

function toFindings(limit: LimitView): Finding[] {
  const { key, held, concurrency, keys = [], error } = limit
  if (error) return [errorFinding('limit', `${error.message}; none of its jobs starts here`, 'upgrade this release')]
  if (held && !held.until) {
    const why = held.reason === undefined ? '' : ` (${held.reason})`
    const text = `limit ${key} was stopped by ${held.by} at ${held.since.toISOString()}${why}: none of its jobs starts`
    return [warningFinding('limit', text, resumeCommand(key))]
  }
  if (concurrency === 0)
    return [warningFinding('limit', `limit ${key} permits 0 jobs at once: none of its jobs starts`, openCommand(limit))]
  const over = keys.filter(({ running }) => concurrency !== undefined && running > concurrency)
  return over.map((each) => {
    const text = `limit ${each.key}: ${each.running} jobs run, and ${concurrency} may; it was lowered, and none starts until enough have ended`
    return warningFinding('limit', text, 'nothing, if that was meant')
  })
}
