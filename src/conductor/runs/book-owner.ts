/** Which board a logbook is of, where several boards share logbooks: the key `board` of the book's meta. */
import type { BookRequest, Meta } from '../../persistence/index.ts'

interface OwnBoard {
  readonly boardId: string
}

/** Returns the request for a job's book: what acquires its flow first makes the book with the mark, at no further write. */
export function toBookRequest({ uuid, name }: BookRequest, { boardId }: OwnBoard): BookRequest {
  return { uuid, name, meta: { board: boardId } }
}

/** Whether a book is marked as another board's. One without a mark, of an older release or made by hand, is anybody's. */
export function isOfOtherBoard(meta: Meta, { boardId }: OwnBoard): boolean {
  const { board } = meta
  return typeof board === 'string' && board !== boardId
}
