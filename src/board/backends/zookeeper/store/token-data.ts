/**
 * The data of a limit's znode: how many tokens were taken of the key, as `parts/limit-reservations.ts` says. It contains the
 * arrival time before the last write and how far that write moved it, both in milliseconds; the rate by which the tokens were taken: the
 * interval in milliseconds and the burst; and the interval before, if that write has changed the rate. The znode's modification time is the
 * time of that write.
 */
import type { Stat } from '../../../../zookeeper/index.ts'
import { type TakenTokens, type TokenRate, toArrivalAt } from '../../../model/limits.ts'

export interface TokenData {
  readonly beforeMs: number
  readonly movedMs: number
  /** Undefined if no token was taken yet, or if an earlier release has written the znode. */
  readonly rate?: TokenRate
  /** The interval by which the tokens before were taken, if the rate was changed by this write. */
  readonly formerMs?: number
}

/** Returns what was taken. @param stat undefined if the answer to the write was lost */
export function toTaken(
  { beforeMs, movedMs, rate, formerMs }: TokenData,
  stat: Pick<Stat, 'mtime'> | undefined,
): TakenTokens {
  const now = stat?.mtime ?? 0
  // A burst that no rate has: the tokens before were taken by another one.
  const former = formerMs === undefined ? rate : { intervalMs: formerMs, burst: 0 }
  const arrivalMs = rate ? toArrivalAt({ arrivalMs: beforeMs, rate: former }, rate, now) : beforeMs
  // Nothing was taken: the time at which the znode was created may be ahead of what this process knows of the servers' clock.
  return { arrivalMs: movedMs === 0 ? arrivalMs : Math.max(arrivalMs, now) + movedMs, rate }
}

export function encodeTokens({ beforeMs, movedMs, rate, formerMs }: TokenData): Uint8Array {
  const numbers = [
    beforeMs,
    movedMs,
    ...(rate ? [rate.intervalMs, rate.burst] : []),
    ...(rate && formerMs ? [formerMs] : []),
  ]
  return Buffer.from(numbers.join(' '))
}

/** Parses the data. Anything else than numbers counts as no tokens: they are taken from now on. */
export function decodeTokens(bytes: Uint8Array | null): TokenData {
  const numbers = Buffer.from(bytes ?? [])
    .toString()
    .split(' ')
    .map(Number)
  const [beforeMs = 0, movedMs = 0, intervalMs = 0, burst = 0, formerMs = 0] = numbers
  if (!numbers.every(Number.isFinite)) return { beforeMs: 0, movedMs: 0 }
  if (intervalMs <= 0 || burst <= 0) return { beforeMs, movedMs }
  return { beforeMs, movedMs, rate: { intervalMs, burst }, ...(formerMs > 0 ? { formerMs } : {}) }
}
