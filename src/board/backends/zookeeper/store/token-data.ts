/**
 * The data of a limit's znode: how many tokens were taken of the key, as `limit-nodes.ts` says. It contains the arrival time before the last write and
 * how far that write moved it, both in milliseconds; the znode's modification time says when it was.
 */
import type { Stat } from '../../../../zookeeper/index.ts'

export interface TakenTokens {
  readonly beforeMs: number
  readonly movedMs: number
}

/** Returns the arrival time. @param stat undefined if the answer to the write was lost */
export function toArrival({ beforeMs, movedMs }: TakenTokens, stat: Pick<Stat, 'mtime'> | undefined): number {
  // Nothing was taken: the time at which the znode was created may be ahead of what this process knows of the servers' clock.
  if (movedMs === 0) return beforeMs
  return Math.max(beforeMs, stat?.mtime ?? 0) + movedMs
}

export function encodeTokens({ beforeMs, movedMs }: TakenTokens): Uint8Array {
  return Buffer.from(`${beforeMs} ${movedMs}`)
}

/** Anything that is not two numbers counts as no tokens: they are taken from now on. */
export function decodeTokens(bytes: Uint8Array | null): TakenTokens {
  const [beforeMs = 0, movedMs = 0] = Buffer.from(bytes ?? [])
    .toString()
    .split(' ')
    .map(Number)
  return Number.isFinite(beforeMs) && Number.isFinite(movedMs) ? { beforeMs, movedMs } : { beforeMs: 0, movedMs: 0 }
}
