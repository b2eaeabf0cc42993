/** Places for boards on a Redis, with what tests do to them behind the boards' backs. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { type JobBoard, type OpenBoardOptions, openBoard } from '../../../../src/board/index.ts'
import type { BoardBackend, BoardPlace } from '../../../contract/board.ts'
import { EVERYTHING, jobIdFor, viewing } from '../../boards.ts'

export interface RedisPlace extends BoardPlace {
  readonly prefix: string
  readonly uri: string
  /** Sees the keys themselves. */
  readonly observer: Redis
  key(name: string): string
  /** Through a proxy (`127.0.0.1:PORT`), or with parameters (`&ttl=2s`). */
  openAt(hosts: string, options?: OpenBoardOptions & { parameters?: string }): Promise<JobBoard>
  ownerOf(board: JobBoard): Promise<string>
  /** Ids of what lies on the board. */
  jobIds(): Promise<string[]>
  trashIds(): Promise<string[]>
}

/** @param options.window how many jobs a view holds, and how many bytes of postings */
export function redisBoards(
  server: () => { readonly uri: string },
  { window, windowBytes }: { readonly window?: number; readonly windowBytes?: number } = {},
): BoardBackend {
  const size = { ...(window === undefined ? {} : { window }), ...(windowBytes === undefined ? {} : { windowBytes }) }
  const parameters = Object.entries(size)
    .map(([name, value]) => `&${name}=${value}`)
    .join('')
  return {
    name: `redis:${parameters}`,
    capabilities: EVERYTHING,
    place: () => redisPlace(server(), { parameters }),
  }
}

/** @param server.uri `redis://127.0.0.1:PORT` */
export async function redisPlace(
  server: { readonly uri: string },
  { parameters: usual = '' }: { readonly parameters?: string } = {},
): Promise<RedisPlace> {
  const prefix = `test-${randomUUID().slice(0, 13)}`
  const hosts = server.uri.slice('redis://'.length)
  const observer = new Redis(server.uri)
  observer.on('error', () => undefined)
  const key = (name: string) => `{${prefix}}:${name}`
  const uri = `${server.uri}/0?prefix=${prefix}${usual}`
  const openAt: RedisPlace['openAt'] = (at, { parameters = '', ...options } = {}) =>
    viewing(openBoard(`redis://${at}/0?prefix=${prefix}${usual}${parameters}`, options))
  /** So that boards look now, and not only when it is time to. */
  const nudge = () => observer.publish(key('changes'), '')
  const ownerOf = (board: JobBoard) => ownerIn(board, { observer, key })
  return {
    prefix,
    uri,
    observer,
    key,
    openAt,
    open: (options) => openAt(hosts, options),
    openUnviewed: (options) => openBoard(uri, options),
    ownerOf,
    expire: async (board) => {
      const owner = await ownerOf(board)
      await observer
        .multi()
        .del(key(`owner:${owner}`))
        .zadd(key('owners'), 0, owner)
        .exec()
      await nudge()
    },
    putRaw: async (bytes) => {
      const id = `job${await observer.hincrby(key('board'), 'sequence', 1)}`
      await observer.hset(key('jobs'), id, Buffer.from(bytes))
      await nudge()
      return id
    },
    removeRaw: async (job) => {
      await observer.hdel(key('jobs'), jobIdFor(job))
    },
    beginAnew: async () => {
      const keys = await observer.keys(key('*'))
      if (keys.length > 0) await observer.del(keys)
    },
    jobIds: async () => (await observer.hkeys(key('jobs'))).sort(),
    trashIds: async () => (await observer.hkeys(key('trash'))).sort(),
    [Symbol.asyncDispose]: async () => observer.disconnect(),
  }
}

/** A board tells nobody whose key it holds; whose an entity of it is does. */
async function ownerIn(board: JobBoard, at: Pick<RedisPlace, 'observer' | 'key'>): Promise<string> {
  const name = randomUUID()
  await using _probe = await board.registerEntity({ kind: 'probe', name, metadata: {} })
  const entity = (await at.observer.hvals(at.key('entities'))).find((value) => value.includes(name))
  if (!entity) throw new Error('the probe was not registered')
  return entity.slice(0, entity.indexOf(':'))
}
