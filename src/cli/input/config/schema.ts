/**
 * The schema of `jobboard.yaml`, from which its checks, `jobboard config show` and the published JSON Schema are made. Texts may contain
 * `${NAME}`, so values are checked once more when their variables are replaced: see `kinds.ts`.
 */
import { z } from 'zod'
import {
  CATCH_UP_CHOICES,
  LOG_FORMAT_CHOICES,
  LOG_LEVEL_CHOICES,
  MAX_ATTEMPTS,
  OVERLAP_CHOICES,
  PRIORITY_CHOICES,
  SIZE_CHOICES,
} from '../choices.ts'
import { choice, count, data, duration, flag, module, number, rate, secret, size, text, uri } from './kinds.ts'

const modules = (description: string) => z.union([module(description), z.array(module(description))])
const flows = modules('A module of flows: a path, a package, or auto')

const boardFields = {
  auth: secret('The credentials user:password, like JOBBOARD_ZOOKEEPER_AUTH').optional(),
  persistence: uri('The name of one of the persistences, or a URI').optional(),
  flows: flows.optional(),
}
const boardUri = () => uri('The URI of the board')
const board = z.union([boardUri(), z.strictObject({ uri: boardUri(), ...boardFields })])
const boardPart = z.union([boardUri(), z.strictObject({ uri: boardUri().optional(), ...boardFields })])

const persistenceFields = {
  key: secret('The key of encrypted logbooks, like JOBBOARD_LOGBOOK_KEY').optional(),
  codec: module('The module that exports the codec, like --codec').optional(),
  require: flag('Whether encryption is required, like JOBBOARD_LOGBOOK_REQUIRE').optional(),
}
const persistenceUri = () => uri('The URI of the logbooks')
const persistence = z.union([persistenceUri(), z.strictObject({ uri: persistenceUri(), ...persistenceFields })])
const persistencePart = z.union([
  persistenceUri(),
  z.strictObject({ uri: persistenceUri().optional(), ...persistenceFields }),
])

/** The options of jobs, as a posting has them, which settings of flows can have, too. */
const posting = {
  priority: choice('The priority of the jobs', PRIORITY_CHOICES).optional(),
  queue: text('The queue of the jobs').optional(),
  maxAttempts: count('The number of failed runs after which a job goes to the trash', {
    most: MAX_ATTEMPTS,
  }).optional(),
  backOff: z
    .strictObject({
      first: duration('The pause after the first failed run').optional(),
      factor: number('The factor by which the pause grows').optional(),
      max: duration('The longest pause').optional(),
      jitter: choice('full: a random part of the pause is waited', ['full', 'none']).optional(),
    })
    .optional(),
  expiresAfter: duration('The time after which a job that has not started goes to the trash').optional(),
  deadline: duration('The time limit of a run').optional(),
  resultTtl: duration('The time after the end of a job for which its results can be read').optional(),
  onOwnerLost: choice('The handling of a job whose owner dies', ['retry', 'fail']).optional(),
}

/** The options of jobs, with what they own and keep. */
const jobOptions = {
  ...posting,
  size: choice('Deprecated: queue', SIZE_CHOICES).optional(),
  resources: z
    .strictObject({
      exclusive: z.array(text('A resource that a job owns alone while it runs')).optional(),
      shared: z.array(text('A resource that a job owns together with others')).optional(),
    })
    .optional(),
  limits: z
    .array(
      z.union([
        text('The key of a limit'),
        z.strictObject({ key: text('The key of a limit'), cost: count('The tokens that a start takes').optional() }),
      ]),
    )
    .optional(),
}

const flowDefaults = z.strictObject({
  ...jobOptions,
  keepLogbooks: duration('The time for which the logbooks of its jobs are kept', ['forever']).optional(),
  keepResults: flag('Whether the board keeps the results of its jobs').optional(),
})

const flowSettings = z.strictObject({
  ...posting,
  delay: duration('The time after the post before which a job is not claimed').optional(),
  keepLogbooks: duration('The time for which the logbooks of its jobs are kept', ['forever']).optional(),
  keepResults: flag('Whether the board keeps the results of its jobs').optional(),
  removeTrashAfter: duration('The time after which its jobs are removed from the trash').optional(),
  enabled: flag('Whether its jobs are claimed').optional(),
  force: flag('Whether these settings replace what posts say, too').optional(),
  reason: text('The reason, for people').optional(),
  version: count('A process with a lower version changes nothing', { least: 0 }).optional(),
})

