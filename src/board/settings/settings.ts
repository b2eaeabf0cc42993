/**
 * The settings of flows as programs and people give them, and their checks.
 *
 * | keys | take effect |
 * |---|---|
 * | `priority`, `queue`, `delay` | when a job is posted |
 * | `expiresAfter`, `onOwnerLost` | when a job is posted, and when it is claimed |
 * | `maxAttempts`, `backOff`, `deadline` | when a job is claimed or settled, also for jobs that were posted before |
 * | `resultTtl`, `keepResults`, `keepLogbooks`, `removeTrashAfter` | when a job is run, has ended, or is in the trash |
 * | `enabled` | at each claim: jobs of a flow that is not enabled are posted, and wait |
 */
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { ILL_FORMED, shortenText } from '../../core/texts.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import type { StoredBackOff } from '../model/back-off.ts'
import type { Priority } from '../model/claim-order.ts'
import { makePosting, type PostOptions } from '../model/posting.ts'
import { MAX_RECORD_ID_LENGTH } from '../model/record.ts'

/** The settings of a flow, or of all flows with the prefix of a pattern. At least one of them is set. */
export interface FlowSettingValues
  extends Pick<
    PostOptions,
    | 'priority'
    | 'queue'
    | 'delay'
    | 'expiresAfter'
    | 'onOwnerLost'
    | 'maxAttempts'
    | 'backOff'
    | 'deadline'
    | 'resultTtl'
  > {
  /** Whether the board keeps the results of jobs. */
  readonly keepResults?: boolean
  /** The time for which logbooks are kept after their last change. */
  readonly keepLogbooks?: Duration | 'forever'
  /** The time after which conductors remove jobs from the trash. */
  readonly removeTrashAfter?: Duration
  /** Whether jobs are claimed; true by default. With `false` they are posted and wait. */
  readonly enabled?: boolean
  /** Whether these settings replace what callers of `post` say, too; false by default. */
  readonly force?: boolean
}

/** The name of a setting, without `force`. */
export type FlowSettingKey = Exclude<keyof FlowSettingValues, 'force'>

/** The settings as their record has them. Times are in milliseconds. */
export interface StoredSettings {
  readonly priority?: Priority
  readonly queue?: string
  readonly delay?: number
  readonly expiresAfter?: number
  readonly onOwnerLost?: 'retry' | 'fail'
  readonly maxAttempts?: number
  readonly backOff?: StoredBackOff
  readonly deadline?: number
  readonly resultTtl?: number
  readonly keepResults?: boolean
  readonly keepLogbooks?: number | 'forever'
  readonly removeTrashAfter?: number
  readonly enabled?: boolean
  readonly force?: true
}

const KNOWN: KnownOptions<FlowSettingValues> = {
  ...{ priority: true, queue: true, delay: true, expiresAfter: true, onOwnerLost: true, maxAttempts: true },
  ...{ backOff: true, deadline: true, resultTtl: true, keepResults: true, keepLogbooks: true, removeTrashAfter: true },
  ...{ enabled: true, force: true },
}

/** The names of all settings, in the order in which they are shown. */
export const SETTING_KEYS = Object.keys(KNOWN) as readonly (keyof FlowSettingValues)[]

/** Checks settings, and returns them as a record has them. @throws InvalidArgument */
export function toStoredSettings(pattern: string, values: FlowSettingValues): StoredSettings {
  const what = `settings of flow ${pattern}`
  assertOptions(values, KNOWN, what)
  const { keepResults, keepLogbooks, removeTrashAfter, enabled, force, ...post } = values
  for (const [name, value] of Object.entries({ keepResults, enabled, force }))
    if (value !== undefined && typeof value !== 'boolean')
      throw new InvalidArgument(`${what}: ${name} must be true or false, got ${shortenText(String(value))}`)
  return {
    ...toPostSettings(post, what),
    ...(keepResults === undefined ? {} : { keepResults }),
    ...(keepLogbooks === undefined
      ? {}
      : {
          keepLogbooks:
            keepLogbooks === 'forever' ? keepLogbooks : toMilliseconds(keepLogbooks, `${what}: keepLogbooks`),
        }),
    ...(removeTrashAfter === undefined
      ? {}
      : { removeTrashAfter: toMilliseconds(removeTrashAfter, `${what}: removeTrashAfter`) }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(force ? { force } : {}),
  }
}

/** Checks the settings that are options of a post, by making a posting with them. */
function toPostSettings(post: PostOptions, what: string): StoredSettings {
  try {
    const posting = makePosting({ ...post, ...{ name: 'settings', details: {} } })
    const made = { ...posting, queue: posting.queue ?? post.queue, onOwnerLost: post.onOwnerLost }
    // A posting has a priority and a number of attempts also where none is given.
    const given = Object.entries(made).filter(([name]) => Object(post)[name] !== undefined)
    return Object.fromEntries(given)
  } catch (error) {
    if (!(error instanceof JobboardError)) throw error
    throw new InvalidArgument(`${what}: ${error.message.replace(/^job [\da-f-]{36}: /, '')}`, { cause: error })
  }
}

/** Checks the name of a flow, or a pattern: a prefix followed by `*`. @throws InvalidArgument */
export function assertFlowPattern(pattern: unknown): asserts pattern is string {
  if (typeof pattern !== 'string' || pattern === '')
    throw new InvalidArgument("settings of flows: the flow must be a name, or a pattern such as 'report*' or '*'")
  const what = `settings of flow ${shortenText(pattern)}`
  if (!pattern.isWellFormed()) throw new InvalidArgument(`${what}: the name ${ILL_FORMED}`)
  if (pattern.length > MAX_RECORD_ID_LENGTH)
    throw new InvalidArgument(`${what}: a name or pattern has at most ${MAX_RECORD_ID_LENGTH} characters`)
  if (pattern.slice(0, -1).includes('*'))
    throw new InvalidArgument(`${what}: a pattern has one *, at its end, such as report*`)
}

/** Checks the names of settings to remove. @throws InvalidArgument */
export function assertSettingKeys(keys: unknown, what: string): asserts keys is readonly (keyof FlowSettingValues)[] {
  const isList = Array.isArray(keys) && keys.length > 0
  if (!isList) throw new InvalidArgument(`${what}: keys must be a list of settings, such as ['maxAttempts']`)
  const asked = Object.fromEntries(keys.map((key) => [String(key), true]))
  assertOptions(asked, KNOWN, what)
}
