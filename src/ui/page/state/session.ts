/** The session: the person, their rights, and the boards. */
import { computed, signal } from '@preact/signals'
import { LEVELS, NEEDS } from '../../wire/rights.ts'
import type { WireBoard, WireSession } from '../../wire/session.ts'
import { texts } from '../texts.ts'
import { type ApiError, read } from './api.ts'
import { onChange } from './changes.ts'
import { setServerTime } from './clock.ts'
import { place } from './router.ts'

export const session = signal<WireSession | undefined>(undefined)
export const sessionError = signal<ApiError | undefined>(undefined)

/** The board that the address names. */
export const board = computed<WireBoard | undefined>(() =>
  session.value?.boards.find(({ name }) => name === place.value.board),
)

/** Returns the path of an endpoint of the present board. */
export function onBoard(path: string): string {
  return `boards/${encodeURIComponent(place.value.board ?? '')}/${path}`
}

/** Reads the session again: rights may have changed, or a board was paused. */
export async function readSession(): Promise<void> {
  try {
    const answer = await read<WireSession>('session')
    setServerTime(answer.now)
    session.value = answer
    sessionError.value = undefined
  } catch (error) {
    sessionError.value = error as ApiError
  }
}

/** Returns why this person may not do an action, for people; undefined if the person may. */
export function forbids(action: string): string | undefined {
  const present = session.value
  if (present === undefined) return texts.rights.unknown
  if (present.readOnly) return texts.rights.readOnly
  const needed = NEEDS[action] ?? 'admin'
  const level = board.value?.level ?? present.level
  if (LEVELS.indexOf(level) >= LEVELS.indexOf(needed)) return undefined
  return texts.rights.needs(needed, level)
}

onChange((changed) => {
  if (session.value !== undefined && (changed === 'all' || changed.has('board'))) void readSession()
})
