/** The session: the person, their rights, and the boards. */
import { z } from 'zod'
import { time } from './common.ts'
import { LEVELS } from './rights.ts'

export { LEVELS, type Level } from './rights.ts'

export const boardSummary = z.object({
  /** The name by which paths and links refer to the board. */
  name: z.string(),
  /** The URI without a password. */
  uri: z.string(),
  /** The level of the person on this board. */
  level: z.enum(LEVELS),
  kind: z.enum(['memory', 'sqlite', 'zookeeper', 'postgres', 'redis']),
  /** Whether the board is paused. */
  paused: z.boolean(),
  /** Who has paused it, when and why; absent if it is not known. */
  pause: z.object({ by: z.string(), since: time, reason: z.string().optional() }).optional(),
  /** The features of this board. The pages of other features say that they are not supported. */
  supports: z.object({
    limits: z.boolean(),
    flowSettings: z.boolean(),
    batches: z.boolean(),
    history: z.boolean(),
    logbooks: z.boolean(),
  }),
})
export type WireBoard = z.infer<typeof boardSummary>

export const session = z.object({
  who: z.string(),
  level: z.enum(LEVELS),
  values: z.boolean(),
  /** Whether the server refuses all actions, for all users. */
  readOnly: z.boolean(),
  version: z.string(),
  /** The time of the server, by which ages are computed. */
  now: time,
  boards: z.array(boardSummary),
  /** Whether the server can run the doctor. */
  doctor: z.boolean(),
})
export type WireSession = z.infer<typeof session>
