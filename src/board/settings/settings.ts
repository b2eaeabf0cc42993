/**
 * The settings of flows as programs and people give them, and their checks.
 *
 * | settings | decided |
 * |---|---|
 * | `priority`, `queue`, `delay` | at the post |
 * | `expiresAfter`, `onOwnerLost` | at the post, and at a claim |
 * | `maxAttempts`, `backOff` | when a run has failed, and at a claim |
 * | `deadline`, `keepLogbooks` | when a run starts |
 * | `resultTtl` | when a run starts, and when the job is done |
 * | `keepResults` | when the job is done |
 * | `removeTrashAfter` | while a job is in the trash |
 * | `enabled` | at each claim |
 */
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { ILL_FORMED, shortenText, suggestion } from '../../core/texts.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import type { StoredBackOff } from '../model/back-off.ts'
import type { Priority } from '../model/claim-order.ts'
import { makePosting, type PostOptions } from '../model/posting/post-options.ts'
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

/** The names of all settings, in the order in which they are listed. */
export const SETTING_KEYS = Object.keys(KNOWN) as readonly (keyof FlowSettingValues)[]

/** Converts settings to the form of a record. @throws InvalidArgument */
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

/** Converts settings that are options of a post, too: the posting that is made of them checks them. */
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

/** Checks the settings of one record together. @throws InvalidArgument */
export function assertStorable(pattern: string, { force: _, ...settings }: StoredSettings): void {
  const what = `settings of flow ${pattern}`
  if (Object.keys(settings).length === 0)
    throw new InvalidArgument(`${what}: give at least one besides force, as in { maxAttempts: 7 }`)
  const { delay, expiresAfter } = settings
  if (delay !== undefined && expiresAfter !== undefined && delay >= expiresAfter)
    throw new InvalidArgument(
      `${what}: expiresAfter must be longer than delay: the jobs would expire before they could be claimed`,
    )
}

/** Checks the names of settings to remove. @throws InvalidArgument */
export function assertSettingKeys(keys: unknown): asserts keys is readonly (keyof FlowSettingValues)[] {
  if (!Array.isArray(keys) || keys.length === 0)
    throw new InvalidArgument("flowSettings.unset: keys must be a list of settings, such as ['maxAttempts']")
  const unknown = keys.find((key) => !SETTING_KEYS.some((known) => known === key))
  if (unknown === undefined) return
  const name = shortenText(String(unknown))
  throw new InvalidArgument(`flowSettings.unset: there is no setting ${name}${suggestion(name, SETTING_KEYS)}`)
}
