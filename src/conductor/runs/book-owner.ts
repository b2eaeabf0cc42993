/**
 * Marks logbooks with the board that they belong to, where several boards share logbooks: the key `board` of the book's
 * meta.
 */
import type { BookRequest, Meta } from '../../persistence/index.ts'

interface OwnBoard {
  readonly boardId: string
}

/**
 * Returns the request for a job's book. The first acquire of the flow creates the book with the mark, without an
 * additional write.
 */
export function toBookRequest({ uuid, name }: BookRequest, { boardId }: OwnBoard): BookRequest {
  return { uuid, name, meta: { board: boardId } }
}

/**
 * Returns whether a book belongs to another board. A book without a mark, of an older release or made by hand, may
 * belong to any board.
 */
export function isOfOtherBoard(meta: Meta, { boardId }: OwnBoard): boolean {
  const { board } = meta
  return typeof board === 'string' && board !== boardId
}
