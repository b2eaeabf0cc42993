/** A board as a whole: the overview, and the lists other than jobs. */
import { z } from 'zod'
import { scan, time } from './common.ts'
import { waitingFor } from './jobs.ts'

/** A number that is counted up to a limit. `atLeast`: there may be more. */
export const count = z.object({ value: z.number().int(), atLeast: z.boolean() })
export type WireCount = z.infer<typeof count>

export const overview = z.object({
  paused: z.boolean(),
  connected: z.boolean(),
  /** When the board was read. */
  at: time,
  jobs: z.object({ waiting: count, delayed: count, running: count, trashed: count }),
  byPriority: z.array(
    z.object({ priority: z.string(), waiting: z.number().int(), delayed: z.number().int(), running: z.number().int() }),
  ),
  /** The queues that have jobs, those with the most jobs first; at most 100. */
  byQueue: z.array(
    z.object({ queue: z.string(), waiting: z.number().int(), delayed: z.number().int(), running: z.number().int() }),
  ),
  /** The jobs of each flow; `trashed` counts the newest 1,000 of the trash, as far as they are of the last 24 hours. */
  byFlow: z.array(
    z.object({
      flow: z.string(),
      waiting: z.number().int(),
      delayed: z.number().int(),
      running: z.number().int(),
      trashed: z.number().int(),
    }),
  ),
  /** The due job that has waited longest. */
  oldestWaiting: z.object({ uuid: z.string(), name: z.string(), postedAt: time }).optional(),
  /** Why jobs wait: each reason with the number of the jobs that were looked at, the most frequent first. */
  waitingFor: z.array(z.object({ reason: waitingFor, jobs: z.number().int(), example: z.string() })),
  /** The number of jobs that wait for nothing but a free slot of a conductor. */
  waitingForSlot: z.number().int(),
  /** The number of jobs whose reasons were computed; absent if these are all. */
  reasonsOf: z.number().int().optional(),
  /** The jobs that run longest, the longest first; at most ten. */
  running: z.array(
    z.object({ uuid: z.string(), name: z.string(), owner: z.string().optional(), since: time.optional() }),
  ),
  slots: z.object({ busy: z.number().int(), all: z.number().int(), conductors: z.number().int() }),
  /** One item per minute, the oldest first, of the last hour as far as this server has seen it. */
  minutes: z.array(
    z.object({
      at: time,
      posted: z.number().int(),
      done: z.number().int(),
      trashed: z.number().int(),
      failed: z.number().int(),
    }),
  ),
  /** The most frequent reasons of the jobs that were moved to the trash in the last 24 hours, without cancelled ones; at most five. */
  failures: z.array(
    z.object({
      reason: z.string(),
      flow: z.string().optional(),
      jobs: z.number().int(),
      last: time,
      /** The search that finds these jobs in the trash, and those of the same reason that are older than 24 hours. */
      query: z.string(),
    }),
  ),
  /** The next five times of schedules. */
  nextSchedules: z.array(z.object({ id: z.string(), next: time })),
  /** Warnings for the operator: stopped limits, late schedules, conductors that do not report. */
  warnings: z.array(
    z.object({
      text: z.string(),
      /** Where the page shows it: `limits?key=api`. */
      page: z.string(),
    }),
  ),
})
export type WireOverview = z.infer<typeof overview>

export const queueRow = z.object({
  queue: z.string(),
  waiting: z.number().int(),
  delayed: z.number().int(),
  running: z.number().int(),
  /** The due job that has waited longest. */
  oldestWaiting: z.object({ uuid: z.string(), name: z.string(), postedAt: time }).optional(),
  /** `pattern`: the pattern whose limit is stopped; absent for a queue that was paused by its name. */
  paused: z
    .object({ since: time, by: z.string(), reason: z.string().optional(), pattern: z.string().optional() })
    .optional(),
  /** The names of the conductors that serve it. */
  conductors: z.array(z.string()),
})
export const queueList = z.object({
  queues: z.array(queueRow),
  /** Whether the board has more jobs than were counted. */
  more: z.boolean(),
})
export type WireQueue = z.infer<typeof queueRow>

