/**
 * One process of `bench -- job`: `job-child.ts ROLE URI COUNT MEASURE`. It posts jobs, works on them, or does both where the board is in its memory. A
 * quarter of COUNT comes first, so that the code is compiled; COUNT jobs after it are measured.
 */
import { Session } from 'node:inspector/promises'
import { Socket } from 'node:net'
import type { JobBoard } from '../../src/board/api/job-board.ts'
import { openBoard } from '../../src/board/open.ts'
import { type Allocator, cpuLedger, heapLedger, type Ledger, StageFinder } from './job-stages.ts'
import { whenTold } from './part-child.ts'
import { consumeJobs, postJobs } from './plain-jobs.ts'

/** What one process has taken for all its jobs. */
export interface Measured {
  /** Microseconds of processor time. */
  readonly cpu: number
  /** What each stage has taken, in microseconds or bytes; undefined without sampling. */
  readonly ledger: Ledger | undefined
  /** The functions that have allocated most; empty where allocations were not sampled. */
  readonly allocators: readonly Allocator[]
  /** Writes to sockets, and the bytes that were written and read. */
  readonly writes: number
  readonly sent: number
  readonly received: number
}

type Role = (board: JobBoard, count: number) => Promise<unknown>

const ROLES: Readonly<Record<string, Role>> = {
  post: postJobs,
  work: consumeJobs,
  both: (board, count) => Promise.all([postJobs(board, count), consumeJobs(board, count)]),
}

/** Counts what goes through the sockets of this process. */
class Traffic {
  readonly #sockets = new Set<Socket>()
  #writes = 0

  constructor() {
    const write = Socket.prototype.write
    // Sockets are found by their writes: some drivers create them without `net.connect`, which would report them.
    const count = (socket: Socket) => {
      this.#sockets.add(socket)
      this.#writes += 1
    }
    Socket.prototype.write = function counted(this: Socket, ...values: unknown[]) {
      count(this)
      return Reflect.apply(write, this, values)
    }
  }

  /** What went through so far. */
  get total(): Pick<Measured, 'writes' | 'sent' | 'received'> {
    const sockets = [...this.#sockets]
    return {
      writes: this.#writes,
      sent: sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0),
      received: sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0),
    }
  }
}

async function measure(kind: string, part: () => Promise<unknown>): Promise<Pick<Measured, 'ledger' | 'allocators'>> {
  if (kind === 'plain') {
    await part()
    return { ledger: undefined, allocators: [] }
  }
  const finder = await StageFinder.of(import.meta.filename)
  const session = new Session()
  session.connect()
  if (kind === 'cpu') return { ledger: await cpuLedger(session, finder, part), allocators: [] }
  return heapLedger(session, finder, part)
}

async function main(): Promise<void> {
  const [role = '', uri = '', count = '0', kind = 'plain'] = process.argv.slice(2)
  const traffic = new Traffic()
  await using board = await openBoard(uri, { who: `${role} ${process.pid}` })
  const part = ROLES[role]
  if (!part) throw new Error(`${role}: the role must be post, work or both`)
  await whenTold(async (): Promise<Measured> => {
    await part(board, Number(count) / 4)
    const before = traffic.total
    const begin = process.cpuUsage()
    const sampled = await measure(kind, () => part(board, Number(count)))
    const { user, system } = process.cpuUsage(begin)
    const { writes, sent, received } = traffic.total
    const moved = { writes: writes - before.writes, sent: sent - before.sent, received: received - before.received }
    return { cpu: user + system, ...sampled, ...moved }
  })
}

if (process.argv[1] === import.meta.filename) await main()
