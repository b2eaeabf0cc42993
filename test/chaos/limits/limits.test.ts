/**
 * Owners in processes of their own claim limited jobs, are killed, or stopped for longer than their session lasts, and limits change meanwhile.
 * What they wrote down is compared with the limits: never too many at once, never too many starts in any time by the clock of the servers, and
 * every job is done. One of many keys is stopped until all other jobs are done: its jobs hold up no others.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { Condition } from '../../../src/core/async/abort.ts'
import { postgresPlaceOn } from '../../board/backends/postgres/boards.ts'
import { redisPlace } from '../../board/backends/redis/places.ts'
import { zookeeperPlace } from '../../board/boards.ts'
import { count } from '../../support/counts.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { type NodeProcess, startNode } from '../../support/node-process.ts'
import { startPostgres } from '../../support/postgres.ts'
import { startRedis } from '../../support/redis.ts'

const CHILD = new URL('./limited-child.ts', import.meta.url)
const JOBS = count({ test: 300, long: 6_000 })
const OWNERS = count({ test: 4, long: 8 })
const KILLS = count({ test: 3, long: 40 })
const SLOTS = 3
const TENANTS = count({ test: 20, long: 1_000 })
const TENANT_SLOTS = 2
/** The tenant whose jobs wait until the others are done. Every tenth job is one of its jobs. */
const STOPPED = 'tenant/0'
const RATE = { limit: 50, perMs: 1_000, burst: 5 }
/** The error of the servers' times: they are in whole milliseconds. */
const ROUNDING_MS = 1
/** The same on Postgres, where the transaction writes the job some time after it has taken the tokens. */
const POSTGRES_DELAY_MS = 250
/** The longest time without a job that is done. */
const LIMIT_MS = 30_000

interface Line {
  readonly what: string
  readonly at: number
  readonly pid: number
  readonly uuid: string
  readonly keys: readonly string[]
}

describe('limits hold, whatever happens to owners', () => {
  test.runIf(zookeeperHosts)('on ZooKeeper', async () => {
    const place = await zookeeperPlace()
    await check(`${place.uri}?sessionTimeout=4s`)
    await place[Symbol.asyncDispose]()
  })

  test('on Postgres', async () => {
    await using server = await startPostgres({ config: { fsync: 'off', max_connections: '300' } })
    await using place = await postgresPlaceOn(server.uri)
    await check(`${place.uri}&sessionTimeout=2s`, { timeErrorMs: POSTGRES_DELAY_MS })
  })

  test('on Redis', async () => {
    await using server = await startRedis()
    await using place = await redisPlace(server)
    await check(`${place.uri}&ttl=2s`)
  })
})

