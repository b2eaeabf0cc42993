/** Limits for people: a table. */
import type { LimitKeyUse, LimitView } from '../../../board/index.ts'
import { formatDuration } from '../../../views/index.ts'
import type { Screen } from './paint.ts'
import { type Column, renderTable } from './table.ts'

export function limitsTable(limits: readonly LimitView[], screen: Screen): string[] {
  const isCounted = limits.some(({ waiting }) => waiting !== undefined)
  const columns: readonly Column<LimitView>[] = [
    { title: 'KEY', value: ({ key, fair }) => (fair ? `${key} (fair)` : key), min: 12 },
    { title: 'AT ONCE', value: ({ concurrency }) => (concurrency === undefined ? undefined : String(concurrency)) },
    {
      title: 'RUNNING',
      value: ({ keys, concurrency }) => (concurrency === undefined ? undefined : formatRunning(keys)),
    },
    ...(isCounted ? [{ title: 'WAITING', value: formatWaiting }] : []),
    { title: 'RATE', value: ({ rate }) => rate && formatRate(rate) },
    { title: 'HELD', value: (limit) => formatHeld(limit), tone: ({ held }) => (held ? 'odd' : undefined) },
    { title: 'SET BY', value: ({ set, error }) => error?.message ?? set?.by, optional: true },
  ]
  return renderTable(columns, limits, screen)
}

/** Returns the table of the keys of a limit. */
export function limitKeysTable({ keys = [], waitingIsPartial }: LimitView, screen: Screen): string[] {
  const columns: readonly Column<LimitKeyUse>[] = [
    { title: 'KEY', value: ({ key }) => key, min: 12 },
    { title: 'RUNNING', value: ({ running }) => String(running) },
    { title: 'WAITING', value: ({ waiting }) => formatWaiting({ waiting, waitingIsPartial }) },
    { title: 'NEXT START', value: ({ nextStart }) => nextStart?.toISOString() },
  ]
  return renderTable(columns, keys, screen)
}

interface WaitingJobs {
  readonly waiting?: number | undefined
  readonly waitingIsPartial?: true | undefined
}

function formatWaiting({ waiting, waitingIsPartial }: WaitingJobs): string | undefined {
  return waiting === undefined ? undefined : `${waiting}${waitingIsPartial ? ' or more' : ''}`
}

function formatRunning(keys: LimitView['keys'] = []): string {
  const busy = keys.filter(({ running }) => running > 0)
  const running = busy.reduce((sum, key) => sum + key.running, 0)
  return busy.length > 1 ? `${running} of ${busy.length} keys` : String(running)
}

function formatRate({ limit, perMs, burst }: NonNullable<LimitView['rate']>): string {
  return `${limit}/${formatDuration(perMs)}${burst === 1 ? '' : `, burst ${burst}`}`
}

function formatHeld({ held }: LimitView): string | undefined {
  if (!held) return undefined
  const { until, reason, by } = held
  const when = until ? `by ${by} until ${until.toISOString()}` : `by ${by}`
  return reason === undefined ? when : `${when}: ${reason}`
}
