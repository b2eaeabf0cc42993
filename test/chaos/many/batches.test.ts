/**
 * Batches whose jobs are done by owners in processes of their own that are killed: each job counts once, each batch ends once for each time that it was
 * opened, and its callback begins after all of its jobs.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Batch, openBoard } from '../../../src/board/index.ts'
import { Condition } from '../../../src/core/async/abort.ts'
import { postgresPlaceOn } from '../../board/backends/postgres/boards.ts'
import { redisPlace } from '../../board/backends/redis/places.ts'
import { zookeeperPlace } from '../../board/boards.ts'
import { count } from '../../support/counts.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { type NodeProcess, startNode } from '../../support/node-process.ts'
import { startPostgres } from '../../support/postgres.ts'
import { startRedis } from '../../support/redis.ts'

const CHILD = new URL('./owner-child.ts', import.meta.url)
const BATCHES = count({ test: 4, long: 20 })
const JOBS = count({ test: 40, long: 1_000 })
const OWNERS = count({ test: 2, long: 4 })
const KILLS = count({ test: 3, long: 20 })
const SLOTS = count({ test: 4, long: 32 })
/** The longest work of a job: owners are killed while jobs run. */
const WORK_MS = 40
/** Every second batch has jobs that fail: one in this many. */
const FAILING = 10
/** The longest time without a job that has ended. */
const LIMIT_MS = 60_000

describe('batches are counted, whatever happens to owners', () => {
  test.runIf(zookeeperHosts)('on ZooKeeper', async () => {
    const place = await zookeeperPlace()
    await check(`${place.uri}?sessionTimeout=4s`)
    await place[Symbol.asyncDispose]()
  })

  test('on Postgres', async () => {
    await using server = await startPostgres({ config: { fsync: 'off', max_connections: '300' } })
    await using place = await postgresPlaceOn(server.uri)
    await check(`${place.uri}&sessionTimeout=2s`)
  })

  test('on Redis', async () => {
    await using server = await startRedis()
    await using place = await redisPlace(server)
    await check(`${place.uri}&ttl=2s`)
  })
})

async function check(uri: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-batches-'))
  const file = join(folder, 'log')
  await writeFile(file, '')
  const owners: NodeProcess[] = []
  const start = async () => {
    const owner = await startNode(CHILD, [uri, file, String(SLOTS), String(WORK_MS)])
    owners.push(owner)
    await owner.says('ready')
  }
  await using board = await openBoard(uri)
  using _view = await board.view()
  const changed = new Condition()
  let ended = 0
  const callbacks: string[] = []
  board.on('consumed', ({ job }) => {
    if (job.batch === undefined) callbacks.push(job.name)
    else ended += 1
    changed.notify()
  })
  board.on('trashed', () => {
    ended += 1
    changed.notify()
  })
  const whenEnded = async (least: number) => {
    while (ended < least) await changed.wait({ signal: AbortSignal.timeout(LIMIT_MS) })
  }
  const whenCalledBack = async (least: number) => {
    while (callbacks.length < least) await changed.wait({ signal: AbortSignal.timeout(LIMIT_MS) })
  }
  /** Kills an owner, and starts another one, each time that a part of the jobs has ended. */
  const killAlong = async (from: number, jobs: number, between: (kill: number) => Promise<void>) => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      await whenEnded(from + Math.floor(((kill + 1) * jobs) / (KILLS + 2)))
      const victim = owners.shift()
      victim?.signal('SIGKILL')
      await victim?.ended
      await between(kill)
      await start()
    }
    await whenEnded(from + jobs)
  }
  try {
    const begun = Date.now()
    const batches: Batch[] = []
    const jobsOf = new Map<string, Set<string>>()
    for (let number = 0; number < BATCHES; number += 1) {
      const callback = (how: string) => ({ flow: 'callback', store: {}, name: `${how} ${number}` })
      batches.push(await board.batch({ name: String(number), onDone: callback('done'), onFailed: callback('failed') }))
    }
    await Promise.all(Array.from({ length: OWNERS }, start))
    // Half of the batches are sealed before their jobs have ended, the others while owners are killed or when all jobs have ended.
    for (const [number, batch] of batches.entries()) {
      const fails = (index: number) => number % 2 === 1 && index % FAILING === 0
      const posted = await batch.postMany(
        Array.from({ length: JOBS }, (_, index) => ({ flow: 'work', store: {}, details: { fails: fails(index) } })),
      )
      jobsOf.set(batch.name, new Set(posted.map((result) => ('job' in result ? result.job.uuid : ''))))
      if (number % 4 < 2) await batch.seal()
    }
    const unsealed = batches.filter((_, number) => number % 4 >= 2)
    await killAlong(0, BATCHES * JOBS, async () => {
      if (unsealed.length > 1) await unsealed.pop()?.seal()
    })
    for (const batch of unsealed) {
      expect(await batch.progress()).toMatchObject({ state: 'open', open: 0 })
      await batch.seal()
    }
    const failing = Math.ceil(JOBS / FAILING)
    for (const [number, batch] of batches.entries()) {
      const failed = number % 2 === 1 ? failing : 0
      expect(await batch.wait({ timeout: LIMIT_MS })).toBe(failed > 0 ? 'failed' : 'done')
      expect(await batch.progress()).toMatchObject({ total: JOBS, done: JOBS - failed, failed, open: 0, generation: 1 })
    }
    await whenCalledBack(BATCHES)
    await writeFile(`${file}.mended`, '')
    const [failed, restored] = [batches.filter((_, number) => number % 2 === 1), ended]
    await Promise.all(failed.map((batch) => batch.retryFailed()))
    await killAlong(restored, failed.length * failing, async () => undefined)
    for (const batch of failed) {
      expect(await batch.wait({ timeout: LIMIT_MS })).toBe('done')
      expect(await batch.progress()).toMatchObject({ total: JOBS, done: JOBS, failed: 0, open: 0, generation: 2 })
    }
    await whenCalledBack(BATCHES + failed.length)
    for (const owner of owners) owner.signal('SIGTERM')
    await Promise.all(owners.map((owner) => owner.ended))
    expect(owners.flatMap(({ lines }) => lines.filter((line) => line.startsWith('failed')))).toEqual([])
    const expected = batches.flatMap(({ name }, number) =>
      number % 2 === 1 ? [`failed ${name}`, `done ${name}`] : [`done ${name}`],
    )
    expect(callbacks.toSorted()).toEqual(expected.toSorted())
    expect(await board.countJobs()).toBe(0)
    const begins = (await readFile(file, 'utf8')).trimEnd().split('\n')
    expect(findTooEarly(begins, jobsOf)).toEqual([])
    console.log(
      `batches: ${BATCHES} of ${JOBS} jobs, ${begins.length} starts, ${2 * KILLS} kills, in ${Date.now() - begun} ms`,
    )
  } finally {
    await Promise.all(owners.map((owner) => owner[Symbol.asyncDispose]()))
    await rm(folder, { recursive: true, force: true })
  }
}

/** Returns the callbacks of batches that are done and began before a job of their batch began for the last time. */
function findTooEarly(begins: readonly string[], jobsOf: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const lines = begins.map((line) => ({
    uuid: line.slice(0, line.indexOf(' ')),
    name: line.slice(line.indexOf(' ') + 1),
  }))
  return [...jobsOf].flatMap(([batch, jobs]) => {
    const callback = lines.findIndex(({ name }) => name === `done ${batch}`)
    const last = lines.findLastIndex(({ uuid }) => jobs.has(uuid))
    return callback > last ? [] : [batch]
  })
}