async function check(uri: string, { timeErrorMs = ROUNDING_MS } = {}): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-limits-'))
  const file = join(folder, 'log')
  const owners = new Map<number, NodeProcess>()
  const deaths: Death[] = []
  let stopped: NodeProcess | undefined
  let stops = 0
  const start = async () => {
    const owner = await startNode(CHILD, [uri, file])
    owners.set(owner.pid, owner)
    await owner.says('ready')
  }
  await using board = await openBoard(uri)
  using _view = await board.view()
  const changed = new Condition()
  let consumed = 0
  board.on('consumed', () => {
    consumed += 1
    changed.notify()
  })
  const whenConsumed = async (jobs: number) => {
    while (consumed < jobs) await changed.wait({ signal: AbortSignal.timeout(LIMIT_MS) })
  }
  try {
    await board.limits.set('slots', { concurrency: SLOTS })
    await board.limits.set('rate', { rate: { limit: RATE.limit, per: RATE.perMs, burst: RATE.burst } })
    await board.limits.set('tenant/*', { concurrency: TENANT_SLOTS })
    await board.limits.stop(STOPPED)
    const posted = new Set<string>()
    const others = JOBS - Math.ceil(JOBS / 10)
    for (let number = 0; number < JOBS; number += 1) {
      const tenant = number % 10 === 0 ? STOPPED : `tenant/${1 + (number % (TENANTS - 1))}`
      const keys = [tenant, ...([['slots'], ['rate'], ['slots', 'rate'], []][number % 4] ?? [])]
      const { uuid } = await board.post('work', {}, { limits: keys, details: { keys: keys.join(',') } })
      posted.add(uuid)
    }
    const begun = Date.now()
    await Promise.all(Array.from({ length: OWNERS }, start))
    for (let kill = 0; kill < KILLS; kill += 1) {
      await whenConsumed(Math.floor(((kill + 1) * others) / (KILLS + 2)))
      const running = [...owners].filter(([pid]) => pid !== stopped?.pid)
      const [pid = 0, victim] = running[Math.floor(Math.random() * running.length)] ?? []
      if (!victim) break
      if (kill % 3 === 2 && stopped === undefined) {
        victim.signal('SIGSTOP')
        stopped = victim
        stops += 1
      } else {
        victim.signal('SIGKILL')
        await victim.ended
        owners.delete(pid)
        // By now it was stopped for as long as some jobs take; in a long run its session is over.
        stopped?.signal('SIGCONT')
        stopped = undefined
      }
      deaths.push({ pid, at: Date.now() })
      await board.limits.set('unrelated', { concurrency: kill })
      await start()
    }
    stopped?.signal('SIGCONT')
    await whenConsumed(others)
    expect(consumed).toBe(others)
    await board.limits.resume(STOPPED)
    await whenConsumed(JOBS)
    for (const owner of owners.values()) owner.signal('SIGTERM')
    await Promise.all([...owners.values()].map(({ ended }) => ended))
    const lines = await linesOf(file)
    const tookMs = Date.now() - begun
    const most = mostAtOnce('slots', lines, deaths)
    const window = worstWindow(lines, { timeErrorMs })
    const begins = lines.filter(({ what }) => what === 'begin').length
    console.log(
      [
        `limits: ${posted.size} jobs, ${begins} starts by ${OWNERS} owners, ${deaths.length - stops} kills, ${stops} stops, ${TENANTS} tenants`,
        `at once: at most ${most} of ${SLOTS} slots`,
        `rate: nearest to its allowance ${window.starts} starts in ${Math.round(window.ms)} ms, of ${window.allowed}, by the clock of the servers`,
        `in ${tookMs} ms`,
      ].join('\n  '),
    )
    expect([...owners.values()].flatMap((owner) => owner.lines.filter((line) => line.startsWith('failed')))).toEqual([])
    expect(new Set(lines.filter(({ what }) => what === 'begin').map(({ uuid }) => uuid))).toEqual(posted)
    expect(most).toBeLessThanOrEqual(SLOTS)
    for (const tenant of new Set(lines.flatMap(({ keys }) => keys.filter((key) => key.startsWith('tenant/')))))
      expect(mostAtOnce(tenant, lines, deaths), tenant).toBeLessThanOrEqual(TENANT_SLOTS)
    expect(window.starts).toBeLessThanOrEqual(window.allowed)
  } finally {
    await Promise.all([...owners.values()].map((owner) => owner[Symbol.asyncDispose]()))
    await rm(folder, { recursive: true, force: true })
  }
}

/** When an owner was killed, or was stopped. */
interface Death {
  readonly pid: number
  readonly at: number
}

/** Returns how many jobs of the key ran at once. The work of an owner that was killed or stopped ended with that. */
function mostAtOnce(key: string, lines: readonly Line[], deaths: readonly Death[]): number {
  const running = new Set<string>()
  const events = lines
    .filter(({ keys }) => keys.includes(key))
    .map(({ what, at, pid, uuid }) => ({ what, at, job: `${pid} ${uuid}`, pid }))
  const killed = deaths.map(({ pid, at }) => ({ what: 'death', at, job: '', pid }))
  let most = 0
  for (const { what, job, pid } of [...events, ...killed].sort((a, b) => a.at - b.at)) {
    if (what === 'begin') running.add(job)
    else if (what === 'end') running.delete(job)
    else for (const each of [...running]) if (each.startsWith(`${pid} `)) running.delete(each)
    most = Math.max(most, running.size)
  }
  return most
}

interface Window {
  readonly starts: number
  readonly ms: number
  /** The starts that burst and rate permit in this time. */
  readonly allowed: number
}

/** Returns the time in which the starts were nearest to what burst and rate permit, or exceeded it by most, by the clock of the servers. */
function worstWindow(lines: readonly Line[], { timeErrorMs }: { readonly timeErrorMs: number }): Window {
  const starts = lines.filter(({ what, keys }) => what === 'granted' && keys.includes('rate')).map(({ at }) => at)
  starts.sort((a, b) => a - b)
  let worst: Window = { starts: 0, ms: 0, allowed: Number.POSITIVE_INFINITY }
  for (const [first, from] of starts.entries())
    for (let last = first; last < starts.length; last += 1) {
      const ms = (starts[last] ?? from) - from
      const allowed = RATE.burst + Math.floor(((ms + timeErrorMs) * RATE.limit) / RATE.perMs)
      const count = last - first + 1
      if (count - allowed > worst.starts - worst.allowed) worst = { starts: count, ms, allowed }
    }
  return worst
}

async function linesOf(file: string): Promise<Line[]> {
  return (await readFile(file, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [what = '', at = '', pid = '', uuid = '', keys = ''] = line.split(' ')
      return { what, at: Number(at), pid: Number(pid), uuid, keys: keys.split(',') }
    })
}
