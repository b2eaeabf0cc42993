/** Compares two versions of the config file. */
import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import { CONFIG } from './schema.ts'
import { mapLeaves } from './walk.ts'

/** Returns the keys whose values differ, such as `conductor.concurrency`, in the order of the file. */
export function changedKeys(before: object, after: object): readonly string[] {
  const [old, current] = [leavesOf(before), leavesOf(after)]
  return [...new Set([...old.keys(), ...current.keys()])].filter(
    (key) => !isDeepStrictEqual(old.get(key), current.get(key)),
  )
}

function leavesOf(config: object): ReadonlyMap<string, unknown> {
  const leaves = new Map<string, unknown>()
  mapLeaves({ schema: CONFIG as z.ZodType, value: config, path: [] }, ({ path, value }) => {
    leaves.set(path.join('.'), value)
    return value
  })
  return leaves
}
