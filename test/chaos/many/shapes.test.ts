/**
 * Jobs that depend on each other, done by owners in processes of their own that are killed: every job is done, and none begins before the jobs
 * on which it depends have ended.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../../src/board/index.ts'
import { Condition } from '../../../src/core/async/abort.ts'
import { postgresPlaceOn } from '../../board/backends/postgres/boards.ts'
import { redisPlace } from '../../board/backends/redis/places.ts'
import { zookeeperPlace } from '../../board/boards.ts'
import { count } from '../../support/counts.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { type NodeProcess, startNode } from '../../support/node-process.ts'
import { startPostgres } from '../../support/postgres.ts'
import { startRedis } from '../../support/redis.ts'
import { SHAPES, type ShapedJob } from '../../support/shapes.ts'

const CHILD = new URL('./owner-child.ts', import.meta.url)
const JOBS = count({ test: 150, long: 10_000 })
const OWNERS = count({ test: 2, long: 4 })
const KILLS = count({ test: 2, long: 10 })
const SLOTS = count({ test: 8, long: 128 })
/** The shapes of `npm test`; `test:long` has all. In these two, jobs wait for several others, and several others wait for a job. */
const USUAL_SHAPES = ['fan-in', 'layers']
/** The longest time without a job that is done. */
const LIMIT_MS = 60_000

/** The servers of a board, and a board on them for each shape. */
interface Servers extends AsyncDisposable {
  board(): Promise<AsyncDisposable & { readonly uri: string }>
}

async function onZooKeeper(): Promise<Servers> {
  return { board: () => zookeeperPlace(), [Symbol.asyncDispose]: async () => undefined }
}

async function onPostgres(): Promise<Servers> {
  const server = await startPostgres({ config: { fsync: 'off', max_connections: '300' } })
  return { board: () => postgresPlaceOn(server.uri), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

async function onRedis(): Promise<Servers> {
  const server = await startRedis()
  return { board: () => redisPlace(server), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

describe.each([
  ...(zookeeperHosts ? [{ name: 'ZooKeeper', start: onZooKeeper, session: '?sessionTimeout=4s' }] : []),
  { name: 'Postgres', start: onPostgres, session: '&sessionTimeout=2s' },
  { name: 'Redis', start: onRedis, session: '&ttl=2s' },
])('on $name', ({ start, session }) => {
  let servers: Servers

  beforeAll(async () => {
    servers = await start()
  })
  afterAll(() => servers[Symbol.asyncDispose]())

  const shapes = Object.entries(SHAPES).filter(([name]) => count({ test: USUAL_SHAPES.includes(name), long: true }))
  test.each(shapes)('%s', async (name, shape) => {
    await using place = await servers.board()
    await check(name, shape(JOBS), `${place.uri}${session}`)
  })
})

async function check(name: string, jobs: readonly ShapedJob[], uri: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-many-'))
  const file = join(folder, 'log')
  await writeFile(file, '')
  const owners: NodeProcess[] = []
  const start = async () => {
    const owner = await startNode(CHILD, [uri, file, String(SLOTS)])
    owners.push(owner)
    await owner.says('ready')
  }
  await using board = await openBoard(uri)
  using _view = await board.view()
  const changed = new Condition()
  const consumed = new Set<string>()
  board.on('consumed', ({ job }) => {
    consumed.add(job.uuid)
    changed.notify()
  })
  const whenConsumed = async (least: number) => {
    while (consumed.size < least)
      await changed.wait({ signal: AbortSignal.timeout(LIMIT_MS) }).catch(async (error: unknown) => {
        throw new Error(`nothing was done for ${LIMIT_MS} ms: ${await describeRest(board, consumed)}`, { cause: error })
      })
  }
  try {
    const begun = Date.now()
    const posted = await board.postMany(jobs.map(({ uuid, after }) => ({ flow: 'work', store: {}, uuid, after })))
    expect(posted.filter((result) => 'error' in result)).toEqual([])
    await Promise.all(Array.from({ length: OWNERS }, start))
    for (let kill = 0; kill < KILLS; kill += 1) {
      await whenConsumed(Math.floor(((kill + 1) * jobs.length) / (KILLS + 2)))
      const victim = owners.shift()
      victim?.signal('SIGKILL')
      await victim?.ended
      await start()
    }
    await whenConsumed(jobs.length)
    for (const owner of owners) owner.signal('SIGTERM')
    await Promise.all(owners.map(({ ended }) => ended))
    expect(owners.flatMap(({ lines }) => lines.filter((line) => line.startsWith('failed')))).toEqual([])
    const begins = (await readFile(file, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(0, line.indexOf(' ')))
    expect(new Set(begins)).toEqual(new Set(jobs.map(({ uuid }) => uuid)))
    expect(findTooEarly(jobs, begins)).toEqual([])
    expect(await board.countJobs()).toBe(0)
    console.log(`${name}: ${jobs.length} jobs, ${begins.length} starts, ${KILLS} kills, in ${Date.now() - begun} ms`)
  } finally {
    await Promise.all(owners.map((owner) => owner[Symbol.asyncDispose]()))
    await rm(folder, { recursive: true, force: true })
  }
}

/** Returns how many jobs are left, and what the first ones wait for. */
async function describeRest(board: JobBoard, consumed: ReadonlySet<string>): Promise<string> {
  const left: string[] = []
  let count = 0
  for await (const job of board.jobs({ ensureFresh: true })) {
    count += 1
    if (left.length >= 5) continue
    const { kind, text } = (await board.waitingFor(job)) ?? { kind: 'nothing', text: '' }
    left.push(`${job.uuid} ${job.state} waits for ${kind} ${text}`)
  }
  return [`${consumed.size} jobs were consumed, ${count} are left`, ...left].join('\n  ')
}

/** The most jobs that one transaction frees on every board. */
const FREED_AT_ONCE = 500

/**
 * Returns the jobs that began although one on which they depend began later, for the first time or again. A job on which more depend than one transaction
 * frees may begin again when its owner dies before all are free.
 */
function findTooEarly(jobs: readonly ShapedJob[], begins: readonly string[]): string[] {
  const first = new Map<string, number>()
  const last = new Map<string, number>()
  for (const [index, uuid] of begins.entries()) {
    if (!first.has(uuid)) first.set(uuid, index)
    last.set(uuid, index)
  }
  const dependents = new Map<string, number>()
  for (const other of jobs.flatMap(({ after }) => after)) dependents.set(other, (dependents.get(other) ?? 0) + 1)
  const lastBegin = (uuid: string) =>
    ((dependents.get(uuid) ?? 0) > FREED_AT_ONCE ? first : last).get(uuid) ?? Number.NaN
  return jobs.flatMap(({ uuid, after }) => {
    const begin = first.get(uuid) ?? Number.NaN
    return after.every((other) => lastBegin(other) < begin) ? [] : [uuid]
  })
}
