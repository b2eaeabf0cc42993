/** Reads parts of a board for views that hold only a window of it. */
import { decodeText, encodeText } from '../../../core/texts.ts'
import type { BackendSections, JobStatus, JobSummary, QueueCount } from '../../contract/index.ts'
import { rank } from '../../model/claim-order.ts'
import { DEFAULT_QUEUE } from '../../model/queues.ts'
import type { WindowSize } from '../window-size.ts'
import type { JobSteps } from './jobs.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext } from './store/change-log.ts'
import { jobId, jobNumber, SUMMARY_COLUMNS, toQueueColumn, toSummary } from './store/rows.ts'

type RangeRequest = Parameters<BackendSections['range']>[0]
type DelayedRequest = Parameters<BackendSections['delayed']>[0]
type Section = Awaited<ReturnType<BackendSections['range']>>

export class SectionSteps {
  readonly #context: BoardContext

  constructor(context: BoardContext) {
    this.#context = context
  }

  range({ queue, after, limit, due }: RangeRequest): Section {
    const { db, board, now } = this.#context
    const at = now()
    const dueAt = due ? [at] : []
    const [isOfQueue, ...of] = toQueueCondition(queue)
    const select = (condition: string) =>
      `SELECT ${SUMMARY_COLUMNS} FROM jobs WHERE board = ? ${isOfQueue} AND ${condition} ${due ? 'AND session IS NULL AND due_at <= ?' : ''}
        ORDER BY rank, id LIMIT ?`
    // In two parts: for one comparison of both columns SQLite would read all jobs of the rank before the place.
    const own = after ? rank(after.priority) : -1
    const place = after && [own, jobNumber(after.id)]
    const rows = place ? db.all(select('rank = ? AND id > ?'), board, ...of, ...place, ...dueAt, limit) : []
    const later =
      rows.length < limit ? db.all(select('rank > ?'), board, ...of, own, ...dueAt, limit - rows.length) : []
    const jobs = [...rows, ...later].map(toSummary)
    return { jobs, end: jobs.length < limit, at }
  }

  delayed({
    queues = [undefined],
    after,
    limit,
  }: Omit<DelayedRequest, 'queues'> & { readonly queues?: readonly (string | undefined)[] | undefined }): JobSummary[] {
    const { db, board } = this.#context
    const parts = queues.map((queue) => {
      const [isOfQueue, ...of] = toQueueCondition(queue)
      const sql = `SELECT ${SUMMARY_COLUMNS} FROM jobs WHERE board = ? ${isOfQueue} AND due_at > 0 AND due_at > ? AND due_at < 9e999
        AND session IS NULL ORDER BY due_at LIMIT ?`
      return db.all(sql, board, ...of, after, limit).map(toSummary)
    })
    if (parts.length === 1) return parts[0] ?? []
    return parts
      .flat()
      .sort((a, b) => a.dueAt - b.dueAt)
      .slice(0, limit)
  }

  queues(): QueueCount[] {
    const { db, board } = this.#context
    const rows = db.all('SELECT queue, count(*) AS jobs FROM jobs WHERE board = ? GROUP BY queue', board)
    return rows.map(({ queue, jobs }) => ({
      queue: typeof queue === 'string' ? decodeText(queue) : DEFAULT_QUEUE,
      jobs: Number(jobs),
    }))
  }

  claimed(): JobSummary[] {
    const { db, board } = this.#context
    // With the plus, SQLite does not choose the index of all jobs of the board.
    const sql = `SELECT ${SUMMARY_COLUMNS}, EXISTS (SELECT 1 FROM permits WHERE job = jobs.id) OR EXISTS (SELECT 1 FROM slots WHERE job = jobs.id) AS holds
      FROM jobs WHERE session IN (SELECT id FROM sessions WHERE board = ?) AND +board = ?`
    return db.all(sql, board, board).map((row) => ({ ...toSummary(row), holds: row['holds'] === 1 }))
  }

  find(uuid: string): string | undefined {
    const { db, board } = this.#context
    const row = db.get('SELECT min(id) AS id FROM jobs WHERE uuid = ? AND board = ?', encodeText(uuid), board)
    return typeof row?.['id'] === 'number' ? jobId(row['id']) : undefined
  }
}

interface Steps {
  readonly sections: SectionSteps
  readonly jobs: JobSteps
}

export class SqliteSections implements BackendSections {
  readonly window: number
  readonly windowBytes: number
  readonly #board: SqliteBoard<Steps>

  constructor(board: SqliteBoard<Steps>, { window, windowBytes }: WindowSize) {
    this.window = window
    this.windowBytes = windowBytes
    this.#board = board
  }

  async range(request: RangeRequest): Promise<Section> {
    return this.#board.readInSession(({ sections }) => sections.range(request))
  }

  async delayed(request: DelayedRequest): Promise<readonly JobSummary[]> {
    return this.#board.readInSession(({ sections }) => sections.delayed(request))
  }

  async claimed(): Promise<readonly JobSummary[]> {
    return this.#board.readInSession(({ sections }) => sections.claimed())
  }

  async queues(): Promise<readonly QueueCount[]> {
    return this.#board.readInSession(({ sections }) => sections.queues())
  }

  async statusOf(ids: readonly string[]): Promise<readonly ('there' | 'trashed' | 'gone')[]> {
    return this.#board.readInSession(({ jobs }) => ids.map((id) => toSectionStatus(jobs.status(id))))
  }

  async find(uuid: string): Promise<string | undefined> {
    return this.#board.readInSession(({ sections }) => sections.find(uuid))
  }
}

/** Returns the condition that a job is in the queue, and its values; none for all queues. */
function toQueueCondition(queue: string | undefined): readonly [condition: string, ...values: string[]] {
  if (queue === undefined) return ['']
  const column = toQueueColumn(queue)
  return column === null ? ['AND queue IS NULL'] : ['AND queue = ?', column]
}

function toSectionStatus(status: JobStatus): 'there' | 'trashed' | 'gone' {
  return typeof status === 'object' ? 'there' : status
}
