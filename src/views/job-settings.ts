/** The settings of flows that replace options of a job: what the command line and the page of the job show of them. */
import type { Job, StoredSettings } from '../board/index.ts'
import type { BoardInternals, FlowRules } from '../board/internal.ts'
import { AccessDenied } from '../core/errors.ts'
import { defined } from '../core/options.ts'
import { toDate } from '../core/time.ts'
import { settingTexts } from './flow-settings-view.ts'

/** The options of a posting that settings replace at a claim or a settlement. */
type ReplacedKey = ReturnType<FlowRules['replacing']> extends ReadonlyMap<infer Key, unknown> ? Key : never

/** The settings that count in place of options of a job's posting, each with the flow or pattern for which it is set. */
export type JobSettings = {
  readonly [Key in ReplacedKey]?: { readonly value: NonNullable<StoredSettings[Key]>; readonly from: string }
}

/**
 * Reads the settings that replace options of a job; undefined if there are none. Settings that this user may not read are left out.
 *
 * @param internals the internals of the job's board: this module does not load the board, so that commands start fast
 * @throws NotConnected
 */
export async function readJobSettings(
  job: Job,
  internals: Pick<BoardInternals, 'postingOf' | 'readFlowRules'>,
): Promise<JobSettings | undefined> {
  const rules = await internals.readFlowRules().catch((error: unknown) => {
    if (!(error instanceof AccessDenied)) throw error
  })
  const posting = internals.postingOf(job)
  // A job that has begun does not expire.
  const replaced = [...(rules?.replacing(posting) ?? [])].filter(
    ([key]) => key !== 'expiresAfter' || posting.runs === 0,
  )
  if (replaced.length === 0) return undefined
  return Object.fromEntries(replaced.map(([key, { value, from }]) => [key, { value, from }]))
}

/** The options of a job as settings have replaced them. */
export interface ReplacedOptions {
  readonly maxAttempts?: number
  readonly backOff?: NonNullable<Job['backOff']>
  readonly deadline?: number
  readonly onOwnerLost?: 'retry' | 'fail'
  readonly resultTtl?: number
  readonly expiresAt?: Date
}

/** Returns the options that count in place of those of the posting. */
export function replacedOptions(
  settings: JobSettings = {},
  { postedAt }: { readonly postedAt?: Date | undefined },
): ReplacedOptions {
  const { maxAttempts, backOff, deadline, onOwnerLost, resultTtl, expiresAfter } = settings
  return defined({
    ...{ maxAttempts: maxAttempts?.value, backOff: backOff?.value, deadline: deadline?.value },
    ...{ onOwnerLost: onOwnerLost?.value, resultTtl: resultTtl?.value },
    expiresAt: expiresAfter && postedAt ? toDate(postedAt.getTime() + expiresAfter.value) : undefined,
  })
}

/** Describes the settings on one line, each with its origin: `maxAttempts=7 (report*), deadline=1h (*)`. */
export function describeJobSettings(settings: JobSettings): string {
  return Object.entries(settings)
    .map(([key, { value, from }]) => {
      const texts = settingTexts({ [key]: value }).map((each) => `${each.key}=${each.text}`)
      return `${texts.join(' ')} (${from})`
    })
    .join(', ')
}
