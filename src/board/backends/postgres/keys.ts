/** Replaces jobs by their keys: see `functions/keys.sql`. */
import { encodeText } from '../../../postgres/index.ts'
import type { BackendKeys, Replaced, ReplaceRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { encodePosting, MAX_POSTING_BYTES, toCountedBytes } from '../../model/posting/posting-codec.ts'
import { toJobName } from './commit/grouping.ts'
import { toKeyDigest, toPlaceText } from './commit/post-calls.ts'
import type { BoardWriter } from './commit/writer.ts'
import { jobNumber } from './store/rows.ts'

export class PostgresKeys implements BackendKeys {
  readonly #writer: BoardWriter

  constructor(writer: BoardWriter) {
    this.#writer = writer
  }

  /** Replaces the posting of a job that was never claimed: a claim would have changed its revision. */
  async replace({ id, revision, posting, window }: ReplaceRequest): Promise<Replaced> {
    const what = `replacement of ${toJobName(posting)}`
    const bytes = encodePosting(posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES })
    const { name, onOwnerLost = null, delay = null } = posting
    const key = toKeyDigest(posting)
    const values = [
      jobNumber(id),
      revision,
      bytes,
      encodeText(name),
      toPlaceText(posting),
      key,
      onOwnerLost,
      delay,
      window ?? null,
    ]
    const answer = await this.#writer.call(what, 'replace_posting', values)
    if (answer === 'gone') throw refusalError(what, { why: 'gone' })
    if (answer === 'changed') throw refusalError(what, { why: 'changed' })
    return { revision: revision + 1, bytes: toCountedBytes(bytes, 'msgpack') }
  }
}
