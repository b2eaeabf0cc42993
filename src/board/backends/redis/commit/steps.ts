/** The steps of the commit script, and what the steps of several roles have in common: words, names, and what a refusal means. */
import { WritesRefused } from '../../../../core/errors.ts'
import type { ClaimRequest, DiscardRequest } from '../../../contract/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import { cascadeCancellation, type Dependency } from '../../../model/dependencies.ts'
import { encodeEndedJob } from '../../../model/ended-job.ts'
import { limitReachedError } from '../../../model/limits.ts'
import { closedBatchError, duplicateMemberError, unknownBatchError } from '../../../model/post-batch.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { encodeCancellation, encodeTrash } from '../store/encodings.ts'
import { fieldName } from '../store/layout.ts'

/** The name of a step and its arguments, in the order of the script's function. A missing argument is null, because the script cannot skip one. */
export type StepArguments = readonly [
  name: string,
  ...values: (string | number | boolean | null | Uint8Array | readonly string[])[],
]

export interface ScriptStep {
  readonly arguments: StepArguments
  /** The name of the operation for messages: `consume of job UUID (NAME)`. */
  readonly what: string
  /** The approximate size, in bytes. */
  readonly bytes: number
  /** Whether the step takes memory for long, so that a server with full memory must refuse it. */
  readonly grows?: true
  /** The only session in which the step may be executed. */
  readonly session?: string
}

/** The assumed size of a step without byte values. */
export const SMALL_STEP_BYTES = 100

/** The size of a dependency in a step, and of its removal. */
export const DEPENDENCY_BYTES = 40

/** Returns the step that moves a job to the trash, with the cancel request for the jobs that depend on it. */
export function trashStep(kind: 'trash' | 'discard', trashed: DiscardRequest): ScriptStep {
  const { id, revision, posting, at } = trashed
  const entry = encodeTrash(trashed)
  const { words, bytes } = toHistoryWords(trashed)
  const request = encodeCancellation(cascadeCancellation(trashed))
  return {
    arguments: [kind, id, revision, entry, toKeyField(posting), posting.uuid, ...words, request, at?.getTime() ?? null],
    what: `trash of ${toJobName(posting)}`,
    bytes: entry.length + request.length + bytes,
  }
}

/** Returns the words that add the end of a job to the history, and the approximate size of the step without other byte values. */
export function toHistoryWords({ posting, history }: Pick<DiscardRequest, 'posting' | 'history'>): {
  readonly words: readonly [record: Uint8Array | null, keep: number]
  readonly bytes: number
} {
  const record = history && encodeEndedJob(history.job)
  const bytes = SMALL_STEP_BYTES + (record?.length ?? 0) + DEPENDENCY_BYTES * (posting.after?.length ?? 0)
  return { words: [record ?? null, history?.keep ?? 0], bytes }
}

/** Returns a word for each job on which another one depends: `=ID` if it must be done, `~ID` if it must have ended in any way. */
export function toDependencyWords(after: readonly Dependency[]): readonly string[] {
  return after.map(({ id, on }) => `${on === 'settled' ? '~' : '='}${id}`)
}

/** Returns the field of the posting's key. */
export function toKeyField({ key }: Posting): string | null {
  return key === undefined ? null : fieldName(key)
}

/** Returns the name of a job for messages. */
export function toJobName({ uuid, name }: Posting): string {
  return `job ${uuid} (${name})`
}

/** Returns the error of a refused claim, discard or replacement. */
export function claimRejection(
  { id, posting, limits }: Pick<ClaimRequest, 'id' | 'posting' | 'limits'>,
  refusal: { why: unknown; resource?: unknown; until?: unknown },
): Error {
  const what = toJobName(posting)
  switch (refusal.why) {
    case 'gone':
    case 'paused':
    case 'waits':
    case 'limits':
      return refusalError(what, { why: refusal.why })
    case 'fences':
      return new WritesRefused(
        `${what}: the field fence of ${String(refusal.resource)} has reached its maximum, so no job can be claimed; set it to a number ` +
          'that is larger than every granted fence and smaller than 2^53, or move to another prefix',
      )
    case 'resource':
      return refusalError(what, { why: 'resource', resource: String(refusal.resource) })
    case 'limit': {
      const want = limits?.wants.find(({ key }) => fieldName(key) === refusal.resource)
      return limitReachedError(what, want, refusal.until === undefined ? undefined : Number(refusal.until))
    }
    default:
      return refusalError(`${what} (${id})`, { why: 'changed' })
  }
}

/** Returns the error of a post that its batch has refused. The details come from the answer of the step. */
export function batchRefusalError([, why, reason]: readonly unknown[], posting: Posting): Error {
  const { batch = '' } = posting
  if (why === 'unknown') return unknownBatchError(batch, posting)
  if (why === 'duplicate') return duplicateMemberError(batch, posting)
  return closedBatchError(batch, why === 'cancelled' ? { cancelled: { reason: String(reason) } } : {}, posting)
}

/** Returns the ids of the jobs that have left the board, for which a post or a restoration was refused. */
export function toGoneIds(ids: unknown): readonly string[] {
  return (Array.isArray(ids) ? ids : [ids]).map(String)
}