export const flowRow = z.object({
  name: z.string(),
  version: z.string(),
  digest: z.string(),
  since: time,
  atoms: z.number().int(),
  /** The names of the conductors that have this flow. */
  conductors: z.array(z.string()),
  waiting: z.number().int(),
  delayed: z.number().int(),
  running: z.number().int(),
  /** Of the jobs in the history that the board keeps. */
  done: z.number().int().optional(),
  failed: z.number().int().optional(),
  /** The median duration of a run, in milliseconds, of those. */
  medianMs: z.number().optional(),
  /** Who has disabled it, and for which flow or pattern; absent while its jobs are claimed. */
  disabled: z.object({ flow: z.string(), by: z.string(), since: time, reason: z.string().optional() }).optional(),
})
export const flowList = z.object({ flows: z.array(flowRow) })
export type WireFlow = z.infer<typeof flowRow>

/** What is set for a flow, or for the flows of a pattern. */
export const flowSettingsRow = z.object({
  /** The flow, or the pattern: a prefix followed by `*`. */
  flow: z.string(),
  /** False where jobs of these flows are not claimed. */
  enabled: z.boolean(),
  /** As on the command line: `maxAttempts` and `7`. Absent if they cannot be read here. */
  settings: z.array(z.object({ key: z.string(), text: z.string() })).optional(),
  by: z.string().optional(),
  since: time.optional(),
  reason: z.string().optional(),
  declared: z.string().optional(),
  error: z.string().optional(),
})
export const flowSettingsList = z.object({ settings: z.array(flowSettingsRow) })
export type WireFlowSettings = z.infer<typeof flowSettingsRow>

/**
 * What became of a time of a schedule: a job was posted at its time, by hand, or for a time in the past; it was skipped; or the board has
 * refused the job.
 */
export const FIRING_OUTCOMES = ['posted', 'manual', 'backfill', 'skipped', 'refused'] as const
export type FiringOutcome = (typeof FIRING_OUTCOMES)[number]

export const scheduleRow = z.object({
  id: z.string(),
  state: z.enum(['active', 'waiting', 'paused', 'ended', 'unreadable']),
  rule: z.string(),
  /** The rule in words, if it can be read: `At 02:30, in Europe/Berlin`. */
  words: z.string().optional(),
  flow: z.string().optional(),
  version: z.string().optional(),
  tenant: z.string().optional(),
  next: time.optional(),
  /** The next times after that, at most five. */
  upcoming: z.array(time),
  lateMs: z.number().optional(),
  catchUp: z.string().optional(),
  overlap: z.string().optional(),
  paused: z.object({ since: time, by: z.string(), reason: z.string().optional() }).optional(),
  awaits: z.string().optional(),
  counts: z.record(z.string(), z.number()).optional(),
  failuresInRow: z.number().int().optional(),
  /** The newest first. */
  recent: z.array(
    z.object({
      nominal: time,
      at: time,
      outcome: z.enum(FIRING_OUTCOMES),
      /** The number of times in a row that were skipped for the same reason; absent for one. */
      count: z.number().int().optional(),
      uuid: z.string().optional(),
      reason: z.string().optional(),
    }),
  ),
  declared: z.string().optional(),
  error: z.string().optional(),
})
export const scheduleList = z.object({ schedules: z.array(scheduleRow) })
export type WireSchedule = z.infer<typeof scheduleRow>

export const limitKey = z.object({
  key: z.string(),
  running: z.number().int(),
  nextStart: time.optional(),
  waiting: z.number().int().optional(),
})
export const limitRow = z.object({
  key: z.string(),
  concurrency: z.number().optional(),
  rate: z.object({ limit: z.number(), perMs: z.number(), burst: z.number() }).optional(),
  fair: z.boolean().optional(),
  keys: z.array(limitKey),
  waiting: count.optional(),
  held: z.object({ until: time.optional(), reason: z.string().optional(), by: z.string(), since: time }).optional(),
  set: z.object({ by: z.string(), at: time }).optional(),
  declared: z.string().optional(),
  error: z.string().optional(),
})
export const limitList = z.object({ limits: z.array(limitRow) })
export type WireLimit = z.infer<typeof limitRow>

