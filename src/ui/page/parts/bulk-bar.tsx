/** What can be done with the selected jobs, or with all that the search finds. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { BulkBody } from '../../wire/actions.ts'
import { actOnMany, type Target } from '../state/acting.ts'
import { formatNumber } from '../state/format.ts'
import { texts } from '../texts.ts'
import { Action } from './action.tsx'

const t = texts.bulk

export interface BulkBarProps {
  readonly actions: readonly BulkBody['action'][]
  readonly selected: ReadonlySet<string>
  readonly query: string
  readonly clear: () => void
  /** Whether there is anything to act on. */
  readonly canAll: boolean
}

export function BulkBar({ actions, selected, query, clear, canAll }: BulkBarProps): JSX.Element {
  const [isAll, setAll] = useState(false)
  const target: Target = isAll ? { query } : { uuids: [...selected] }
  const isIdle = isAll ? !canAll : selected.size === 0
  return (
    <fieldset class="bulk">
      <legend class="unseen">{t.legend}</legend>
      <span role="status">{isAll ? t.allMatching : t.selected(formatNumber(selected.size))}</span>
      <label class="check">
        <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.currentTarget.checked)} /> {t.all}
      </label>
      {actions.map((action) => (
        <Action
          key={action}
          needs={action}
          danger={action !== 'restore'}
          unless={isIdle ? t.nothingSelected : undefined}
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
