/** The trash: see `functions/trash.sql`. */
import { encode } from '../../../core/codec.ts'
import { InvalidPosting, isError } from '../../../core/errors.ts'
import { parseFailure } from '../../../core/failure.ts'
import { isTime } from '../../../core/time.ts'
import { decodeText, encodeText, type Row } from '../../../postgres/index.ts'
import type {
  BackendRestoreOptions,
  BackendTrash,
  DiscardRequest,
  RestoreOutcome,
  TrashedEntry,
  TrashListing,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { encodeEndedJob } from '../../model/ended-job.ts'
import { duplicateRestoreError } from '../../model/post-batch.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { encodeLife } from '../../model/posting/posting-codec.ts'
import { pagesOf, selectTrash } from '../trash-pages.ts'
import { toJobName } from './commit/grouping.ts'
import { toAfterParameters, toKeyDigest, toPlaceText } from './commit/post-calls.ts'
import type { BoardWriter } from './commit/writer.ts'
import type { PostgresBoard } from './store/board.ts'
import { translateErrors } from './store/errors.ts'
import { jobId, jobNumber, jobNumbers, parsePosting, readBytes, tryDecode } from './store/rows.ts'

/**
 * Reads entries for {@link parseTrashedEntry}. The statements name all types: a role that may create operators in `public` could have its
 * own `float8 * integer` called otherwise.
 */
const READ_ENTRIES = 'SELECT *, extract(epoch FROM trashed_at)::float8 * 1000::float8 AS at FROM @.trash'
const READ_BY_IDS = `${READ_ENTRIES} WHERE board = $1 AND id = ANY($2::bigint[]) ORDER BY trashed_at, id`
const READ_BY_UUID = `${READ_ENTRIES} WHERE board = $1 AND uuid = $2 ORDER BY trashed_at DESC, id DESC LIMIT 1`

export class PostgresTrash implements BackendTrash {
  readonly #board: PostgresBoard
  readonly #writer: BoardWriter

  constructor(board: PostgresBoard, writer: BoardWriter) {
    this.#board = board
    this.#writer = writer
  }

  async discard({ id, revision, posting, who, reason, failure, history, at }: DiscardRequest): Promise<void> {
    const what = `removal of ${toJobName(posting)}`
    const life = encodeLife(posting, 'msgpack')
    const parameters = [encodeText(who), encodeText(reason), failure ? encode(failure, 'msgpack') : null]
    const added = history ? [encodeEndedJob(history.job), history.keep] : [null, null]
    const answer = await this.#writer.call(what, 'discard', [
      ...[jobNumber(id), revision, life, ...parameters, ...added],
      at?.getTime() ?? null,
    ])
    this.#writer.reportDoomed(answer)
    if (answer === 'gone') throw refusalError(what, { why: 'gone' })
    if (answer === 'changed') throw refusalError(what, { why: 'changed' })
  }

  async restore(
    { id }: TrashedEntry,
    posting: Posting,
    { after = [] }: BackendRestoreOptions = {},
  ): Promise<RestoreOutcome> {
    const what = `restoration of ${toJobName(posting)}`
    const { onOwnerLost = null } = posting
    const life = encodeLife(posting, 'msgpack')
    const answer = await this.#writer.call(what, 'restore', [
      jobNumber(id),
      life,
      toPlaceText(posting),
      toKeyDigest(posting),
      onOwnerLost,
      ...toAfterParameters(after),
      posting.keyFor ?? null,
    ])
    if (answer === 'taken') throw refusalError(what, { why: 'key' })
    if (answer === 'duplicate') throw duplicateRestoreError(posting.batch ?? '', posting)
    if (answer === 'gone') throw refusalError(what, { why: 'not in trash' })
    const { gone }: { readonly gone?: readonly number[] } = Object(answer)
    return gone === undefined ? { restored: true } : { restored: false, gone: gone.map(jobId) }
  }

  async purge({ id, posting }: TrashedEntry): Promise<void> {
    const what = `purge of ${toJobName(posting)}`
    const answer = await this.#writer.call(what, 'purge', [jobNumber(id)])
    if (answer === 'gone') throw refusalError(what, { why: 'not in trash' })
  }

  async *list(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    this.#board.assertOpen()
    const what = `reading the trash of ${this.#board.uri}`
    const index = await translateErrors(what, () => this.#readIndex())
    for (const page of pagesOf(selectTrash(index, listing, ({ id }) => jobId(id)))) {
      const entries = await translateErrors(what, () => this.#readPage(page))
      for (const entry of listing?.newestFirst ? entries.toReversed() : entries)
        if (isError(entry)) this.#board.sink.error(entry)
        else yield entry
    }
  }

  async entry(id: string): Promise<TrashedEntry | undefined> {
    return this.#find(id, READ_BY_IDS, [jobNumbers([id])])
  }

  async find(uuid: string): Promise<TrashedEntry | undefined> {
    return this.#find(uuid, READ_BY_UUID, [uuid])
  }

  #find(name: string, text: string, values: readonly unknown[]): Promise<TrashedEntry | undefined> {
    return translateErrors(`looking for ${name} in the trash`, async () => {
      this.#board.assertOpen()
      const [row] = await this.#board.query(text, values)
      return row && parseTrashedEntry(row)
    })
  }

  /** Returns which entries the trash has and how large they are, oldest first. */
  async #readIndex(): Promise<{ readonly id: string; readonly bytes: number }[]> {
    const rows = await this.#board.query(`
SELECT id, pg_catalog.octet_length(body) + coalesce(pg_catalog.octet_length(life), 0) + coalesce(pg_catalog.octet_length(failure), 0) AS bytes
FROM @.trash WHERE board = $1 ORDER BY trashed_at, id`)
    return rows.map((row) => ({ id: String(row['id']), bytes: Number(row['bytes']) }))
  }

  /** Returns the entries that are still in the trash; an unreadable entry is returned as an error. */
  async #readPage(page: readonly { readonly id: string }[]): Promise<(TrashedEntry | Error)[]> {
    const rows = await this.#board.query(READ_BY_IDS, [page.map(({ id }) => id)])
    return rows.map((row) => {
      try {
        return parseTrashedEntry(row)
      } catch (cause) {
        return new Error(`trash entry ${jobId(String(row['id']))} is unreadable`, { cause })
      }
    })
  }
}

/** @throws InvalidPosting */
function parseTrashedEntry(row: Row): TrashedEntry {
  const failure = parseFailure(tryDecode(readBytes(row, 'failure')))
  const at = Number(row['at'])
  if (!isTime(at)) throw new InvalidPosting(`trash entry ${jobId(String(row['id']))} is unreadable`)
  return {
    id: jobId(String(row['id'])),
    revision: 0,
    posting: parsePosting(row),
    who: decodeText(String(row['who'])),
    at: new Date(at),
    reason: decodeText(String(row['reason'])),
    ...(failure ? { failure } : {}),
  }
}
