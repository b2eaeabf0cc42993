/** The differences between two states of the config file. */

import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import { CONFIG } from './schema.ts'
import { mapLeaves } from './walk.ts'

/** Returns the keys whose values differ, as `conductor.concurrency`, in their order. */
export function changedKeys(before: object, after: object): readonly string[] {
  const [old, now] = [leavesOf(before), leavesOf(after)]
  return [...new Set([...old.keys(), ...now.keys()])].filter((key) => !isDeepStrictEqual(old.get(key), now.get(key)))
}

function leavesOf(config: object): ReadonlyMap<string, unknown> {
  const leaves = new Map<string, unknown>()
  mapLeaves({ schema: CONFIG as z.ZodType, value: config, path: [] }, ({ path, value }) => {
    leaves.set(path.join('.'), value)
    return value
  })
  return leaves
}
