/**
 * Reads logbooks for the dashboard, and restricts them to one board. Boards may share logbooks, and a person may have a level on some of
 * these boards only: without the restriction, each board would show the tasks, failures and results of the jobs of all of them.
 */
import type { JobBoard } from '../../board/index.ts'
import { boardId } from '../../board/internal.ts'
import { isSettledWithin } from '../../core/async/abort.ts'
import { NotFound, StorageFailure } from '../../core/errors.ts'
import type { BookQuery, LogBook, Persistence } from '../../persistence/index.ts'

/** The time after which a read of logbooks is given up: a person waits for it, and the server of the logbooks may be away for long. */
const LOGBOOKS_MS = 5_000

/** The logbooks as a dashboard reads them. A read that is not answered soon rejects with StorageFailure. */
export interface Logbooks {
  readonly uri: string
  getBook(uuid: string): Promise<LogBook>
  /** Lists only uuids, because it lists the logbooks of all boards: {@link getBook} refuses those of hidden boards. */
  listUuids(query: BookQuery): Promise<readonly string[]>
}

/** Returns the logbooks of a board as the dashboard reads them. */
export function toLogbooks(persistence: Persistence, name: string): Logbooks {
  const answered = async <T>(reading: Promise<T>): Promise<T> => {
    if (await isSettledWithin(LOGBOOKS_MS, reading)) return reading
    // The read may fail later, when no caller waits for it any more.
    reading.catch(() => undefined)
    throw new StorageFailure(`the logbooks of board ${name} do not answer`, { retryable: true })
  }
  return {
    uri: persistence.uri,
    getBook: (uuid) => answered(persistence.getBook(uuid)),
    listUuids: (query) => answered(collectUuids(persistence.listBooks(query))),
  }
}

async function collectUuids(listed: AsyncIterable<{ readonly uuid: string }>): Promise<readonly string[]> {
  const uuids: string[] = []
  for await (const { uuid } of listed) uuids.push(uuid)
  return uuids
}

/**
 * Restricts logbooks to the jobs of one board. A logbook that names this board as its own is whole. A logbook that names one of the `others`
 * is refused. Any other logbook, such as one of an older release, has only the flows of jobs that the board, its trash or its history knows.
 */
export function guardLogbooks(
  logbooks: Logbooks,
  { board, others }: { readonly board: JobBoard; readonly others: readonly JobBoard[] },
): Logbooks {
  const own = boardId(board.uri)
  const foreign = new Set(others.map(({ uri }) => boardId(uri)))
  return {
    ...logbooks,
    getBook: async (uuid) => {
      const book = await logbooks.getBook(uuid)
      const mark = book.meta['board']
      // Boards in memory may have the same id.
      if (mark === own && !foreign.has(own)) return book
      const flows = mark !== own && foreign.has(String(mark)) ? [] : await knownFlows(book, board)
      if (flows.length > 0) return { ...book, flows }
      throw new NotFound(`there is no logbook ${uuid} of this board`)
    },
  }
}

async function knownFlows({ flows }: LogBook, board: JobBoard): Promise<LogBook['flows']> {
  const known = await Promise.all(flows.map(({ uuid }) => isKnown(uuid, board)))
  return flows.filter((_, index) => known[index])
}

async function isKnown(uuid: string, board: JobBoard): Promise<boolean> {
  const open = await board.find(uuid).catch((error: unknown) => {
    if (!(error instanceof NotFound)) throw error
  })
  if (open ?? (await board.findTrashed(uuid))) return true
  return (await board.findEnded(uuid)) !== undefined
}
