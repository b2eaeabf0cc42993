/** Chance that can be repeated: the same seed gives the same numbers. */
import { randomInt } from 'node:crypto'

export interface Random {
  readonly seed: number
  /** From 0 up to 1. */
  next(): number
  /** A whole number, both ends included. */
  between(least: number, most: number): number
  pick<T>(items: readonly T[]): T
}

/** @param seed by default JOBBOARD_SEED, or where that is not set one that nobody had before */
export function randomly(seed = Number(process.env['JOBBOARD_SEED'] ?? randomInt(2 ** 31))): Random {
  let state = seed >>> 0
  // Mulberry32.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    seed,
    next,
    between,
    pick: (items) => {
      const picked = items[between(0, items.length - 1)]
      if (picked === undefined) throw new Error('there is nothing to pick from')
      return picked
    },
  }
}
