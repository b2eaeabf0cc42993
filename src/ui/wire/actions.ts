/** The requests that change something. Each needs a right, which the server checks, and is logged with the name of the person. */
import { z } from 'zod'

const reason = z.string().max(1_000).optional()

/** The actions on jobs. `release` takes the claim of a stuck job away. */
export const JOB_ACTIONS = ['cancel', 'restore', 'purge', 'release'] as const
export type JobAction = (typeof JOB_ACTIONS)[number]

export const jobActionBody = z.object({ reason })

/** Many jobs: by name, or all that match a search. */
export const bulkBody = z
  .object({
    action: z.enum(['cancel', 'restore', 'purge']),
    uuids: z.array(z.string()).min(1).max(10_000).optional(),
    /** The search, as in the list of jobs. */
    query: z.string().max(2_000).optional(),
    reason,
    /** Counts only. The page shows the number before it asks. */
    dryRun: z.boolean().optional(),
    /** The number that was shown: the server refuses to act on more jobs than this, with code `CHANGED`. */
    expected: z.number().int().optional(),
    /** The most jobs to change, for a search with `more`; then `expected` is not needed. */
    limit: z.number().int().min(1).max(10_000).optional(),
  })
  .refine(({ uuids, query }) => (uuids === undefined) !== (query === undefined), 'either uuids or query')
export type BulkBody = z.infer<typeof bulkBody>

export const bulkResult = z.object({
  matched: z.number().int(),
  /** Whether there may be more: one request finds at most 10,000 jobs, in at most 10 s. */
  more: z.boolean(),
  done: z.number().int(),
  /** The first 1,000 jobs that could not be changed, and the number of all of them. */
  failed: z.array(z.object({ uuid: z.string(), code: z.string(), message: z.string() })),
  failures: z.number().int(),
  /** The number of jobs that were not tried, because the time of one request was over. */
  left: z.number().int(),
})
export type WireBulkResult = z.infer<typeof bulkResult>

export const postBody = z.object({
  flow: z.string().min(1).max(1_000),
  store: z.record(z.string(), z.unknown()).optional(),
  priority: z.string().optional(),
  key: z.string().optional(),
})

export const scheduleActionBody = z.object({
  id: z.string(),
  action: z.enum(['pause', 'resume', 'trigger', 'remove']),
  reason,
})

export const queueActionBody = z.object({ queue: z.string(), action: z.enum(['pause', 'resume']), reason })

export const limitActionBody = z.discriminatedUnion('action', [
  z.object({
    action: z.literal('set'),
    key: z.string(),
    concurrency: z.number().optional(),
    rate: z.object({ limit: z.number(), perMs: z.number(), burst: z.number().optional() }).optional(),
    fair: z.boolean().optional(),
  }),
  z.object({ action: z.literal('remove'), key: z.string() }),
  z.object({ action: z.literal('stop'), key: z.string(), reason }),
  z.object({ action: z.literal('pushBack'), key: z.string(), forMs: z.number().int().min(1), reason }),
  z.object({ action: z.literal('resume'), key: z.string() }),
])

/** The settings are words as on the command line: `maxAttempts=7`. `unset` without `keys` removes all settings of the flow or pattern. */
export const flowSettingsActionBody = z.discriminatedUnion('action', [
  z.object({ action: z.literal('set'), flow: z.string(), settings: z.array(z.string()).min(1).max(100), reason }),
  z.object({
    action: z.literal('unset'),
    flow: z.string(),
    keys: z.array(z.string()).min(1).max(100).optional(),
    reason,
  }),
])

export const batchActionBody = z.object({ action: z.enum(['cancel', 'retry']), reason })

/** `restored`, `triggered`: the uuids of jobs that the action has made or moved. */
export const done = z.object({
  ok: z.literal(true),
  uuids: z.array(z.string()).optional(),
  text: z.string().optional(),
})
export type WireDone = z.infer<typeof done>

export { NEEDS } from './rights.ts'
