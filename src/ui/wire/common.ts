/** The parts that several answers of the dashboard's API share. The API documents itself with these schemas: `openapi.ts`. */
import { z } from 'zod'

/** A time, in ISO 8601 with milliseconds, UTC. */
export const time = z.iso.datetime().brand<'time'>()
type Time = z.infer<typeof time>

/** An answer as the server makes it: a time is a `Date`, and nothing is changed. The answer is its JSON. */
export type Unencoded<T> = T extends Time
  ? Date
  : T extends readonly (infer Item)[]
    ? readonly Unencoded<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: Unencoded<T[Key]> }
      : T

/** Who asked for something, and why. */
export const cancellation = z.object({ who: z.string(), reason: z.string() })

export const failure = z.object({
  name: z.string(),
  message: z.string(),
  code: z.string().optional(),
  get causes() {
    return z.array(failure).optional()
  },
})
export type WireFailure = z.infer<typeof failure>

/** Where a search of a long list stands. `next` is absent when the list has been read to its end. */
export const scan = z.object({
  /** The cursor with which the search goes on. */
  next: z.string().optional(),
  /** The number of items that were looked at for this page. */
  looked: z.number().int(),
  /** The number of all items, where it is known without reading them. */
  total: z.number().int().optional(),
  /** How far the board is read, while a long board is looked at for the first time: items are missing until that is over. */
  reading: z.object({ read: z.number().int(), all: z.number().int().optional() }).optional(),
})
export type WireScan = z.infer<typeof scan>

/** An error, as every refused request answers it. */
export const problem = z.object({
  /** The stable code of the error: `NOT_FOUND`, `FORBIDDEN`. */
  code: z.string(),
  message: z.string(),
})
export type WireProblem = z.infer<typeof problem>