const limit = z.strictObject({
  concurrency: count('The number of jobs of the key that run at once; 0 starts none', { least: 0 }).optional(),
  rate: rate('The number of jobs of the key that start in a time, such as 100/1m').optional(),
  burst: count('The number of jobs that may start at once after a pause').optional(),
  fair: flag('Whether the keys of a pattern take turns').optional(),
  version: count('A process with a lower version changes nothing', { least: 0 }).optional(),
})

const scheduleFields = {
  cron: text("A cron expression, such as '30 2 * * 1-5'").optional(),
  every: duration('An interval').optional(),
  rrule: text("A calendar rule, such as 'FREQ=MONTHLY;BYDAY=-1FR'").optional(),
  at: text('A single time').optional(),
  zone: text('The time zone of the local times, such as Europe/Berlin').optional(),
  start: text('Nothing fires before it').optional(),
  end: text('Nothing fires after it').optional(),
  exclude: z.array(text('A local date on which nothing fires')).optional(),
  offset: duration('The time after each full interval').optional(),
  from: choice('Counts the interval from the end of the previous job', ['completion']).optional(),
  store: data('The inputs of the flow').optional(),
  catchUp: choice('The missed times that are caught up', CATCH_UP_CHOICES).optional(),
  window: duration('The maximum age of a time that is caught up').optional(),
  max: count('The number of times that are caught up at once', { most: 100 }).optional(),
  overlap: choice('The handling of a time while an earlier job is on the board', OVERLAP_CHOICES).optional(),
  jitter: duration('Each job is posted up to so much later').optional(),
  times: count('The schedule ends after so many jobs').optional(),
  pauseAfterFailures: count('It is paused after so many failed jobs in a row').optional(),
  tenants: z.union([z.literal('all'), z.array(text('The name of a tenant'))]).optional(),
  post: z.strictObject({ name: text('The name of the jobs').optional(), ...jobOptions }).optional(),
  version: count('A process with a lower version changes nothing', { least: 0 }).optional(),
  enabled: flag('Whether it posts jobs').optional(),
}
/** Without a flow, it changes a schedule that a module of flows exports. */
const schedule = z.strictObject({ flow: text('The name of the flow').optional(), ...scheduleFields })

const { tenants: _, ...ownScheduleFields } = scheduleFields
/** Replaces the common schedule of this name for one tenant; `enabled` alone only switches it. */
const ownSchedule = z.strictObject({ flow: text('The name of the flow').optional(), ...ownScheduleFields })

const tenant = z.strictObject({
  store: data('Replaces parts of the store of each schedule').optional(),
  schedules: z.record(z.string(), ownSchedule).optional(),
  limit: limit.optional(),
})

/** The child processes of `jobboard conductor` and `jobboard run`. */
const pool = z.strictObject({
  isolate: choice('The tasks that run in child processes', ['declared', 'all']).optional(),
  min: count('The number of children that are kept', { least: 0 }).optional(),
  max: count('The maximum number of children').optional(),
  maxTasks: count('A child is replaced after so many tasks').optional(),
  maxAge: duration('A child is replaced after this time').optional(),
  memory: size('A child that takes more ends').optional(),
  startTimeout: duration('The time limit for the start of a child').optional(),
  grace: duration('The time that a task has to stop').optional(),
  maxMessage: size('The largest message between the processes').optional(),
  env: z.array(text('The name of an environment variable that children get, as in AWS_*')).optional(),
})