export const resourceRow = z.object({
  resource: z.string(),
  mode: z.enum(['exclusive', 'shared']),
  /** The jobs that hold it, and the first that wait for it. */
  holders: z.array(z.object({ uuid: z.string(), name: z.string(), owner: z.string().optional() })),
  waiting: count,
  firstWaiting: z.array(z.object({ uuid: z.string(), name: z.string() })),
})
export const resourceList = z.object({ resources: z.array(resourceRow), scan })
export type WireResource = z.infer<typeof resourceRow>

export const batchRow = z.object({
  uuid: z.string(),
  name: z.string(),
  state: z.string(),
  sealed: z.boolean(),
  total: z.number().int(),
  open: z.number().int(),
  done: z.number().int(),
  /** Those in the trash: they failed for the last time, expired, or were cancelled. */
  failed: z.number().int(),
  createdAt: time,
  endedAt: time.optional(),
  who: z.string(),
  reason: z.string().optional(),
})
export const batchList = z.object({ batches: z.array(batchRow) })
export type WireBatch = z.infer<typeof batchRow>

export const conductorRow = z.object({
  name: z.string(),
  host: z.string().optional(),
  pid: z.number().optional(),
  version: z.string().optional(),
  state: z.string().optional(),
  running: z.number().optional(),
  concurrency: z.number().optional(),
  queues: z.union([z.array(z.string()), z.record(z.string(), z.number())]).optional(),
  flows: z.array(z.string()).optional(),
  versions: z.record(z.string(), z.array(z.string())).optional(),
  /** The jobs that it has given back or lost, and whose tasks still keep slots. */
  unended: z.array(z.string()).optional(),
  /** The jobs that it runs, with the time since when, as far as it is known. */
  jobs: z.array(z.object({ uuid: z.string(), name: z.string().optional(), since: time.optional() })),
  children: z
    .array(
      z.object({
        number: z.number().optional(),
        pid: z.number().optional(),
        state: z.string().optional(),
        tasks: z.number().optional(),
        /** The resident memory when it was last reported, in bytes. */
        memory: z.number().optional(),
      }),
    )
    .optional(),
  noChild: z.string().optional(),
  startedAt: time.optional(),
  reportedAt: time.optional(),
  drainingSince: time.optional(),
  counts: z
    .object({
      done: z.number().optional(),
      failed: z.number().optional(),
      other: z.number().optional(),
      workedMs: z.number().optional(),
    })
    .optional(),
  /** The mean duration of a job since the conductor was started, in milliseconds. */
  meanMs: z.number().optional(),
  /** How many times longer its jobs take than jobs of the same flows on other conductors; absent if none can be compared. */
  slowness: z.number().optional(),
  /** The release of the application. */
  release: z.string().optional(),
  timeZones: z.string().optional(),
  /** By how much the clock of its machine is ahead of the servers' clock, in milliseconds, if they differ by seconds. */
  clockAheadMs: z.number().optional(),
  /** Set to `away` while it cannot reach the logbooks of the board. */
  logbooks: z.string().optional(),
})
export const conductorList = z.object({ conductors: z.array(conductorRow) })
export type WireConductor = z.infer<typeof conductorRow>

/** The trash by reason: numbers and uuids in reasons are replaced by `…`, so that like failures are together. */
export const trashGroup = z.object({
  reason: z.string(),
  flow: z.string().optional(),
  jobs: z.number().int(),
  first: time,
  last: time,
  example: z.string(),
  /** The search that finds the jobs of the group. */
  query: z.string(),
})
export const trashGroups = z.object({ groups: z.array(trashGroup), scan })
export type WireTrashGroup = z.infer<typeof trashGroup>

export const logbookRow = z.object({
  uuid: z.string(),
  name: z.string(),
  createdAt: time,
  updatedAt: time,
  flows: z.array(
    z.object({
      ...{ uuid: z.string(), name: z.string(), version: z.string(), state: z.string() },
      run: z.number().int(),
      updatedAt: time,
    }),
  ),
})
export const logbookPage = z.object({ logbooks: z.array(logbookRow), scan })
export type WireLogbookRow = z.infer<typeof logbookRow>

export const finding = z.object({
  level: z.enum(['ok', 'warning', 'fault']),
  subject: z.string(),
  text: z.string(),
  advice: z.string().optional(),
})
export const findings = z.object({ findings: z.array(finding), at: time })
export type WireFinding = z.infer<typeof finding>
