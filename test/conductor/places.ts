/** Where the decision table is made to happen: in memory and on a real server. */
import { onTestFinished } from 'vitest'
import type { JobBoard } from '../../src/index.ts'
import { memoryBoards, zookeeperBoards } from '../board/boards.ts'
import type { BoardBackend, BoardPlace } from '../contract/board.ts'
import { zookeeperHosts } from '../support/namespace.ts'

export const PLACES: readonly BoardBackend[] = zookeeperHosts ? [memoryBoards, zookeeperBoards] : [memoryBoards]

/** Places, and boards on them, that are closed when the test ends. */
export function placesOf(backend: BoardBackend): {
  placed(): Promise<BoardPlace>
  openAt(place: BoardPlace, who: string): Promise<JobBoard>
  /** On one new place; of one name, the second is the first. */
  boards(...who: [string, string?]): Promise<[JobBoard, JobBoard]>
} {
  const placed = async () => {
    const place = await backend.place()
    onTestFinished(() => place[Symbol.asyncDispose]())
    return place
  }
  const openAt = async (place: BoardPlace, who: string) => {
    const board = await place.open({ who })
    onTestFinished(() => board.close())
    return board
  }
  const boards = async (who: string, other?: string): Promise<[JobBoard, JobBoard]> => {
    const place = await placed()
    const board = await openAt(place, who)
    return [board, other === undefined ? board : await openAt(place, other)]
  }
  return { placed, openAt, boards }
}
