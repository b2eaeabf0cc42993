/** Places for boards, on each backend, with what tests do to them behind the boards' backs. */
import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { JobBoard } from '../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../src/board/backends/memory/index.ts'
import { decodeGate } from '../../src/board/backends/zookeeper/store/encoding.ts'
import type { OpenBoardOptions } from '../../src/board/index.ts'
import { openBoard } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { Job } from '../../src/board/jobs/job.ts'
import type { ZooKeeper } from '../../src/zookeeper/index.ts'
import type { BoardBackend, BoardPlace } from '../contract/board.ts'
import { expireSession } from '../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { connected } from '../zookeeper/clients.ts'

export const EVERYTHING = {
  keys: true,
  resources: true,
  delays: true,
  expiry: true,
  limits: true,
  dependencies: true,
  history: true,
  batches: true,
  release: true,
}

/** Keeps a board viewing until it is closed: what others do is seen without a wait. */
export async function viewing(opening: Promise<JobBoard>): Promise<JobBoard> {
  const board = await opening
  try {
    await board.view()
    return board
  } catch (error) {
    await board.close()
    throw error
  }
}

export const memoryBoards: BoardBackend = {
  name: 'memory:',
  readsAllQueues: true,
  neverPolls: true,
  hasProcessClock: true,
  capabilities: EVERYTHING,
  place: async () => memoryPlace(),
}
export const zookeeperBoards: BoardBackend = {
  name: 'zookeeper:',
  readsAllQueues: true,
  overlooksCancelRequests: true,
  capabilities: EVERYTHING,
  place: () => zookeeperPlace(),
}

function memoryPlace(): BoardPlace {
  let name = randomUUID()
  const backends = new Map<JobBoard, MemoryBackend>()
  const openUnviewed = async (options = {}) => {
    const backend = new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) })
    const board = new JobBoard(backend, options)
    backends.set(board, backend)
    await boardInternals(board).open()
    return board
  }
  return {
    get uri() {
      return `memory:${name}`
    },
    openUnviewed,
    open: (options) => viewing(openUnviewed(options)),
    expire: async (board) => backends.get(board)?.expireSession(),
    putRaw: async (bytes) => memorySpace(name).putRaw(bytes),
    removeRaw: async (job) => memorySpace(name).removeRaw(jobIdFor(job)),
    beginAnew: async () => {
      name = randomUUID()
      // A process that begins anew takes longer than one step of the clock.
      const before = Date.now()
      while (Date.now() === before) await nextTurn()
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

export interface ZooKeeperPlace extends BoardPlace {
  readonly path: string
  readonly uri: string
  /** Sees the znodes themselves. */
  readonly observer: ZooKeeper
  /** Through a proxy, or with parameters. */
  openAt(hosts: string, options?: OpenBoardOptions & { parameters?: string }): Promise<JobBoard>
  sessionOf(board: JobBoard): Promise<bigint>
  /** Names of what lies at the board's top: postings and locks. */
  jobNodes(): Promise<string[]>
  trashNodes(): Promise<string[]>
  /** What the gate says now. */
  fenceBase(): Promise<bigint>
}

export async function zookeeperPlace(
  hosts: string = zookeeperHosts,
  { path = namespace('board') }: { readonly path?: string } = {},
): Promise<ZooKeeperPlace> {
  const observer = await connected({ hosts })
  const openAt: ZooKeeperPlace['openAt'] = (at, { parameters = '', ...options } = {}) =>
    viewing(openBoard(`zookeeper://${at}${path}${parameters}`, options))
  return {
    path,
    uri: `zookeeper://${hosts}${path}`,
    observer,
    openAt,
    open: (options) => openAt(hosts, options),
    openUnviewed: (options) => openBoard(`zookeeper://${hosts}${path}`, options),
    sessionOf: (board) => readSessionId(board, { observer, path }),
    expire: async (board) => expireSession(hosts, await readSessionId(board, { observer, path })),
    putRaw: async (bytes) => {
      const made = await observer.create(`${path}/job`, bytes, { sequential: true })
      return made.path.slice(path.length + 1)
    },
    removeRaw: async (job) => {
      await observer.delete(`${path}/${jobIdFor(job)}`)
    },
    beginAnew: async () => {
      await observer.deleteRecursive(path)
    },
    jobNodes: async () => (await observer.getChildren(path)).names.filter((name) => !name.startsWith('.')).sort(),
    fenceBase: async () => decodeGate((await observer.getData(`${path}/.gate`)).data).fenceBase,
    trashNodes: async () => (await observer.getChildren(`${path}/.trash`)).names.sort(),
    [Symbol.asyncDispose]: () => observer.close(),
  }
}

/** A board tells nobody its session's id; whose an ephemeral znode of it is does. */
async function readSessionId(board: JobBoard, at: { observer: ZooKeeper; path: string }): Promise<bigint> {
  const name = randomUUID()
  await using _probe = await board.registerEntity({ kind: 'probe', name, metadata: {} })
  await at.observer.sync(at.path)
  const stat = await at.observer.exists(`${at.path}/.entities/probe/${name}`)
  if (!stat) throw new Error('the probe was not registered')
  return stat.ephemeralOwner
}

/** The backend's own name for the job. */
export function jobIdFor(job: Job): string {
  return Job.entryFor(job).id ?? ''
}
