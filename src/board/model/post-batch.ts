/** The option `batch` of a post, and the errors of posts to batches. */
import { validate as validUuid } from 'uuid'
import { Duplicate, InvalidPosting, InvalidState, NotFound } from '../../core/errors.ts'
import { shortenText } from '../../core/texts.ts'

/** The batch to which a job is posted: its uuid, or an object with it, such as a `Batch`. */
export type PostBatch =
  | string
  | {
      readonly uuid: string
      /**
       * The uuid of a job of the batch that has not ended, and on whose behalf the job is posted: it can add jobs to a batch that is sealed. By
       * default a job of the batch that this board has claimed, if there is one.
       */
      readonly by?: string
    }

/** A job as messages name it. */
interface NamedJob {
  readonly uuid: string
  readonly name: string
}

/** Parses the option `batch` of a post; undefined where there is none. @throws InvalidPosting */
export function parsePostBatch(batch: unknown): { readonly uuid: string; readonly by?: string } | undefined {
  if (batch === undefined) return undefined
  const { uuid, by }: { readonly uuid?: unknown; readonly by?: unknown } =
    typeof batch === 'string' ? { uuid: batch } : Object(batch)
  if (typeof uuid !== 'string' || !validUuid(uuid)) {
    const got = typeof uuid === 'string' ? `'${shortenText(uuid)}'` : typeof uuid
    throw new InvalidPosting(`batch must be a Batch or the UUID of one, got ${got}`)
  }
  if (by === undefined) return { uuid }
  if (typeof by !== 'string' || !validUuid(by)) throw new InvalidPosting('batch: by must be the UUID of a job')
  return { uuid, by }
}

/** Returns the error for a batch that a board does not have, or does not keep any more. */
export function unknownBatchError(batch: string, job?: NamedJob): NotFound {
  return new NotFound(
    `${job ? `job ${job.uuid} (${job.name}): ` : ''}batch ${batch} is not on this board; check its uuid`,
  )
}

/** Returns the error of a post to a batch that takes no jobs of this poster. */
export function closedBatchError(
  batch: string,
  { cancelled }: { readonly cancelled?: { readonly reason: string } },
  job: NamedJob,
): InvalidState {
  const why = cancelled
    ? `is cancelled: ${shortenText(cancelled.reason)}`
    : 'is sealed: only a job of the batch that has not ended can add jobs to it'
  return new InvalidState(`job ${job.uuid} (${job.name}): batch ${batch} ${why}`)
}

/** Returns the error of a restoration of a job if an open job of its batch has the same uuid: a batch counts its open jobs by their uuids. */
export function duplicateRestoreError(batch: string, job: NamedJob): Duplicate {
  return new Duplicate(
    `job ${job.uuid} (${job.name}): a job with this uuid is open in batch ${batch}; restore it when that one has ended`,
  )
}

/** Returns the error of a post if an open job of the batch has the same uuid. */
export function duplicateMemberError(batch: string, job: NamedJob): Duplicate {
  return new Duplicate(
    `job ${job.uuid} (${job.name}): a job with this uuid is open in batch ${batch}; nothing was posted`,
  )
}
