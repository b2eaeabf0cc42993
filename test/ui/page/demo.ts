/** A board as in a trial, to be looked at: pictures go through imports, reports fail, one conductor is slow. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import {
  input,
  type JobBoard,
  linear,
  openBoard,
  openPersistence,
  schedule,
  startConductor,
  task,
  unordered,
} from '../../../src/index.ts'
import { dashboard } from '../../../src/ui/index.ts'

/** Each conductor opens it by itself, so that each claims under its own name. */
const BOARD = 'memory:shop'

/** The conductors: how long each needs for an image, and how many jobs it runs at once. */
const CONDUCTORS = [
  { name: 'host-a', imageMs: 20, concurrency: 2 },
  { name: 'host-b', imageMs: 25, concurrency: 2 },
  { name: 'host-c', imageMs: 300, concurrency: 1 },
] as const

export interface Demo extends AsyncDisposable {
  /** With a slash at its end. */
  readonly url: string
  readonly board: JobBoard
  /** The uuid of an import that runs until the end. */
  readonly running: string
}

/** Opens the board with its jobs, and serves its dashboard. */
export async function openDemo(): Promise<Demo> {
  const closers: (() => unknown)[] = []
  const close = async () => {
    for (const one of closers.reverse()) await one()
  }
  try {
    return { ...(await open(closers)), [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}

async function open(closers: (() => unknown)[]): Promise<Omit<Demo, typeof Symbol.asyncDispose>> {
  const board = await openBoard(BOARD, { keepHistory: 500, who: 'shop' })
  closers.push(() => board.close())
  const persistence = await openPersistence('memory:')
  closers.push(() => persistence.close())
  const jobs = dashboard({ boards: { shop: board }, persistence })
  closers.push(() => jobs.close())
  const server = createServer(jobs.node)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(
    () => server.close(),
    () => server.closeAllConnections(),
  )
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  // The first look: the server begins to count what is done.
  await fetch(`${url}api/v1/boards/shop/overview`)
  const ending = new AbortController()
  for (const { name, imageMs, concurrency } of CONDUCTORS) {
    const flows = Object.values(flowsOf({ imageMs, ending: ending.signal }))
    const conductor = await startConductor({ board: BOARD, persistence, name, concurrency, flows })
    closers.push(() => conductor.stop())
  }
  closers.push(() => ending.abort())
  return { url, board, running: await fill(board) }
}

function flowsOf({ imageMs, ending }: { readonly imageMs: number; readonly ending: AbortSignal }) {
  const quick = (name: string) => task(name, { execute: () => name.length })
  const held = (name: string, progress: number, message: string) =>
    task(name, {
      execute: async (_, ctx) => {
        ctx.progress(progress, message)
        await once(AbortSignal.any([ending, ctx.signal]), 'abort')
      },
    })
  const sizes = unordered(
    'sizes',
    input<object>(),
    quick('small'),
    held('medium', 0.8, 'image 96 of 120'),
    held('large', 0.3, 'image 36 of 120'),
  )
  return {
    importing: linear(
      'import',
      input<object>(),
      quick('fetch'),
      quick('unpack'),
      sizes,
      quick('index'),
      quick('announce'),
    ),
    resize: linear('resize', input<object>(), task('scale', { execute: () => setTimeout(imageMs) })),
    report: linear(
      'report',
      input<{ day: number }>(),
      quick('collect'),
      task('render', {
        requires: ['day'],
        execute: ({ day }: { day: number }) => {
          throw new Error(day % 4 === 0 ? 'the printer is out of paper' : `the template of day ${day} is missing`)
        },
      }),
    ),
  }
}

/** Posts the jobs, and resolves with the uuid of the import that runs, when the others are done or have failed. */
async function fill(board: JobBoard): Promise<string> {
  await board.limits.set('mail/*', { concurrency: 1, fair: true })
  await board.limits.set('maps-api', { rate: { limit: 60, per: '1m', burst: 5 } })
  await board.limits.stop('maps-api', { reason: 'the provider is down' })
  const images = Array.from({ length: 60 }, (_, n) => ({ flow: 'resize', store: {}, name: `image ${n + 1}` }))
  const reports = Array.from({ length: 16 }, (_, n) => {
    return { flow: 'report', store: { day: n + 1 }, name: `report of day ${n + 1}`, maxAttempts: 1 }
  })
  for (const result of await board.postMany([...images, ...reports])) if ('error' in result) throw result.error
  while ((board.jobCount ?? 0) > 0) await once(AbortSignal.timeout(50), 'abort')
  const running = await board.post(
    'import',
    {},
    { name: 'import of the autumn catalogue', resources: { exclusive: ['catalogue'] } },
  )
  await board.post('import', {}, { name: 'import of the winter catalogue', resources: { exclusive: ['catalogue'] } })
  await board.post('import', {}, { name: 'import of prices' })
  await board.post('report', { day: 17 }, { name: 'report of the quarter', after: [running.uuid] })
  await board.post('report', { day: 18 }, { name: 'report of tonight', delay: '5h' })
  for (const city of ['Oslo', 'Lima', 'Kyoto'])
    await board.post('resize', {}, { name: `map of ${city}`, limits: ['maps-api'] })
  await board.post('translate', {}, { name: 'translation of the catalogue', priority: 'HIGH' })
  const { resize } = flowsOf({ imageMs: 0, ending: AbortSignal.abort() })
  await board.schedules.put(schedule('clean up', { every: '15m' }, resize, {}))
  await board.schedules.put(schedule('nightly report', { cron: '30 2 * * *', zone: 'Europe/Berlin' }, resize, {}))
  return running.uuid
}
