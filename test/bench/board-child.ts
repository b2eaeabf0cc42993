/**
 * One process of a measurement on a board: `board-child.ts ROLE URI [NUMBER…]`. It says `ready`, does its part when it is
 * told `go`, and ends with a line of JSON.
 */
import { JobBoard } from '../../src/board/api/job-board.ts'
import { postgresBackend } from '../../src/board/backends/postgres/index.ts'
import { redisBackend } from '../../src/board/backends/redis/index.ts'
import { sqliteBackend } from '../../src/board/backends/sqlite/index.ts'
import { zooKeeperBackend } from '../../src/board/backends/zookeeper/index.ts'
import type { Backend } from '../../src/board/contract/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { parseUri, type ResourceUri } from '../../src/core/uri.ts'
import { overrideRole } from '../board/override-role.ts'
import { apart, now, sideBySide, whenTold } from './part-child.ts'

/** What waits on the board and is none of the measurement's business. */
export const PARKED = 'parked'
/** Claimed at once, and posted side by side. */
const WIDTH = 512

type Role = (board: JobBoard, numbers: readonly number[]) => Promise<unknown>

/** How many claims were asked of the backend. */
let claimsTried = 0

const others = ({ name }: { readonly name: string }) => name !== PARKED

const ROLES: Readonly<Record<string, Role>> = {
  /** Posts so many, many side by side. */
  produce: async (board, [count = 0]) => {
    await sideBySide(count, WIDTH, () => board.post('flow', { n: 1 }))
  },

  /** Claims and consumes so many, as they come. */
  consume: async (board, [count = 0]) => {
    let taken = 0
    const settling: Promise<void>[] = []
    while (taken < count) {
      const claims = await board.claimNext({ max: Math.min(WIDTH, count - taken), accept: others })
      taken += claims.length
      for (const claim of claims) settling.push(claim.consume())
    }
    await Promise.all(settling)
  },

  /** Posts one after the other, each when the one before is done. */
  postOneByOne: async (board, [count = 0]) => {
    for (let n = 0; n < count; n += 1) {
      const job = await board.post('flow', { at: now() })
      await job.wait()
    }
  },

  /** Posts one at a time, so many milliseconds apart. */
  postApart: async (board, [count = 0, gap = 0]) => {
    await apart(count, gap, () => board.post('flow', { at: now() }))
  },

  /** Says how long each job took from before it was posted until it was claimed. */
  consumeOneByOne: async (board, [count = 0]) => {
    const took: number[] = []
    while (took.length < count) {
      const [claim] = await board.claimNext({ accept: others })
      const { at } = claim.job.details.store as { at: number }
      took.push(now() - at)
      await claim.consume()
    }
    return took
  },

  /** Claims in the way of a conductor with so many slots; says what it got, and how many claims it tried. */
  race: async (board, [slots = 1]) => {
    const got: [number: number, at: number][] = []
    const stop = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const idle = () => {
      clearTimeout(timer)
      timer = setTimeout(() => stop.abort(), 2_000)
    }
    idle()
    const slot = async () => {
      for await (const claim of board.claims({ signal: stop.signal })) {
        idle()
        got.push([(claim.job.details.store as { n: number }).n, now()])
        await claim.consume()
      }
    }
    await Promise.all(Array.from({ length: slots }, slot))
    return { tried: claimsTried, won: got.length, got }
  },

  /** How much memory the view of a board takes. */
  weigh: async () => {
    globalThis.gc?.()
    return process.memoryUsage().heapUsed
  },
}

async function backendAt(uri: ResourceUri, who: string): Promise<Backend> {
  if (uri.scheme === 'redis') return redisBackend(uri, {})
  if (uri.scheme === 'sqlite') return sqliteBackend(uri, { who })
  return uri.scheme === 'postgres' ? postgresBackend(uri, { who }) : zooKeeperBackend(uri, {})
}

async function main(): Promise<void> {
  const [role = '', uri = '', ...numbers] = process.argv.slice(2)
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  const parsed = parseUri(uri, 'board')
  const who = `${role} ${process.pid}`
  const backend = await backendAt(parsed, who)
  overrideRole(backend, 'claims', (claims) => ({
    claim: (choices) => {
      claimsTried += choices.length
      return claims.claim(choices)
    },
  }))
  await using board = new JobBoard(backend, { who })
  await boardInternals(board).open()
  await whenTold(async () => ({ before, result: await ROLES[role]?.(board, numbers.map(Number)) }))
}

if (process.argv[1] === import.meta.filename) await main()
