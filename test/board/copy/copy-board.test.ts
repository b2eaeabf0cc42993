/** Copies of a board, between files and servers: everything that a board has is on the other one afterwards, and nothing twice. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BoardSide, type CopyReport, copyBoard, openSide, planCopy } from '../../../src/board/internal.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { fill, picture } from './scene.ts'

const signal = new AbortController().signal

let folder: string
let postgres: PostgresServer
let redis: RedisServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'jobboard-copy-'))
  ;[postgres, redis] = await Promise.all([startPostgres(), startRedis()])
})
afterAll(async () => {
  await Promise.all([postgres[Symbol.asyncDispose](), redis[Symbol.asyncDispose]()])
  await rm(folder, { recursive: true, force: true })
})

/** New places for boards, each on one backend. */
const PLACES = {
  sqlite: () => `sqlite:${join(folder, `${randomUUID()}.db`)}`,
  postgres: () => `${postgres.uri}?board=${randomUUID()}`,
  zookeeper: () => `zookeeper://${zookeeperHosts}${namespace('copy')}`,
  redis: () => `${redis.uri}?prefix=${randomUUID()}`,
}
type Place = keyof typeof PLACES

async function openCopyable(uri: string): Promise<BoardSide & AsyncDisposable> {
  const side = await openSide(uri)
  return { ...side, [Symbol.asyncDispose]: () => side.board.close() }
}

const byKind = (reports: readonly CopyReport[]) =>
  Object.fromEntries(reports.map(({ kind, ...report }) => [kind, report]))

describe.each<[Place, Place]>([
  ['sqlite', 'sqlite'],
  ['sqlite', 'postgres'],
  ['sqlite', 'zookeeper'],
  ['sqlite', 'redis'],
  ['postgres', 'sqlite'],
  ['zookeeper', 'sqlite'],
  ['redis', 'sqlite'],
])('from %s to %s', (fromKind, toKind) => {
  test('everything is on the target, which is paused', async () => {
    await using from = await openCopyable(PLACES[fromKind]())
    await using to = await openCopyable(PLACES[toKind]())
    await fill(from.board)
    const reports = byKind(
      await copyBoard({ from, to }, { signal, onSkipped: ({ error }) => expect.fail(error.message) }),
    )
    expect(reports).toMatchObject({
      schedules: { copied: 1, target: 1 },
      limits: { copied: 1 },
      holds: { copied: 1 },
      batches: { copied: 2, target: 2 },
      trash: { source: 2, copied: 2, target: 2 },
      history: { source: 4, copied: 4, target: 4 },
      jobs: { source: 5, copied: 5, present: 0, skipped: 0, target: 5 },
    })
    expect(await picture(to)).toEqual(await picture(from))
    expect(to.board.paused).toBe(true)
  })
})
