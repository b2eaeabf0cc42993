/** One process of `bench -- postgres`: `postgres-child.ts ROLE URI NUMBER…`. */
import pg from 'pg'
import { JobBoard } from '../../src/board/api/job-board.ts'
import { postgresBackend } from '../../src/board/backends/postgres/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { parseUri } from '../../src/core/uri.ts'
import { whenTold } from './part-child.ts'

/** The part of the time that is not measured, at the beginning. */
export const WARM_UP = 0.25

/** What `transact` measured of its transactions, in milliseconds. */
export interface Transacted {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

type End = () => Promise<unknown>
type Role = (board: JobBoard, uri: string, numbers: readonly number[], end: End) => Promise<unknown>

const ROLES: Readonly<Record<string, Role>> = {
  /** Makes transactions with so many clients side by side, for so many milliseconds; each also posts a job if the third number is 1. */
  transact: async (board, uri, [clients = 0, forMs = 0, posts = 0]) => {
    const pool = new pg.Pool({ connectionString: uri.split('?')[0], max: clients })
    const begin = performance.now()
    const measureFrom = begin + forMs * WARM_UP
    const took: number[] = []
    const lane = async () => {
      const client = await pool.connect()
      for (let at = performance.now(); at < begin + forMs; at = performance.now()) {
        await client.query('BEGIN')
        await client.query('INSERT INTO orders (what) VALUES ($1)', ['book'])
        if (posts === 1) await board.post('flow', { n: 1 }, { client })
        await client.query('COMMIT')
        if (at >= measureFrom) took.push(performance.now() - at)
      }
      client.release()
    }
    await Promise.all(Array.from({ length: clients }, lane))
    await pool.end()
    const sorted = took.toSorted((a, b) => a - b)
    const at = (part: number) => sorted[Math.floor(part * (sorted.length - 1))] ?? Number.NaN
    const perSecond = (took.length * 1_000) / (forMs * (1 - WARM_UP))
    return { perSecond, p50: at(0.5), p99: at(0.99) } satisfies Transacted
  },

  /** Claims and consumes jobs until it is told to end. Returns how many. */
  work: async (board, _uri, _numbers, end) => {
    const stop = new AbortController()
    let done = 0
    const working = (async () => {
      while (!stop.signal.aborted) {
        const claims = await board.claimNext({ max: 64, signal: stop.signal }).catch(() => [])
        await Promise.all(claims.map((claim) => claim.consume()))
        done += claims.length
      }
    })()
    await end()
    stop.abort()
    await working
    return done
  },

  /** Views the board until it is told to end. */
  view: async (board, _uri, _numbers, end) => {
    const view = await board.view()
    await end()
    view[Symbol.dispose]()
  },
}

async function main(): Promise<void> {
  const [role = '', uri = '', ...numbers] = process.argv.slice(2)
  const who = `${role} ${process.pid}`
  await using board = new JobBoard(await postgresBackend(parseUri(uri, 'board'), { who }), { who })
  await boardInternals(board).open()
  await whenTold((end) => ROLES[role]?.(board, uri, numbers.map(Number), end) ?? Promise.resolve())
}

if (process.argv[1] === import.meta.filename) await main()
