/** Reads two clocks at once, because neither alone shows how much time has passed for the server. */
import { monotonic } from './time.ts'

/**
 * A moment on both clocks. The monotonic clock never jumps, but stops while the machine is suspended; the wall clock
 * continues then, but may be set back. Between two moments, at least the larger of both differences has passed.
 */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

export type Clock = () => Instant

export const systemClock: Clock = () => ({ monotonic: monotonic(), wall: Date.now() })
