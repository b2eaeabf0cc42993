/**
 * Delivers the changes of a board once, in the order of commits. One writer at a time commits, so the numbers of changes are in that order, and
 * whatever is committed later has a larger number. A board reads the feed after each step of its own, before the answer, and when another process
 * has committed.
 */
import { decodeText } from '../../../../core/texts.ts'
import type { Row } from '../../../../sqlite/index.ts'
import type { BackendSink, BoardChange } from '../../../contract/index.ts'
import type { RecordName } from '../../../model/record.ts'
import { type BoardContext, type ChangeKind, HOLDS, type JobChange, parseRecordName } from './change-log.ts'
import { jobId, toQueueKey } from './rows.ts'

/** The changes of a view for each kind in the table. */
const VIEW_CHANGES: Readonly<Record<JobChange, readonly BoardChange['kind'][]>> = {
  posted: ['posted'],
  ready: ['ready'],
  replaced: ['updated'],
  claimed: ['updated', 'claimed'],
  abandoned: ['updated', 'released'],
  freed: ['released'],
  consumed: ['gone', 'released'],
  trashed: ['trashed', 'gone', 'released'],
  cancelled: ['cancelled'],
}

/** The number of changes of one read: a process that was stopped may have missed many. */
const CHANGES_PER_READ = 10_000

/** The changes that the board subscribes to. */
export interface Wanted {
  /** Whether a view wants all changes. */
  subscribed: boolean
  /** The ids of jobs that are followed. */
  readonly followed: Set<string>
  /** The kinds of records that are watched. */
  readonly kinds: Set<string>
  /** The uuids of batches that are watched. */
  readonly batches: Set<string>
}

export interface FeedOptions {
  readonly context: BoardContext
  readonly sink: BackendSink
  readonly wanted: Wanted
  /** Called when a session of this board has been ended by another process. */
  readonly onSessionEnded: (session: number) => void
}

export class ChangeFeed {
  readonly #options: FeedOptions
  #last = 0

  constructor(options: FeedOptions) {
    this.#options = options
  }

  /** Skips all changes up to now, and reports the number of jobs and whether the board is paused. The caller reads the rest of the state. */
  begin(): void {
    const { context, sink } = this.#options
    const row = context.db.get(
      `SELECT (SELECT max(number) FROM changes) AS last, (SELECT count(*) FROM jobs WHERE board = b.id) AS jobs, paused
        FROM boards b WHERE id = ?`,
      context.board,
    )
    this.#last = Number(row?.['last'] ?? 0)
    sink.jobCount(Number(row?.['jobs'] ?? 0))
    sink.paused(row?.['paused'] === 1)
  }

  /** Delivers everything that was committed before the call. */
  poll(): void {
    const { context, sink, wanted } = this.#options
    if (this.#isIdle) {
      this.#pollEnded()
      return
    }
    const sql =
      'SELECT number, board, kind, job AS id, rank, due AS due_at, name, name AS queue FROM changes WHERE number > ? ORDER BY number LIMIT ?'
    for (;;) {
      const rows = context.db.all(sql, this.#last, CHANGES_PER_READ)
      if (rows.length === 0) return
      const [first, last] = [Number(rows[0]?.['number']), Number(rows.at(-1)?.['number'])]
      // Numbers have no gaps: the changes in between were deleted, because this process was stopped for long.
      if (first !== this.#last + 1) {
        this.begin()
        if (wanted.subscribed || wanted.followed.size > 0) sink.gap()
        if (wanted.kinds.size > 0) sink.records()
        if (wanted.batches.size > 0) sink.batchChanged()
        return
      }
      this.#last = last
      this.#deliver(rows.filter((row) => row['board'] === context.board))
      if (rows.length < CHANGES_PER_READ) return
    }
  }

  /** Whether no changes of jobs, records or batches are wanted. */
  get #isIdle(): boolean {
    const { subscribed, followed, kinds, batches } = this.#options.wanted
    return !subscribed && followed.size === 0 && kinds.size === 0 && batches.size === 0
  }

  /** Delivers ends of sessions only: a process that only posts does not read what it posts. */
  #pollEnded(): void {
    const { context, onSessionEnded } = this.#options
    const row = context.db.get('SELECT max(number) AS last FROM changes')
    const last = Number(row?.['last'] ?? 0)
    if (last === this.#last) return
    const sql = "SELECT job FROM changes WHERE number > ? AND kind = 'ended' AND board = ?"
    const ended = context.db.all(sql, this.#last, context.board)
    this.#last = last
    for (const { job } of ended) onSessionEnded(Number(job))
  }

  #deliver(rows: readonly Row[]): void {
    const { sink, wanted, onSessionEnded } = this.#options
    const changes: BoardChange[] = []
    const records: RecordName[] = []
    for (const row of rows) {
      const kind = row['kind'] as ChangeKind
      if (kind === 'paused' || kind === 'resumed') {
        if (wanted.subscribed) sink.paused(kind === 'paused')
      } else if (kind === 'ended') onSessionEnded(Number(row['id']))
      else if (kind === 'record') records.push(...this.#watchedRecord(row))
      else if (kind === 'batch') this.#announceBatch(decodeText(String(row['name'])))
      else changes.push(...toViewChanges(kind, row))
    }
    if (records.length > 0) sink.records(records)
    if (wanted.subscribed && changes.length > 0) sink.changes(changes)
    this.#announceFollowed(changes)
  }

  #watchedRecord(row: Row): readonly RecordName[] {
    const name = parseRecordName(String(row['name']))
    return name && this.#options.wanted.kinds.has(name.kind) ? [name] : []
  }

  #announceBatch(uuid: string): void {
    if (this.#options.wanted.batches.has(uuid)) this.#options.sink.batchChanged(uuid)
  }

  #announceFollowed(changes: readonly BoardChange[]): void {
    const { sink, wanted } = this.#options
    if (wanted.followed.size === 0) return
    const followed = changes.filter(({ id }) => wanted.followed.has(id))
    if (followed.length > 0) sink.followed(followed)
    for (const { kind, id } of followed) if (kind === 'gone') wanted.followed.delete(id)
  }
}

/** Returns the changes of a view. Kinds that this release does not know are left out. */
function toViewChanges(kind: JobChange, row: Row): readonly BoardChange[] {
  const id = jobId(row['id'])
  const kinds = Object.hasOwn(VIEW_CHANGES, kind) ? VIEW_CHANGES[kind] : []
  if (kind === 'claimed' && row['name'] === HOLDS)
    return [...kinds.map((each) => ({ kind: each, id })), { kind: 'holds', id }]
  return kinds.map((each) => (row['rank'] === null ? { kind: each, id } : { kind: each, id, at: toQueueKey(row) }))
}
