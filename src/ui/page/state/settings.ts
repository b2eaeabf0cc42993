/** What the reader has chosen for this browser: colours, times, keys. */
import { effect, type Signal, signal } from '@preact/signals'

export const THEMES = ['auto', 'light', 'dark'] as const
export const TIMES = ['ages', 'utc', 'local'] as const

export const theme = setting('theme', THEMES)
/** How times are shown. The other forms are in the title of each. */
export const times = setting('times', TIMES)
/** Whether single keys do something. People who speak to their computer switch them off. */
export const keys = setting('keys', ['on', 'off'] as const)

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
})

/** Returns a setting that is kept in the browser; the first value is the default. */
function setting<const T extends string>(name: string, values: readonly [T, ...T[]]): Signal<T> {
  const key = `jobboard.${name}`
  const isValue = (value: string | null): value is T => values.some((each) => each === value)
  const kept = recall(key)
  const state = signal<T>(isValue(kept) ? kept : values[0])
  effect(() => remember(key, state.value))
  addEventListener('storage', (event) => {
    if (event.key === key && isValue(event.newValue)) state.value = event.newValue
  })
  return state
}

/** Storage can be forbidden by the browser; settings last as long as the tab then. */
function recall(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

function remember(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch {
    // As above.
  }
}
