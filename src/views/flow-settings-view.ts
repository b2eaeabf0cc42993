/** The settings of flows as plain data, and as texts of the form in which `jobboard flows set` takes them. */
import type { FlowSettingsView, StoredSettings } from '../board/index.ts'
import { exactDuration } from './duration.ts'

/** The settings of a flow or pattern in JSON; times are in milliseconds. */
export type ShownFlowSettings = Omit<FlowSettingsView, 'error'> & { readonly error?: string }

export function flowSettingsView({ error, ...settings }: FlowSettingsView): ShownFlowSettings {
  return { ...settings, ...(error ? { error: error.message } : {}) }
}

/** One setting as texts: `backOff.first` and `10s`. */
export interface SettingText {
  readonly key: string
  readonly text: string
}

/** The settings whose numbers are milliseconds. */
const DURATIONS: readonly string[] = [
  'delay',
  'expiresAfter',
  'deadline',
  'resultTtl',
  'keepLogbooks',
  'removeTrashAfter',
]

/** Returns the settings as texts, in their order. */
export function settingTexts(settings: StoredSettings): readonly SettingText[] {
  return Object.entries(settings).flatMap(([key, value]): SettingText[] => {
    if (key !== 'backOff') return [{ key, text: toText(value, { isDuration: DURATIONS.includes(key) }) }]
    return Object.entries(Object(value)).map(([part, each]) => {
      return { key: `backOff.${part}`, text: toText(each, { isDuration: part === 'first' || part === 'max' }) }
    })
  })
}

/** Returns the settings on one line: `maxAttempts=7 queue=bulk`. */
export function describeSettings(settings: StoredSettings): string {
  return settingTexts(settings)
    .map(({ key, text }) => `${key}=${text}`)
    .join(' ')
}

function toText(value: unknown, { isDuration }: { readonly isDuration: boolean }): string {
  return isDuration && typeof value === 'number' ? exactDuration(value) : String(value)
}
