/** Groups the jobs in the trash by flow and reason, so that a thousand failures of the same kind are one line. */
import type { TrashedJob } from '../../board/index.ts'
import type { Redactor } from '../../core/redaction.ts'
import type { WireTrashGroup } from '../wire/board.ts'
import type { Unencoded } from '../wire/common.ts'

const MAX_REASON = 300
/** The part of the name of a flow that is in the name of its groups. */
const MAX_FLOW = 300

interface Group {
  readonly name: string
  readonly reason: string
  readonly flow: string | undefined
  readonly example: string
  jobs: number
  first: Date
  last: Date
}

/** Returns the groups, the largest first. The query of a group matches its jobs and no others. */
export function groupTrash(trashed: Iterable<TrashedJob>, redaction: Redactor): Unencoded<WireTrashGroup>[] {
  const groups = new Map<string, Group>()
  for (const { uuid, at, reason, details } of trashed) {
    const flow = typeof details.flow === 'string' ? details.flow : undefined
    const text = toPatternOfReason(redaction.text(reason))
    const key = groupName(flow, text)
    const known = groups.get(key)
    if (!known) groups.set(key, { name: key, reason: text, flow, example: uuid, jobs: 1, first: at, last: at })
    else {
      known.jobs += 1
      if (at < known.first) known.first = at
      if (at > known.last) known.last = at
    }
  }
  return [...groups.values()]
    .sort((a, b) => b.jobs - a.jobs || b.last.getTime() - a.last.getTime())
    .map(({ name, ...group }) => ({ ...group, query: `group:${quote(name)}` }))
}

/** Returns the name of the group to which a job in the trash belongs: `import: timeout after … ms`. */
export function groupOf({ details, reason }: Pick<TrashedJob, 'details' | 'reason'>, redaction: Redactor): string {
  const { flow } = details
  return groupName(typeof flow === 'string' ? flow : undefined, toPatternOfReason(redaction.text(reason)))
}

function groupName(flow: string | undefined, pattern: string): string {
  const name = flow === undefined ? pattern : `${flow.slice(0, MAX_FLOW)}: ${pattern}`
  // It becomes part of a URL, which cannot contain lone surrogates. U+FFFF is a mark of the search.
  return name.toWellFormed().replaceAll('\uffff', '\ufffd')
}

/** Replaces numbers, uuids and the end of a long text by `…`, so that similar failures have the same text. */
function toPatternOfReason(reason: string): string {
  const text = reason
    .slice(0, 4 * MAX_REASON)
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '…')
    .replace(/\b0x[0-9a-f]+\b|\d+(?:[.,:]\d+)*/gi, '…')
  const isCut = text.length > MAX_REASON || reason.length > 4 * MAX_REASON
  return isCut ? `${text.slice(0, MAX_REASON)}…` : text
}

/** Returns a value of a search in quotes, in which `*` and `…` are no wildcards. */
export function quote(text: string): string {
  return `"${text.replace(/["\\*…]/g, '\\$&')}"`
}
