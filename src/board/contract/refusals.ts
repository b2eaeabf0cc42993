/** The errors of refusals: each reason has one class and one sentence, whichever backend refuses. */
import { ClaimLost, Duplicate, type JobboardError, LimitsChanged, NotFound, Unclaimable } from '../../core/errors.ts'

/**
 * The reason why an operation was refused.
 *
 * | `why` | the operation | what the board has |
 * |---|---|---|
 * | `gone` | any of a job | no such job any more |
 * | `changed` | a claim, a discard, a replacement | another owner of the job, another revision, or for a replacement a cancel request |
 * | `paused` | a claim | a pause |
 * | `waits` | a claim | a job on which this one depends |
 * | `resource` | a claim | another job with the resource |
 * | `limits` | a claim, tokens | other limits than the claim has read |
 * | `lost` | a settlement | no such claim any more |
 * | `over` | a settlement, an operation of a session | another session, or none |
 * | `not in trash` | a restoration, a purge | no such entry any more |
 * | `key` | a restoration | another job with the key |
 * | `batch` | a batch is created | a batch with this uuid |
 * | `name` | a registration | a living entity of another instance with the name |
 */
export type Refusal =
  | { readonly why: Exclude<keyof typeof MEANINGS, 'resource'> }
  | { readonly why: 'resource'; readonly resource: string | undefined }

const MEANINGS = {
  gone: [NotFound, 'it has left the board'],
  changed: [Unclaimable, 'it was claimed or changed by another owner'],
  paused: [Unclaimable, 'the board is paused'],
  waits: [Unclaimable, 'it waits for other jobs'],
  resource: [Unclaimable, 'another job holds resource'],
  limits: [LimitsChanged, 'the limits of the board were changed'],
  lost: [ClaimLost, 'the claim is lost; stop and write nothing'],
  over: [ClaimLost, 'the session that claimed it is over; stop and write nothing'],
  'not in trash': [NotFound, 'it is not in the trash any more'],
  key: [Duplicate, 'its key is taken on the board; restore it when the key is free'],
  batch: [Duplicate, 'it is on the board already'],
  name: [Duplicate, 'the name is in use; choose another'],
} as const satisfies Readonly<Record<string, readonly [typeof JobboardError, string]>>

/**
 * Returns the error of a refusal.
 *
 * @param what the operation and what it is about, with which the sentence begins
 * @example throw refusalError(`claim of ${toJobName(posting)}`, { why: 'paused' })
 */
export function refusalError(what: string, refusal: Refusal, cause?: unknown): JobboardError {
  const [type, text] = MEANINGS[refusal.why]
  const resource = refusal.why === 'resource' ? ` ${refusal.resource}` : ''
  return new type(`${what}: ${text}${resource}`, cause === undefined ? {} : { cause })
}
