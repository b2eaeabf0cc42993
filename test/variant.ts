/** Tests of a file that run in one tier only: `tiers.ts` says which tiers there are, and what a variant is. */
import { type TestAPI, test } from 'vitest'

type Tier = 'usual' | 'variants' | 'long'

const tier = currentTier()

/** Returns the tier of this run: the configuration sets it. */
export function currentTier(): Tier {
  const named = process.env['JOBBOARD_TIER']
  return named === 'variants' || named === 'long' ? named : 'usual'
}

/**
 * Defines a test of `npm test`, in a file that has variants as well: `npm run test:all` does not run it again.
 *
 * @example
 * import { usual as test, variant } from '../variant.ts'
 */
export const usual: TestAPI = tier === 'variants' ? leaveOut() : test

/** Defines a test of `npm run test:all`. */
export const variant: TestAPI = tier === 'usual' ? leaveOut() : test

/**
 * Returns the rows of a table of tests that run in this tier.
 *
 * @param rows.usual those of `npm test`
 * @param rows.variants those of `npm run test:all`
 */
export function rowsOf<T>({
  usual,
  variants,
}: {
  readonly usual: readonly T[]
  readonly variants: readonly T[]
}): readonly T[] {
  return tier === 'long' ? [...usual, ...variants] : tier === 'variants' ? variants : usual
}

/**
 * Defines a test for each row of a table that runs in this tier, as `test.each` does.
 *
 * @param isUsual whether `npm test` runs the row
 * @example
 * testRows(CAUSES, ([cause]) => cause === 'deadline')('a %s stops the job', async (cause) => ...)
 */
export function testRows<T extends readonly unknown[]>(table: readonly T[], isUsual: (row: T) => boolean) {
  return test.each(rowsOf({ usual: table.filter(isUsual), variants: table.filter((row) => !isUsual(row)) }))
}

/**
 * Returns a function in the place of `test` that defines no test. It has the properties of `test` that the tests use, and not all of its type:
 * another one, such as `test.extend`, throws when the file is loaded.
 */
function leaveOut(): TestAPI {
  const define = () => undefined
  const others = { each: () => define, for: () => define, skipIf: () => define, runIf: () => define }
  return Object.assign(define, others, { concurrent: Object.assign(() => undefined, others) }) as unknown as TestAPI
}
