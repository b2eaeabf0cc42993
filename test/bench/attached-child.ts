/**
 * One process of `bench -- attached`: `attached-child.ts ROLE NUMBER URI…`. It uses the package as it is published, prints
 * `ready` when it is connected, does its part when it receives a line, and ends with a line of JSON.
 */
import { input, type JobBoard, linear, openBoard, openPersistence, startConductor, task } from 'jobboard'
import { sideBySide, whenTold } from './part-child.ts'

/** The name of jobs that stay on the board. */
const PARKED = 'parked'
/** Posted side by side, and claimed at once. */
const WIDTH = 512

const other = linear('other', input(), task('none', { execute: () => undefined }))

type Role = (count: number, uris: readonly [string, ...string[]]) => Promise<void>

const ROLES: Readonly<Record<string, Role>> = {
  produce: async (count, [uri]) => {
    await using board = await openBoard(uri)
    await whenTold(() => sideBySide(count, WIDTH, () => board.post('flow', { n: 1 })))
  },

  consume: async (count, [uri]) => {
    await using board = await openBoard(uri)
    await whenTold(() => consume(board, count))
  },

  /** Posts jobs that stay on the board. */
  fill: async (count, [uri]) => {
    await using board = await openBoard(uri)
    await whenTold(() => sideBySide(count, WIDTH, () => park(board)))
  },

  /** Opens so many boards, posts one job on each, and then does nothing. */
  post: async (count, [uri]) => {
    const boards = await Promise.all(Array.from({ length: count }, () => openBoard(uri)))
    await Promise.all(boards.map(park))
    await whenTold((end) => end())
    await Promise.all(boards.map((board) => board.close()))
  },

  /** Starts so many conductors, each on a board of its own, that know none of the jobs' flows. */
  conduct: async (count, [uri]) => {
    await using persistence = await openPersistence('memory:')
    const boards = await Promise.all(Array.from({ length: count }, () => openBoard(uri)))
    const start = (board: JobBoard) => startConductor({ board, persistence, flows: [other] })
    const conductors = await Promise.all(boards.map(start))
    await whenTold((end) => end())
    await Promise.all(conductors.map((conductor) => conductor.stop()))
    await Promise.all(boards.map((board) => board.close()))
  },

  /** Opens each of some boards in turn, so many times, and posts one job; says how many milliseconds each time took, per board. */
  open: (count, uris) =>
    whenTold(async () => {
      const took = uris.map((): number[] => [])
      for (let n = 0; n < count; n += 1) for (const [index, uri] of uris.entries()) took[index]?.push(await open(uri))
      return took
    }),
}

async function consume(board: JobBoard, count: number): Promise<void> {
  const settling: Promise<void>[] = []
  while (settling.length < count) {
    const max = Math.min(WIDTH, count - settling.length)
    const claims = await board.claimNext({ max, accept: ({ name }) => name !== PARKED })
    for (const claim of claims) settling.push(claim.consume())
  }
  await Promise.all(settling)
}

function park(board: JobBoard): Promise<unknown> {
  return board.post('flow', { n: 1 }, { name: PARKED, priority: 'VERY_LOW' })
}

async function open(uri: string): Promise<number> {
  const begin = performance.now()
  await using board = await openBoard(uri)
  await park(board)
  return performance.now() - begin
}

const [role = '', count = '', uri = '', ...uris] = process.argv.slice(2)
await ROLES[role]?.(Number(count), [uri, ...uris])
