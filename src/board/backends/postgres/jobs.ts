/** Posts jobs, and reads the jobs on the board. */
import { type CommitResult, ItemCommit } from '../../../core/async/group-commit.ts'
import { InvalidPosting, messageOf } from '../../../core/errors.ts'
import { attempt } from '../../../core/result.ts'
import type { Row } from '../../../postgres/index.ts'
import type { BackendJobs, Posted, PostRequest, StoredJob, UnreadableJob } from '../../contract/index.ts'
import { readSizedPosting } from '../../model/posting/posting-codec.ts'
import { checkRow } from '../../model/stored.ts'
import { describeGroup, MAX_GROUP, retryEachAlone } from './commit/grouping.ts'
import {
  type EncodedPost,
  encodePost,
  NONE_LEFT,
  type PostAnswer,
  readLeftStatuses,
  toPostParameters,
  toPostResults,
} from './commit/post-calls.ts'
import type { BoardWriter } from './commit/writer.ts'
import type { PostgresBoard } from './store/board.ts'
import { jobId, jobNumbers, readBytes } from './store/rows.ts'

/** The bytes that a dependency counts as in a group: its part of the arguments, and its row. */
const DEPENDENCY_BYTES = 64

/** Reads jobs for {@link parseStoredJob}; times as milliseconds since 1970. */
const READ_JOBS = `SELECT id, body, life, revision, due_when_ready IS NOT NULL AS waits, extract(epoch FROM posted_at)::float8 * 1000::float8 AS posted_at,
  extract(epoch FROM written_at)::float8 * 1000::float8 AS written_at
FROM @.jobs WHERE board + 0 = $1 AND id = ANY($2::bigint[])`

export class PostgresJobs implements BackendJobs {
  readonly #board: PostgresBoard
  readonly #writer: BoardWriter
  readonly #posts: ItemCommit<EncodedPost, Posted>

  constructor(board: PostgresBoard, writer: BoardWriter) {
    this.#board = board
    this.#writer = writer
    this.#posts = new ItemCommit<EncodedPost, Posted>({
      commit: (group) => this.#postAll(group),
      bytesOf: ({ bytes, request: { after = [] } }) => bytes.length + DEPENDENCY_BYTES * after.length,
      limits: MAX_GROUP,
      beforeAnswers: writer.caughtUp,
    })
  }

  /** Resolves when no post is under way. */
  async idle(): Promise<void> {
    await this.#posts.idle
  }

  post(request: PostRequest): Promise<Posted> {
    return attempt(() => {
      this.#board.assertOpen()
      return this.#posts.add(encodePost(request))
    })
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    const rows = await this.#board.readForView(() =>
      this.#board.ask(`reading ${this.#board.uri}`, READ_JOBS, [jobNumbers(ids)]),
    )
    const found = new Map(rows.map((row) => [jobId(String(row['id'])), row]))
    return ids.map((id) => {
      const row = found.get(id)
      return row && parseStoredJob(row)
    })
  }

  #postAll(group: readonly EncodedPost[]): Promise<CommitResult<Posted>[]> {
    return retryEachAlone(group, async (some) => {
      const { answer, wasRecovered } = await this.#writer.posts.send({
        what: describeGroup('post', some),
        name: 'post',
        values: toPostParameters(some),
      })
      const posted = answer as PostAnswer
      const statuses = wasRecovered ? await readLeftStatuses(this.#board, posted.ids) : NONE_LEFT
      return toPostResults(some, posted, statuses)
    })
  }
}

function parseStoredJob(row: Row): StoredJob | UnreadableJob {
  const id = jobId(String(row['id']))
  try {
    return {
      id,
      ...readSizedPosting(readBytes(row, 'body') ?? new Uint8Array(), 'msgpack', readBytes(row, 'life')),
      ...checkRow({
        revision: Number(row['revision']),
        postedAt: Number(row['posted_at']),
        writtenAt: Number(row['written_at']),
      }),
      order: BigInt(String(row['id'])),
      ...(row['waits'] === true ? { waits: true } : {}),
    }
  } catch (cause) {
    const message = `${id} ${messageOf(cause)}; it is not claimed here, remove it`
    return { id, error: new InvalidPosting(message, { cause }), bytes: readBytes(row, 'body')?.length ?? 0 }
  }
}
