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
import { NotConnected } from '../../../src/core/errors.ts'
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
/** The longest time for a part of the jobs. */
const LIMIT_MS = count({ test: 60_000, long: 600_000 })
/** The longest time between two looks at the state. */
const LOOK_MS = 200

describe('batches are counted, whatever happens to owners', {
  timeout: count({ test: 180_000, long: 1_800_000 }),
}, () => {
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
  // The state decides, and events only say when to look: a job that has come and ended between two reads of the view emits none.
  const changed = new Condition()
  for (const event of ['consumed', 'trashed'] as const) board.on(event, () => changed.notify())
  const until = async (isSo: () => Promise<boolean>) => {
    const limit = AbortSignal.timeout(LIMIT_MS)
    // The sessions are short, so that owners who are killed lose theirs soon: on a busy machine that of this process is lost, too, and comes back.
    const isSoNow = () =>
      isSo().catch((error: unknown) => {
        if (error instanceof NotConnected) return false
        throw error
      })
    while (!(await isSoNow())) {
      limit.throwIfAborted()
      await changed.wait({ signal: AbortSignal.timeout(LOOK_MS) }).catch(() => undefined)
    }
  }
  const whenEnded = (least: number) =>
    until(async () => {
      const counted = await board.batches()
      return counted.reduce((sum, { done, failed }) => sum + done + failed, 0) >= least
    })
  /** The begins of jobs so far, in their order. */
  const begins = async () => toLines(await readFile(file, 'utf8'))
  const callbacks = async () => {
    const found = (await begins()).filter(({ name }) => /^(done|failed) \d+$/.test(name))
    return [...new Map(found.map(({ uuid, name }) => [uuid, name])).values()]
  }
  const whenCalledBack = (least: number) =>
    until(async () => (await callbacks()).length >= least && (await board.countJobs()) === 0)
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
    const failed = batches.filter((_, number) => number % 2 === 1)
    const again = failed.length * failing
    await Promise.all(failed.map((batch) => batch.retryFailed()))
    await killAlong(BATCHES * JOBS - again, again, async () => undefined)
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
    expect((await callbacks()).toSorted()).toEqual(expected.toSorted())
    const lines = await begins()
    expect(findTooEarly(lines, jobsOf)).toEqual([])
    console.log(
      `batches: ${BATCHES} of ${JOBS} jobs, ${lines.length} starts, ${2 * KILLS} kills, in ${Date.now() - begun} ms`,
    )
  } finally {
    await Promise.all(owners.map((owner) => owner[Symbol.asyncDispose]()))
    await rm(folder, { recursive: true, force: true })
  }
}

interface Line {
  readonly uuid: string
  readonly name: string
}

function toLines(log: string): Line[] {
  const lines = log.split('\n').filter((line) => line !== '')
  return lines.map((line) => ({ uuid: line.slice(0, line.indexOf(' ')), name: line.slice(line.indexOf(' ') + 1) }))
}

/** Returns the batches that are done and whose callback began before a job of theirs began for the last time. */
function findTooEarly(lines: readonly Line[], jobsOf: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...jobsOf].flatMap(([batch, jobs]) => {
    const callback = lines.findIndex(({ name }) => name === `done ${batch}`)
    const last = lines.findLastIndex(({ uuid }) => jobs.has(uuid))
    return callback > last ? [] : [batch]
  })
}
