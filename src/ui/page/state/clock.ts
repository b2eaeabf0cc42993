/** The time of the server. Ages are computed with it, because the clock of the browser's machine may be wrong. */
import { signal } from '@preact/signals'

const TICK_MS = 1_000

let aheadMs = 0

/** The time of the server in milliseconds, once a second while the tab is seen. */
export const now = signal(Date.now())

/** Sets the clock by an answer of the server. */
export function setServerTime(iso: string): void {
  aheadMs = Date.parse(iso) - Date.now()
  tick()
}

function tick(): void {
  if (!document.hidden) now.value = Date.now() + aheadMs
}

setInterval(tick, TICK_MS)
document.addEventListener('visibilitychange', tick)
