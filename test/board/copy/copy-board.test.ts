/** Copies of a board, between files and servers: everything that a board has is on the other one afterwards, and nothing twice. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, MemorySpace } from '../../../src/board/backends/memory/index.ts'
import type { Backend, StoredJob, UnreadableJob } from '../../../src/board/contract/index.ts'
import {
  type BoardSide,
  boardInternals,
  type CopyReport,
  copyBoard,
  openSide,
  type SkippedItem,
} from '../../../src/board/internal.ts'
import { InvalidPosting } from '../../../src/core/errors.ts'
import { ManualClock } from '../../../src/testing/index.ts'
import { count } from '../../support/counts.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { createDatabase, type PostgresDatabase } from '../../support/postgres-database.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { TYPESCRIPT } from '../../support/typescript.ts'
import { usual as test, testRows } from '../../variant.ts'
import { namesOn } from '../jobs.ts'
import { withRole } from '../override-role.ts'
import { fill, picture } from './full-board.ts'

const signal = new AbortController().signal

const CHILD = join(import.meta.dirname, 'copy-child.ts')

let folder: string
let postgres: PostgresDatabase
let redis: RedisServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'jobboard-copy-'))
  ;[postgres, redis] = await Promise.all([createDatabase(), startRedis()])
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
  memory: () => `memory:${randomUUID()}`,
  redis: () => `${redis.uri}?prefix=${randomUUID()}`,
}
type Place = keyof typeof PLACES

async function openCopyable(uri: string): Promise<BoardSide & AsyncDisposable> {
  const side = await openSide(uri)
  return { ...side, [Symbol.asyncDispose]: () => side.board.close() }
}

const byKind = (reports: readonly CopyReport[]) =>
  Object.fromEntries(reports.map(({ kind, ...report }) => [kind, report]))

function onSkipped({ kind, name, error }: SkippedItem): never {
  throw new Error(`${kind} ${name} was not copied`, { cause: error })
}

describe.each<[Place, Place]>([
  ['sqlite', 'sqlite'],
  ['sqlite', 'postgres'],
  ['sqlite', 'zookeeper'],
  ['sqlite', 'redis'],
  ['sqlite', 'memory'],
  ['postgres', 'sqlite'],
  ['zookeeper', 'sqlite'],
  ['redis', 'sqlite'],
])('from %s to %s', (fromKind, toKind) => {
  test('everything is on the target, which is paused', async () => {
    await using from = await openCopyable(PLACES[fromKind]())
    await using to = await openCopyable(PLACES[toKind]())
    await fill(from.board)
    const reports = byKind(await copyBoard({ from, to }, { signal, onSkipped }))
    expect(reports).toMatchObject({
      schedules: { copied: 1, target: 1 },
      limits: { copied: 1 },
      holds: { copied: 1 },
      batches: { copied: 2, target: 2 },
      trash: { source: 2, copied: 2, target: 2 },
      history: { source: 4, copied: 4, target: 4 },
      jobs: { source: 6, copied: 6, present: 0, skipped: 0, target: 6 },
    })
    expect(await picture(to)).toEqual(await picture(from))
    expect(to.board.paused).toBe(true)
  })

  test('a claim on the target has a greater run than those on the source, and a greater fence', async () => {
    await using from = await openCopyable(PLACES[fromKind]())
    await using to = await openCopyable(PLACES[toKind]())
    await from.board.post('flow', {})
    const [before] = await from.board.claimNext()
    await before.abandon()
    await from.board.pause()
    await copyBoard({ from, to }, { signal, onSkipped })
    await to.board.resume()
    const [after] = await to.board.claimNext()
    expect(after.job.uuid).toBe(before.job.uuid)
    expect(after.run).toBe(before.run + 1)
    // The fences of ZooKeeper count finer: the command warns of that.
    if (fromKind !== 'zookeeper') expect(after.fence).toBeGreaterThan(before.fence)
    await after.consume()
  })
})

test.each(['sqlite', 'zookeeper'] as const)('what an interrupted copy has left on %s is completed', async (kind) => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES[kind]())
  await fill(from.board)
  for (const [operation, calls] of [
    ['post', 1],
    ['discard', 1],
    ['purge', 1],
    ['cancel', 0],
  ] as const) {
    const broken = { ...to, backend: breakingAfter(to.backend, operation, calls) }
    await expect(copyBoard({ from, to: broken }, { signal, onSkipped })).rejects.toThrow('broken off')
  }
  await copyBoard({ from, to }, { signal, onSkipped })
  expect(await picture(to)).toEqual(await picture(from))
})

testRows(
  [
    ['batches', 1],
    ['trash', 1],
    ['history', 3],
    ['jobs', 2],
  ] as const,
  ([kind]) => kind === 'history',
)('a process that is killed after %s %i is continued by the next one', async (kind, last) => {
  const places = { from: PLACES.sqlite(), to: PLACES.sqlite() }
  await using from = await openCopyable(places.from)
  await fill(from.board)
  const child = spawn(process.execPath, [...TYPESCRIPT, CHILD, places.from, places.to, kind, String(last)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  await using to = await openCopyable(places.to)
  const reports = byKind(await copyBoard({ from, to }, { signal, onSkipped }))
  expect(reports['jobs']).toMatchObject({ source: 6, target: 6 })
  expect(await picture(to)).toEqual(await picture(from))
})

test('jobs are copied in the order of their claims, page after page, with those on which they depend', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.postgres())
  const jobs = count({ test: 450, long: 100_000 })
  const items = Array.from({ length: jobs }, (_, index) => ({ flow: 'flow', store: {}, name: String(index) }))
  const results = await from.board.postMany(items)
  const last = results.at(-1)
  if (!last || 'error' in last) throw new Error('the last job was not posted')
  await from.board.post('flow', {}, { name: 'after', priority: 'VERY_HIGH', after: [last.job] })
  await from.board.pause()
  await copyBoard({ from, to }, { signal, onSkipped })
  expect(await namesOn(to.board)).toEqual(await namesOn(from.board))
  await to.board.resume()
  const [first] = await to.board.claimNext()
  expect(first.job.name).toBe('0')
  await first.abandon()
})

test('a source that is not paused, or runs jobs, is refused', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.sqlite())
  const { uuid } = await from.board.post('flow', {}, { name: 'running' })
  const copying = (waitMs: number) => copyBoard({ from, to }, { signal, waitMs, onSkipped })
  await expect(copying(0)).rejects.toThrow(/is not paused.*run jobboard pause --board 'sqlite:/)
  const [claim] = await from.board.claimNext()
  await from.board.pause()
  await expect(copying(0)).rejects.toThrow(`1 of its jobs run: ${uuid} (running); wait until they have ended`)
  const waiting = copying(60_000)
  await claim.consume()
  expect(byKind(await waiting)['history']).toMatchObject({ copied: 1 })
})

test('a target that has anything, or is a copy of another board, or was resumed, is refused', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using other = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.sqlite())
  for (const { board } of [from, other]) await board.pause()
  const job = await to.board.post('flow', {})
  const copying = (source = from) => copyBoard({ from: source, to }, { signal, onSkipped })
  await expect(copying()).rejects.toThrow(/is not empty: it has jobs; copy to a board that is new/)
  await to.board.cancel(job)
  for await (const entry of to.board.trashed()) await to.board.purge(entry)
  await expect(copying()).rejects.toThrow(/is not empty: it has a history/)
  await using fresh = await openCopyable(PLACES.sqlite())
  const again = (source = from) => copyBoard({ from: source, to: fresh }, { signal, onSkipped })
  await again()
  await again()
  await expect(again(other)).rejects.toThrow(
    /it has a copy of sqlite:.*, which is another board, or was resumed after that copy/,
  )
  await fresh.board.resume()
  await expect(again()).rejects.toThrow(/was resumed since it was copied/)
})

test('a source that was resumed is not copied further: its jobs may have run', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.sqlite())
  await from.board.post('flow', {})
  await from.board.pause()
  const copying = () => copyBoard({ from, to }, { signal, onSkipped })
  await copying()
  // To pause a paused board again is the same pause.
  await from.board.pause({ reason: 'still' })
  await to.board.pause({ reason: 'still' })
  await copying()
  await from.board.resume()
  await from.board.pause()
  await expect(copying()).rejects.toThrow(/is not empty: it has a copy of sqlite:.*, or was resumed after that copy/)
})

test('a source that another process resumes meanwhile is noticed', async () => {
  const uri = PLACES.sqlite()
  await using from = await openCopyable(uri)
  await using to = await openCopyable(PLACES.sqlite())
  await from.board.post('flow', {})
  await from.board.pause()
  await using stranger = await openCopyable(uri)
  const backend = withRole(to.backend, 'jobs', (jobs) => ({
    post: async (request) => {
      await stranger.board.resume()
      return jobs.post(request)
    },
  }))
  const copying = copyBoard({ from, to: { ...to, backend } }, { signal, onSkipped })
  await expect(copying).rejects.toThrow(/was resumed while it was copied/)
  await expect(copyBoard({ from, to }, { signal, onSkipped })).rejects.toThrow(/is not paused/)
})

test('a target that is resumed meanwhile is noticed: its jobs may have run before all of them were there', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.sqlite())
  await from.board.post('flow', {})
  await from.board.pause()
  const backend = withRole(to.backend, 'jobs', (jobs) => ({
    post: async (request) => {
      await to.board.resume()
      return jobs.post(request)
    },
  }))
  const copying = copyBoard({ from, to: { ...to, backend } }, { signal, onSkipped })
  await expect(copying).rejects.toThrow(/was resumed since it was copied/)
})

test('a job that cannot be read any more keeps the copy that an earlier run has made', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.sqlite())
  const { uuid } = await from.board.post('flow', {}, { name: 'damaged later' })
  await from.board.pause()
  await copyBoard({ from, to }, { signal, onSkipped })
  const damaged = { ...from, backend: unreadable(from.backend, uuid) }
  const reports = byKind(await copyBoard({ from: damaged, to }, { signal, onSkipped: () => undefined }))
  expect(reports['jobs']).toMatchObject({ skipped: 1, target: 1 })
  expect(await namesOn(to.board)).toEqual(['damaged later'])
})

test('a job that has left the source between two runs leaves the target', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.sqlite())
  const [gone] = await Promise.all(['gone', 'stays'].map((name) => from.board.post('flow', {}, { name })))
  await from.board.pause()
  await copyBoard({ from, to }, { signal, onSkipped })
  if (gone) await from.board.cancel(gone)
  const reports = byKind(await copyBoard({ from, to }, { signal, onSkipped }))
  expect(reports).toMatchObject({ jobs: { source: 1, target: 1, present: 1 }, trash: { source: 1, target: 1 } })
  expect(await namesOn(to.board)).toEqual(['stays'])
})

test('jobs with one uuid are all copied, and a second copy leaves them alone', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.sqlite())
  const { uuid } = await from.board.post('flow', {}, { name: 'first' })
  const between = await from.board.post('flow', {}, { name: 'between' })
  await from.board.post('flow', {}, { name: 'after', after: [between] })
  await from.board.post('flow', {}, { name: 'second', uuid })
  await from.board.pause()
  for (const each of ['copied', 'present']) {
    const reports = byKind(await copyBoard({ from, to }, { signal, onSkipped }))
    expect(reports['jobs']).toMatchObject({ source: 4, target: 4, [each]: 4, skipped: 0 })
  }
  expect((await namesOn(to.board)).sort()).toEqual(['after', 'between', 'first', 'second'])
})

test('a key that another job has since is free on the target, for that job and for the entry of the trash', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.memory())
  const former = await from.board.post('flow', {}, { name: 'former', key: 'the key' })
  await from.board.pause()
  await copyBoard({ from, to }, { signal, onSkipped })
  await from.board.cancel(former)
  await from.board.post('flow', {}, { name: 'newer', key: 'the key' })
  const reports = byKind(await copyBoard({ from, to }, { signal, onSkipped }))
  expect(reports).toMatchObject({ jobs: { source: 1, target: 1 }, trash: { source: 1, target: 1 } })
  expect(await namesOn(to.board)).toEqual(['newer'])
})

test('a copy that was paused in the same millisecond as its source is continued, and not taken for the source', async () => {
  const clock = new ManualClock()
  const openAt = async (uri: string): Promise<BoardSide> => {
    const backend = new MemoryBackend({ uri, space: new MemorySpace({ clock }) })
    const board = new JobBoard(backend, { who: 'copier' })
    await boardInternals(board).open()
    return { board, backend }
  }
  const [from, to] = [await openAt('memory:from'), await openAt('memory:to')]
  await using _boards = {
    [Symbol.asyncDispose]: () => Promise.all([from.board.close(), to.board.close()]).then(() => {}),
  }
  await from.board.post('flow', {})
  await from.board.pause()
  await copyBoard({ from, to }, { signal, onSkipped })
  expect((await to.board.pauseOrigin())?.since).toEqual((await from.board.pauseOrigin())?.since)
  const reports = byKind(await copyBoard({ from, to }, { signal, onSkipped }))
  expect(reports['jobs']).toMatchObject({ source: 1, target: 1, present: 1 })
  await expect(copyBoard({ from, to: from }, { signal, onSkipped })).rejects.toThrow('is the board that is copied')
})

describe.each(['sqlite', 'memory'] as const)(
  'a job that another post has replaced between two runs (to %s)',
  (kind) => {
    test('is replaced on the target', async () => {
      await using from = await openCopyable(PLACES.sqlite())
      await using to = await openCopyable(PLACES[kind]())
      const key = { name: 'the key', on: 'replace' } as const
      const first = await from.board.post('flow', { text: 'former' }, { key, delay: '1d' })
      const next = await from.board.post('flow', {}, { name: 'next', after: [first] })
      await from.board.pause()
      await copyBoard({ from, to }, { signal, onSkipped })
      await from.board.post('flow', { text: 'newer' }, { key, priority: 'HIGH' })
      const reports = byKind(await copyBoard({ from, to }, { signal, onSkipped }))
      expect(reports['jobs']).toMatchObject({ source: 2, target: 2, present: 2 })
      const copies = await Promise.all([first, next].map(({ uuid }) => to.board.find(uuid)))
      expect(copies.map((job) => [job.priority, job.details.store, job.delayedUntil])).toEqual([
        ['HIGH', { text: 'newer' }, undefined],
        ['NORMAL', {}, undefined],
      ])
    })

    test('is posted anew if its copy has left the target', async () => {
      await using from = await openCopyable(PLACES.sqlite())
      await using to = await openCopyable(PLACES[kind]())
      const key = { name: 'the key', on: 'replace' } as const
      const { uuid } = await from.board.post('flow', {}, { key })
      await from.board.pause()
      await copyBoard({ from, to }, { signal, onSkipped })
      await from.board.post('flow', { text: 'newer' }, { key })
      let hasLeft = false
      const backend = withRole(to.backend, 'jobs', (jobs) => ({
        post: async (request) => {
          if (!hasLeft) await to.board.cancel(await to.board.find(uuid))
          hasLeft = true
          return jobs.post(request)
        },
      }))
      await copyBoard({ from, to: { ...to, backend } }, { signal, onSkipped })
      expect((await to.board.find(uuid)).details.store).toEqual({ text: 'newer' })
    })
  },
)

test('a board is not copied to itself, however it is named', async () => {
  const uri = PLACES.sqlite()
  await using from = await openCopyable(uri)
  await using to = await openCopyable(uri.replace(folder, `${folder}/.`))
  await from.board.pause()
  await expect(copyBoard({ from, to }, { signal, onSkipped })).rejects.toThrow(/is the board that is copied/)
})

test('a job that cannot be read is named and left out, with those that depend on it', async () => {
  await using from = await openCopyable(PLACES.sqlite())
  await using to = await openCopyable(PLACES.sqlite())
  const broken = await from.board.post('flow', {}, { name: 'broken' })
  const dependent = await from.board.post('flow', {}, { after: [broken] })
  await from.board.post('flow', {}, { name: 'sound' })
  await from.board.pause()
  const skipped: string[] = []
  const reports = byKind(
    await copyBoard(
      { from: { ...from, backend: unreadable(from.backend, broken.uuid) }, to },
      { signal, onSkipped: ({ kind, name }) => skipped.push(`${kind} ${name}`) },
    ),
  )
  expect(reports['jobs']).toMatchObject({ source: 3, copied: 1, skipped: 2, target: 1 })
  expect(skipped).toEqual([expect.stringMatching(/^jobs job0*1$/), `jobs ${dependent.uuid}`])
})

/** Returns the backend, which cannot read the job. */
function unreadable(backend: Backend, uuid: string): Backend {
  const damaged = (job: StoredJob | UnreadableJob | undefined) =>
    job && 'posting' in job && job.posting.uuid === uuid ? { id: job.id, error: new InvalidPosting('damaged') } : job
  return withRole(backend, 'jobs', (jobs) => ({ read: async (ids) => (await jobs.read(ids)).map(damaged) }))
}

/** Returns the backend, whose operation fails when it was called so many times. */
function breakingAfter(backend: Backend, operation: 'post' | 'discard' | 'purge' | 'cancel', calls: number): Backend {
  let left = calls
  const unlessBroken =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> => {
      left -= 1
      return left < 0 ? Promise.reject(new Error('broken off')) : call(...args)
    }
  if (operation === 'post')
    return withRole(backend, 'jobs', (jobs) => ({ post: unlessBroken((request) => jobs.post(request)) }))
  if (operation === 'cancel')
    return withRole(backend, 'signals', (signals) => ({ cancel: unlessBroken((request) => signals.cancel(request)) }))
  return withRole(backend, 'trash', (trash) =>
    operation === 'discard'
      ? { discard: unlessBroken((request) => trash.discard(request)) }
      : { purge: unlessBroken((entry) => trash.purge(entry)) },
  )
}