/** The options of `jobboard conductor`. */
const conductor = z.strictObject({
  concurrency: count('The number of jobs that run at once').optional(),
  flowConcurrency: count('The number of tasks of one flow that run at once').optional(),
  name: text('The name on the board, unique among living conductors').optional(),
  queues: z
    .union([
      z.array(text('A queue whose jobs it claims, or a pattern; those of the first before those of the next')).min(1),
      z.record(z.string(), count('The share of the queue in the claims')),
    ])
    .optional(),
  size: z.array(choice('Deprecated: queues', SIZE_CHOICES)).optional(),
  burst: flag('Whether it stops when nothing is left to claim').optional(),
  maxJobs: count('It stops after so many jobs').optional(),
  maxIdleTime: duration('It stops after this time without a running job').optional(),
  takeoverDelay: duration('The time for which half-done jobs of dead owners are not claimed').optional(),
  defaultDeadline: duration('The time limit of a run of a job without a deadline').optional(),
  unacceptedAfter: duration('The time for which a job whose flow no conductor knows blocks its resources').optional(),
  drainTimeout: duration('The time that a stop waits for running jobs').optional(),
  abortTimeout: duration('The time that an abort waits for tasks that ignore it').optional(),
  onFailure: choice('The handling of jobs that were reverted', ['retry', 'consume']).optional(),
  removeLogbooksAfter: duration('Removes logbooks this long after their flows have ended').optional(),
  removeTrashAfter: duration('Removes jobs that have been in the trash for this time').optional(),
  failuresOnBoard: choice('The part of failures that goes to the board', ['whole', 'named']).optional(),
  health: z
    .union([z.int(), text('host:port')])
    .describe('Where /healthz and /readyz are answered: [host:]port')
    .optional(),
  metrics: z
    .union([
      flag('Whether /metrics is answered, too'),
      z.strictObject({
        maxNames: count('The maximum number of flows and schedules with a name of their own in the metrics').optional(),
      }),
    ])
    .optional(),
  otel: z
    .union([
      flag('Whether metrics and spans go to the OpenTelemetry SDK that node --import has set up'),
      z.strictObject({
        propagation: choice('How runs refer to posts', ['link', 'parent', 'none']).optional(),
      }),
    ])
    .optional(),
  weights: z.array(count('The share of a board in the claims')).optional(),
  release: text("The name of the application's release, for hooks; like JOBBOARD_RELEASE").optional(),
  logLevel: choice('The least level that is logged', LOG_LEVEL_CHOICES).optional(),
  logFormat: choice('JSON lines, or lines for people', LOG_FORMAT_CHOICES).optional(),
})

const common = {
  /** The default board: a name, or a URI. */
  board: z
    .union([uri('The default board: a name, or a URI'), z.array(uri('A board of jobboard conductor')).min(1)])
    .optional(),
  persistence: uri('The default logbooks: a name, or a URI').optional(),
  flows: flows.optional(),
  hooks: modules('A module that exports hooks or onError of conductors: a path or a package').optional(),
  timeout: duration('The time limit for opening the board').optional(),
  redact: z.array(text('The values of this key are hidden')).optional(),
  owner: text('Names this file on its boards: limits and schedules that it no longer has are removed').optional(),
  pool: pool.optional(),
  conductor: conductor.optional(),
  'flow-defaults': z.record(z.string(), flowDefaults).optional(),
  'flow-settings': z.record(z.string(), flowSettings).optional(),
  limits: z.record(z.string(), limit).optional(),
  tenants: z.union([z.array(text('The name of a tenant')), z.record(z.string(), tenant.nullable())]).optional(),
}

/** The settings that apply: the file with one of its deployments, or without one. */
export const CONFIG = z.strictObject({
  boards: z.record(z.string(), board).optional(),
  persistences: z.record(z.string(), persistence).optional(),
  ...common,
  schedules: z.record(z.string(), schedule).optional(),
})

export type Config = z.infer<typeof CONFIG>

/** A deployment: changes of the file, with a part of what each section needs. */
const DEPLOYMENT = z.strictObject({
  boards: z.record(z.string(), boardPart).optional(),
  persistences: z.record(z.string(), persistencePart).optional(),
  ...common,
  schedules: z.record(z.string(), schedule).optional(),
})

/** The file as it is written. */
export const DOCUMENT = z.strictObject({
  ...DEPLOYMENT.shape,
  deployments: z.record(z.string(), DEPLOYMENT.nullable()).optional(),
})

/** Returns the JSON Schema of the file, for editors. */
export function toJsonSchema(): object {
  return {
    ...z.toJSONSchema(DOCUMENT, { io: 'input', target: 'draft-7', reused: 'ref' }),
    title: 'jobboard.yaml',
    description: 'The configuration of jobboard: https://www.npmjs.com/package/jobboard',
  }
}
