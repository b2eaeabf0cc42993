/**
 * One process of `bench -- scale`: `scale-child.ts ROLE URI NUMBER…`. It uses the package as it is published, prints `ready` when it
 * is connected, does its part when it receives a line, and ends with a line of JSON.
 */
import { openBoard } from 'jobboard'
import { apart, now, sideBySide, whenTold } from './part-child.ts'

/** The name of jobs that stay on the board. */
const PARKED = 'parked'
/** Posted side by side, and claimed at once. */
const WIDTH = 512

type Role = (uri: string, numbers: readonly number[]) => Promise<void>

const ROLES: Readonly<Record<string, Role>> = {
  /** Posts so many jobs with a store of so many bytes. */
  produce: async (uri, [count = 0, bytes = 0]) => {
    await using board = await openBoard(uri)
    const store = { text: 'x'.repeat(bytes) }
    // Large jobs that wait take memory: fewer of them wait at once.
    const width = Math.max(8, Math.min(WIDTH, Math.floor((4 * 1_024 * 1_024) / Math.max(1, bytes))))
    await whenTold(() => sideBySide(count, width, () => board.post('flow', store)))
  },

  /** Claims and consumes so many. */
  consume: async (uri, [count = 0]) => {
    await using board = await openBoard(uri)
    await whenTold(async () => {
      const settling: Promise<void>[] = []
      while (settling.length < count) {
        const max = Math.min(WIDTH, count - settling.length)
        const claims = await board.claimNext({ max, accept: ({ name }) => name !== PARKED })
        for (const claim of claims) settling.push(claim.consume())
      }
      await Promise.all(settling)
    })
  },

  /** Posts so many jobs that stay on the board. */
  fill: async (uri, [count = 0]) => {
    await using board = await openBoard(uri)
    await whenTold(() =>
      sideBySide(count, WIDTH, () => board.post('flow', { n: 1 }, { name: PARKED, priority: 'VERY_LOW' })),
    )
  },

  /** Opens the board and views it; returns how many milliseconds that took, and how many bytes of the heap it takes. */
  view: async (uri) => {
    await whenTold(async () => {
      globalThis.gc?.()
      const before = process.memoryUsage().heapUsed
      const begin = performance.now()
      await using board = await openBoard(uri)
      using _view = await board.view()
      const took = performance.now() - begin
      globalThis.gc?.()
      return { took, heap: process.memoryUsage().heapUsed - before }
    })
  },

  /** Posts so many jobs, one every so many milliseconds; returns how many milliseconds each post took. */
  postApart: async (uri, [count = 0, gap = 0]) => {
    await using board = await openBoard(uri)
    await whenTold(async () => {
      const took: number[] = []
      await apart(count, gap, async () => {
        const begin = now()
        await board.post('flow', { n: 1 })
        took.push(now() - begin)
      })
      return took
    })
  },
}

const [role = '', uri = '', ...numbers] = process.argv.slice(2)
await ROLES[role]?.(uri, numbers.map(Number))
