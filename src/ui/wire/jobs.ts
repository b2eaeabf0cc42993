/** Jobs in lists, and one job with all its details. */
import { z } from 'zod'
import { cancellation, failure, scan, time } from './common.ts'

/** WAITING: due, and not claimed. DELAYED: it waits for a time or for other jobs. DONE: it has ended, and only its logbook or the history knows it. */
export const JOB_STATES = ['WAITING', 'DELAYED', 'RUNNING', 'TRASHED', 'DONE'] as const

export const waitingFor = z.object({
  kind: z.enum(['pause', 'delay', 'job', 'resource', 'limit', 'flow', 'disabled', 'queue', 'suspect', 'refusal']),
  /** The reason for people. */
  text: z.string(),
  until: time.optional(),
  /** The key of the limit, or the name of the resource. */
  key: z.string().optional(),
  /** The uuids of jobs that are in the way; at most ten. */
  jobs: z.array(z.string()).optional(),
  flow: z.string().optional(),
  queue: z.string().optional(),
})
export type WireWaitingFor = z.infer<typeof waitingFor>

export const jobRow = z.object({
  uuid: z.string(),
  name: z.string(),
  flow: z.string().optional(),
  version: z.string().optional(),
  state: z.enum(JOB_STATES),
  cancelRequested: z.boolean(),
  owner: z.string().optional(),
  /** Absent where only the history or a logbook knows the job: they do not keep it. */
  priority: z.string().optional(),
  queue: z.string().optional(),
  runs: z.number().int(),
  /** The number of runs that have failed; runs that ended by the death of their owner are not counted. At `maxAttempts` it goes to the trash. */
  failed: z.number().int().optional(),
  maxAttempts: z.number().int().optional(),
  postedAt: time.optional(),
  /** The start of the run that owns the job now, or that has ended it. */
  runningSince: time.optional(),
  delayedUntil: time.optional(),
  /** The time at which it left the queue. */
  endedAt: time.optional(),
  /** Why it waits, if this is known without a request; or why it is in the trash. */
  reason: z.string().optional(),
  waitingFor: waitingFor.optional(),
  key: z.string().optional(),
  batch: z.string().optional(),
  schedule: z.string().optional(),
  /** The progress from 0 to 1 of a job that reports it. */
  progress: z.number().optional(),
})
export type WireJob = z.infer<typeof jobRow>

export const jobPage = z.object({ jobs: z.array(jobRow), scan })
export type WireJobPage = z.infer<typeof jobPage>

export const attempt = z.object({
  run: z.number().int(),
  who: z.string(),
  at: time,
  /** How it ended: `abandoned`, `lost`, `failed`, …; absent while it runs. */
  outcome: z.string().optional(),
  reason: z.string().optional(),
  /** Its duration in milliseconds, where it is known: the board keeps only the start of a run that was not the last one. */
  tookMs: z.number().optional(),
})
export type WireAttempt = z.infer<typeof attempt>

export const atom = z.object({
  name: z.string(),
  kind: z.enum(['task', 'retry']),
  state: z.string(),
  progress: z.number().optional(),
  message: z.string().optional(),
  /** The time of its last run, and the duration in milliseconds so far. */
  startedAt: time.optional(),
  tookMs: z.number().optional(),
  updatedAt: time,
  failure: failure.optional(),
  revertFailure: failure.optional(),
})
export type WireAtom = z.infer<typeof atom>

/** The newest run of a flow: `startedAt` and `tookMs` are absent until it has begun, and until it has ended. */
export const logbook = z.object({
  uuid: z.string(),
  name: z.string(),
  flow: z.string(),
  version: z.string(),
  state: z.string(),
  run: z.number().int(),
  createdAt: time,
  updatedAt: time,
  startedAt: time.optional(),
  tookMs: z.number().optional(),
  atoms: z.array(atom),
})
export type WireLogbook = z.infer<typeof logbook>

/** The options of a job that settings of its flow can replace. */
export const REPLACED_OPTIONS = [
  'maxAttempts',
  'backOff',
  'deadline',
  'onOwnerLost',
  'resultTtl',
  'expiresAfter',
] as const

export const jobDetail = jobRow.extend({
  ref: z.string().optional(),
  postedBy: z.string().optional(),
  keyTakenUntil: time.optional(),
  resources: z.object({ exclusive: z.array(z.string()), shared: z.array(z.string()) }).optional(),
  limits: z.array(z.object({ key: z.string(), cost: z.number() })).optional(),
  expiresAt: time.optional(),
  /** The maximum duration of a run, in milliseconds. */
  deadline: z.number().optional(),
  /** How long its results can be read after its end, in milliseconds; absent for as long as they are kept. */
  resultTtl: z.number().optional(),
  /** Set to `fail` for a job that goes to the trash when its owner is lost. */
  onOwnerLost: z.enum(['retry', 'fail']).optional(),
  /** The times between attempts, for people: `1s to 5m, factor 2`. */
  backOff: z.string().optional(),
  /** The settings of its flow that have replaced options of its post: each with the flow or pattern for which it is set. The options above are those that count. */
  settings: z.partialRecord(z.enum(REPLACED_OPTIONS), z.string()).optional(),
  after: z.array(z.object({ uuid: z.string(), on: z.enum(['done', 'settled']) })),
  dependents: z.array(z.string()),
  attempts: z.array(attempt),
  /** The numbers of the attempts that are not listed, by how they ended; the first two attempts and the last eight are listed. */
  omittedAttempts: z
    .object({ failed: z.number().int(), returned: z.number().int(), lost: z.number().int() })
    .optional(),
  cancellation: cancellation.optional(),
  /** Who has moved it to the trash. */
  trashedBy: z.string().optional(),
  failure: failure.optional(),
  /** The names of the values of the store; the values are asked for by themselves. Absent where the posting is gone. */
  storeKeys: z.array(z.string()).optional(),
  /** Null if no run has begun yet; absent where no logbooks are known. */
  logbook: logbook.nullable().optional(),
  /** The commands of the command line for what the page shows and does. */
  commands: z.record(z.string(), z.string()),
})
export type WireJobDetail = z.infer<typeof jobDetail>

/** The values of a job, for those who have the right to see them. Each is JSON; what JSON cannot hold is a text. */
export const jobValues = z.object({
  store: z.record(z.string(), z.unknown()),
  results: z.record(z.string(), z.unknown()).optional(),
})
export type WireJobValues = z.infer<typeof jobValues>
