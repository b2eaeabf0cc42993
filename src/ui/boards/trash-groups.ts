/** Groups the jobs in the trash by flow and reason, so that a thousand failures of the same kind are one line. */
import type { TrashedJob } from '../../board/index.ts'
import { defined } from '../../core/options.ts'
import type { Redactor } from '../../core/redaction.ts'
import type { WireTrashGroup } from '../wire/board.ts'

const MAX_REASON = 300

interface Group {
  readonly reason: string
  readonly flow: string | undefined
  readonly example: string
  jobs: number
  first: Date
  last: Date
}

/** Returns the groups, the largest first. The query of a group matches exactly its jobs. */
export function groupTrash(trashed: Iterable<TrashedJob>, redaction: Redactor): WireTrashGroup[] {
  const groups = new Map<string, Group>()
  for (const { uuid, at, reason, details } of trashed) {
    const text = toPatternOfReason(redaction.text(reason))
    const flow = typeof details.flow === 'string' ? details.flow : undefined
    const key = `${flow ?? ''}\0${text}`
    const known = groups.get(key)
    if (!known) groups.set(key, { reason: text, flow, example: uuid, jobs: 1, first: at, last: at })
    else {
      known.jobs += 1
      if (at < known.first) known.first = at
      if (at > known.last) known.last = at
    }
  }
  return [...groups.values()]
    .sort((a, b) => b.jobs - a.jobs || b.last.getTime() - a.last.getTime())
    .map(({ reason, flow, jobs, first, last, example }) => ({
      ...{ reason, jobs, example, first: first.toISOString(), last: last.toISOString(), query: toQuery(reason, flow) },
      ...defined({ flow }),
    }))
}

/** Returns the reason with `…` in place of what differs between like failures: uuids, numbers, and the end of a long text. */
export function toPatternOfReason(reason: string): string {
  const text = reason
    .slice(0, 4 * MAX_REASON)
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '…')
    .replace(/\b0x[0-9a-f]+\b|\d+(?:[.,:]\d+)*/gi, '…')
  const isCut = text.length > MAX_REASON || reason.length > 4 * MAX_REASON
  const pattern = isCut ? `${text.slice(0, MAX_REASON)}…` : text
  // It becomes part of an address, which cannot hold halves of characters.
  return pattern.toWellFormed().replaceAll('\uffff', '\ufffd')
}

function toQuery(reason: string, flow: string | undefined): string {
  // `flow:""` matches jobs without a flow.
  return `flow:${quote(flow ?? '')} group:${quote(reason).replaceAll('\\…', '…')}`
}

/** Returns the value of a search term in quotes. It matches this text only: its `*` and `…` are no wildcards. */
export function quote(text: string): string {
  return `"${text.replace(/["\\*…]/g, '\\$&')}"`
}
