/** Places for boards in SQLite files, each a file of its own, with what tests do to them behind the boards' backs. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { JobBoard } from '../../../../src/board/api/job-board.ts'
import { SqliteBackend } from '../../../../src/board/backends/sqlite/backend.ts'
import { sqliteBackend } from '../../../../src/board/backends/sqlite/index.ts'
import type { OpenBoardOptions } from '../../../../src/board/index.ts'
import { boardInternals } from '../../../../src/board/internal.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { openDatabase, type Row, type SqliteValue } from '../../../../src/sqlite/driver.ts'
import { isBusy } from '../../../../src/sqlite/errors.ts'
import type { BoardBackend, BoardPlace } from '../../../contract/board.ts'
import { EVERYTHING, jobIdFor, viewing } from '../../boards.ts'

export interface SqlitePlace extends BoardPlace {
  readonly file: string
  readonly uri: string
  /** Runs a statement as another program does, in a connection of its own. */
  query(sql: string, ...values: readonly SqliteValue[]): readonly Row[]
}

/** @param parameters as `synchronous=normal&window=3` */
export function sqliteBoards({ parameters = '' }: { readonly parameters?: string } = {}): BoardBackend {
  return {
    name: `sqlite:${parameters}`,
    hasProcessClock: true,
    neverPolls: true,
    capabilities: EVERYTHING,
    place: () => sqlitePlace({ parameters }),
  }
}

export async function sqlitePlace({ parameters = '' }: { readonly parameters?: string } = {}): Promise<SqlitePlace> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-sqlite-'))
  const file = join(folder, 'jobs.db')
  let name = randomUUID()
  const uri = () => `sqlite:${file}?board=${name}${parameters === '' ? '' : `&${parameters}`}`
  const backends = new Map<JobBoard, SqliteBackend>()
  const openUnviewed = async (options: OpenBoardOptions = {}) => {
    const { who = 'test', signal: _, create: __, ...rest } = options
    const backend = sqliteBackend(parseUri(uri(), 'board'), { who })
    const board = new JobBoard(backend, { who, ...rest })
    if (backend instanceof SqliteBackend) backends.set(board, backend)
    await boardInternals(board).open()
    return board
  }
  const query: SqlitePlace['query'] = (sql, ...values) =>
    withFile(file, (database) => database.prepare(sql).all(...values)) as Row[]
  const ring = () => writeFile(`${file}-bell`, '!')
  const own = '(SELECT id FROM boards WHERE name = ?1)'
  return {
    file,
    get uri() {
      return uri()
    },
    query,
    openUnviewed,
    open: (options) => viewing(openUnviewed(options)),
    expire: async (board) => backends.get(board)?.expireSession(),
    putRaw: async (bytes) => {
      // Another program's transaction.
      const [row] = query(
        `INSERT INTO jobs (board, uuid, rank, body, posted_at, written_at, due_at) VALUES (${own}, '', 2, ?2, ?3, ?3, 0) RETURNING id`,
        ...[name, bytes, Date.now()],
      )
      query(
        `INSERT INTO changes (board, kind, job, rank, due) VALUES (${own}, 'posted', ?2, 2, 0)`,
        name,
        Number(row?.['id']),
      )
      await ring()
      return `job${String(row?.['id']).padStart(10, '0')}`
    },
    removeRaw: async (job) => {
      const id = Number(jobIdFor(job).slice('job'.length))
      query('DELETE FROM jobs WHERE id = ?', id)
      query(`INSERT INTO changes (board, kind, job) VALUES (${own}, 'consumed', ?2)`, name, id)
      await ring()
    },
    beginAnew: async () => {
      name = randomUUID()
      // Fences are at least the time: the next board begins in the next millisecond.
      for (const before = Date.now(); Date.now() === before; ) await new Promise((resolve) => setImmediate(resolve))
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Does something with a connection of its own, as soon as no other process writes. */
export function withFile<T>(file: string, work: (database: ReturnType<typeof openDatabase>) => T): T {
  for (;;) {
    const database = openDatabase(file)
    try {
      return work(database)
    } catch (error) {
      if (!isBusy(error)) throw error
    } finally {
      database.close()
    }
  }
}
