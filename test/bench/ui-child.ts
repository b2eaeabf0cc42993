/** One process of `bench -- ui`: `ui-child.ts ROLE ARGUMENT…`. */
import { input, type JobBoard, linear, openBoard, startConductor, task } from 'jobboard'
import { dashboard } from 'jobboard/ui'
import { sideBySide, whenTold } from './part-child.ts'
import { ONE_PAGE, SESSION, startViewers } from './ui-viewers.ts'

const flow = linear('one-task', input<{ n: number }>(), task('only', { execute: () => undefined }))
/** Posted side by side. */
const WIDTH = 128
/** Longer than the quarter of a second for which streams keep messages back, in milliseconds. */
const STREAM_PERIOD = 300

const ROLES: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  /** Posts so many jobs, and does them: prints how many milliseconds it took. */
  work: async ([uri = '', count = '']) => {
    await using board = await openBoard(uri)
    await whenTold(async () => {
      const begin = performance.now()
      await doJobs(board, Number(count))
      return performance.now() - begin
    })
  },

  /** Serves a board until it is told to end, with so many people who look at it. */
  serve: async ([uri = '', viewers = '']) => {
    await using board = await openBoard(uri)
    const served = dashboard({ board })
    {
      // The viewers connect before the measurement: their first requests load the modules that answer them.
      await using _viewers = await startViewers(served, Number(viewers))
      await whenTold((end) => end())
    }
    await served.close()
  },

  /** Posts so many jobs. */
  fill: async ([uri = '', count = '']) => {
    await using board = await openBoard(uri)
    await whenTold(() => fill(board, Number(count)))
  },

  /** Asks for the first page of a board so many times, first while the board is being read: prints the milliseconds. */
  firstPage: async ([uri = '', count = '', asks = '']) => {
    await using board = await openBoard(uri)
    if (uri === 'memory:') await fill(board, Number(count))
    const served = dashboard({ board })
    const headers = { prefer: 'respond-async' }
    await whenTold(async () => {
      // The page asks first who has signed in; that loads what answers requests.
      await (await served.fetch(new Request(`http://127.0.0.1/${SESSION}`), { address: '127.0.0.1' })).text()
      const took: number[] = []
      for (let n = 0; n < Number(asks); n += 1) {
        const begin = performance.now()
        const response = await served.fetch(new Request(`http://127.0.0.1/${ONE_PAGE}`, { headers }), {
          address: '127.0.0.1',
        })
        const { jobs = [] } = (await response.json()) as { jobs?: unknown[] }
        if (jobs.length > 0) took.push(performance.now() - begin)
        // The page asks again once a second while the board is read. Here, the next request is for the whole board.
        if (n === 0) await served.fetch(new Request(`http://127.0.0.1/${ONE_PAGE}`), { address: '127.0.0.1' })
      }
      return took
    })
    await served.close()
  },

  /** Does so many jobs while ten people look: prints the megabytes of the heap before and after. */
  hour: async ([count = '', viewers = '']) => {
    await using board = await openBoard('memory:')
    const served = dashboard({ board })
    await whenTold(async () => {
      await using looking = await startViewers(served, Number(viewers))
      // A quarter comes first, to fill what is kept: the history, and an hour of figures.
      await doJobs(board, Number(count) / 4)
      const before = await usedHeap()
      await doJobs(board, Number(count))
      return { before, after: await usedHeap(), messages: looking.messages }
    })
    await served.close()
  },
}

async function fill(board: JobBoard, count: number): Promise<void> {
  await board.postMany(Array.from({ length: count }, (_, n) => ({ flow, store: { n } })))
}

async function doJobs(board: JobBoard, count: number): Promise<void> {
  await using conductor = await startConductor({
    board,
    persistence: 'memory:',
    flows: [flow],
    concurrency: WIDTH,
    maxJobs: count,
  })
  await sideBySide(count, WIDTH, (n) => board.post(flow, { n }))
  await conductor.stopped
}

async function usedHeap(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, STREAM_PERIOD))
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 1e6
}

const [role = '', ...args] = process.argv.slice(2)
await ROLES[role]?.(args)
