/** Posts and reads jobs. */
import { attempt } from '../../../core/result.ts'
import type { BackendJobs, Posted, PostRequest, StoredJob, UnreadableJob } from '../../contract/index.ts'
import { MAX_POSTING_BYTES, toCountedBytes } from '../../model/posting/posting-codec.ts'
import type { RedisBoard } from './commit/board.ts'
import type { StepReply } from './commit/queued-steps.ts'
import {
  batchRefusalError,
  DEPENDENCY_BYTES,
  type ScriptStep,
  SMALL_STEP_BYTES,
  toDependencyWords,
  toGoneIds,
  toJobName,
  toKeyField,
} from './commit/steps.ts'
import { encodePostingWithin, parseStoredJob } from './store/encodings.ts'
import { toOrder, toPlaceWord } from './store/layout.ts'
import { decodeReply, toList } from './store/replies.ts'
import { SCRIPTS } from './store/scripts.ts'

export class RedisJobs implements BackendJobs {
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.#board = board
  }

  post(request: PostRequest): Promise<Posted> {
    return attempt(() => {
      const bytes = encodePostingWithin(request.posting, { limit: MAX_POSTING_BYTES })
      return this.#board.submit(postStep(request, bytes)).then((reply) => {
        if (!reply.done && reply.details[0] === 'batch') throw batchRefusalError(reply.details, request.posting)
        const posted = toPosted(reply, { bytes: toCountedBytes(bytes, 'msgpack') })
        return reply.isRepeated ? this.locate(posted) : posted
      })
    })
  }

  /**
   * Adds the present place of a job that was posted before its answer was lost. If there is no connection to ask, the id
   * stays as it was: the listing on the next connection shows whether the job is on the board.
   */
  async locate(posted: Posted): Promise<Posted> {
    if (!posted.created || posted.id === undefined) return posted
    const { id, ...rest } = posted
    return { ...rest, ...(await this.#placeOf(id).catch(() => ({ id }))) }
  }

  /** Returns the id of a posted job while it is on the board, otherwise whether it is in the trash. */
  async #placeOf(id: string): Promise<{ readonly id: string } | { readonly trashed: boolean }> {
    if ((await this.#board.command('hexists', 'rows', id)) === 1) return { id }
    return { trashed: (await this.#board.command('hexists', 'trash', id)) === 1 }
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    if (ids.length === 0) return []
    const [head, ...postings] = toList(await this.#board.run(SCRIPTS.read, ids))
    const [rows, waiting] = decodeReply<[readonly (string | false)[], readonly number[]]>(head)
    const waits = new Set(waiting)
    return ids.map((id, index) =>
      parseStoredJob(id, { row: rows[index], bytes: postings[index], waits: waits.has(index + 1) }),
    )
  }
}

function postStep({ posting, after = [], member }: PostRequest, bytes: Uint8Array): ScriptStep {
  const { uuid, delay = null, keyFor = null } = posting
  const batch = [posting.batch ?? null, member ?? null] as const
  const others = after.length > 0 ? toDependencyWords(after) : null
  return {
    arguments: ['post', toPlaceWord(posting), bytes, uuid, toKeyField(posting), delay, others, ...batch, keyFor],
    what: `post of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES + DEPENDENCY_BYTES * after.length,
    grows: true,
  }
}

function toPosted({ done, details }: StepReply, { bytes }: { readonly bytes: number }): Posted {
  if (!done && details[0] === 'dependency') return { created: false, gone: toGoneIds(details[1]) }
  const [first = '', other = '', ended] = details.map(String)
  if (done) return { created: true, id: first, revision: 0, order: toOrder(first), bytes }
  return { created: false, uuid: other, revision: 0, ...(ended === undefined ? {} : { inWindowOf: ended }) }
}
