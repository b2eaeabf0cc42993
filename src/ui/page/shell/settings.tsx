/** What the reader can choose: colours, times, keys. */
import type { Signal } from '@preact/signals'
import type { JSX } from 'preact'
import { isHelpOpen } from '../parts/dialogs.tsx'
import { THEMES, TIMES, theme, times } from '../state/settings.ts'
import { texts } from '../texts.ts'

export function Settings(): JSX.Element {
  return (
    <div class="settings">
      <Choice label={texts.settings.times} setting={times} values={TIMES} names={texts.settings.timesNames} />
      <Choice label={texts.settings.theme} setting={theme} values={THEMES} names={texts.settings.themeNames} />
      <button type="button" class="small" onClick={() => (isHelpOpen.value = true)}>
        {texts.settings.keys}
      </button>
    </div>
  )
}

interface ChoiceProps<T extends string> {
  readonly label: string
  readonly setting: Signal<T>
  readonly values: readonly T[]
  readonly names: Readonly<Record<T, string>>
}

function Choice<T extends string>({ label, setting, values, names }: ChoiceProps<T>): JSX.Element {
  return (
    <label>
      <span class="unseen">{label}</span>
      <select
        value={setting.value}
        onChange={(event) => {
          const chosen = values.find((value) => value === event.currentTarget.value)
          if (chosen !== undefined) setting.value = chosen
        }}
      >
        {values.map((value) => (
          <option key={value} value={value}>
            {names[value]}
          </option>
        ))}
      </select>
    </label>
  )
}
