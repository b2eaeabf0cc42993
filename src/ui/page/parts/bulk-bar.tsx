/** The bar with the actions on the selected jobs, or on all jobs that match the search. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { BulkBody } from '../../wire/actions.ts'
import type { WireJob } from '../../wire/jobs.ts'
import { actOnMany, type Target } from '../state/acting.ts'
import { formatNumber } from '../state/format.ts'
import { texts } from '../texts.ts'
import { Action } from './action.tsx'

const t = texts.bulk

export interface BulkBarProps {
  readonly actions: readonly BulkBody['action'][]
  /** The loaded jobs of the list. */
  readonly jobs: readonly WireJob[]
  /** Whether the list has more jobs. */
  readonly hasMore: boolean
  readonly selected: ReadonlySet<string>
  readonly query: string
  readonly clear: () => void
}

export function BulkBar({ actions, jobs, hasMore, selected, query, clear }: BulkBarProps): JSX.Element {
  const [isAll, setAll] = useState(false)
  const target: Target = isAll ? { query } : { uuids: [...selected] }
  const all = `${formatNumber(jobs.length)}${hasMore ? '+' : ''}`
  // An action is allowed only if it fits the jobs in the list: Purge on a list of waiting jobs must not delete jobs of the trash.
  const refusal = (action: BulkBody['action']): string | undefined => {
    const chosen = isAll ? jobs : jobs.filter(({ uuid }) => selected.has(uuid))
    if (chosen.length === 0) return t.nothingSelected
    const fits = ({ state }: WireJob): boolean =>
      state === 'TRASHED' ? action !== 'cancel' : action === 'cancel' && state !== 'DONE'
    if (isAll ? chosen.some(fits) : chosen.every(fits)) return undefined
    return action === 'cancel' ? t.onlyOpen : t.onlyTrashed
  }
  return (
    <fieldset class="bulk">
      <legend class="unseen">{t.legend}</legend>
      <span role="status">{isAll ? t.allMatching(all) : t.selected(formatNumber(selected.size))}</span>
      <label class="check">
        <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.currentTarget.checked)} /> {t.all}
      </label>
      {actions.map((action) => (
        <Action
          key={action}
          needs={action}
          danger={action !== 'restore'}
          unless={refusal(action)}
          onClick={async () => {
            if (!(await actOnMany(action, target))) return
            clear()
            setAll(false)
          }}
        >
          {t.buttons[action]}
        </Action>
      ))}
    </fieldset>
  )
}
