/**
 * Owners of several queues in processes of their own, of which some are killed: limits and resources hold across queues, an order of queues is
 * kept but for what was claimed already, weights divide the claims, and every job is done.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openBoard, type ServedQueues } from '../../../src/board/index.ts'
import { Condition } from '../../../src/core/async/abort.ts'
import { postgresPlaceOn } from '../../board/backends/postgres/boards.ts'
import { redisPlace } from '../../board/backends/redis/places.ts'
import { zookeeperPlace } from '../../board/boards.ts'
import { count } from '../../support/counts.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { type NodeProcess, startNode } from '../../support/node-process.ts'
import { startPostgres } from '../../support/postgres.ts'
import { startRedis } from '../../support/redis.ts'

const CHILD = new URL('./queue-child.ts', import.meta.url)
/** The jobs of each queue. */
const JOBS = count({ test: 160, long: 3_000 })
const KILLS = count({ test: 3, long: 24 })
const SLOTS = 3
const IN_ORDER = ['first', 'second']
const WEIGHTS = { heavy: 3, light: 1 }
/** Two owners serve each of these, and two serve the fifth queue with all others. */
const SERVED: readonly ServedQueues[] = [
  IN_ORDER,
  IN_ORDER,
  IN_ORDER,
  WEIGHTS,
  WEIGHTS,
  WEIGHTS,
  ['mixed*'],
  ['mixed*'],
]
const QUEUES = [...IN_ORDER, ...Object.keys(WEIGHTS), 'mixed']
/** The jobs that owners may have claimed beside each other: two each, and two that were chosen before a change arrived. */
const CLAIMED_AT_ONCE = SERVED.length * 4
/** The longest time without a job that is done. */
const LIMIT_MS = 60_000

interface Line {
  readonly what: string
  readonly at: number
  readonly pid: number
  readonly uuid: string
  readonly queue: string
  readonly keys: readonly string[]
}

describe('queues, whatever happens to owners', () => {
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
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-queues-'))
  const file = join(folder, 'log')
  const owners = new Map<NodeProcess, ServedQueues>()
  const deaths: { pid: number; at: number }[] = []
  const start = async (served: ServedQueues) => {
    const owner = await startNode(CHILD, [uri, file, JSON.stringify(served)])
    owners.set(owner, served)
    await owner.says('ready')
    return owner
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
    const posted = new Set<string>()
    for (let number = 0; number < JOBS; number += 1)
      for (const queue of QUEUES) posted.add((await board.post('work', {}, toOptions(queue, number))).uuid)
    const total = posted.size
    await Promise.all(SERVED.map(start))
    for (let kill = 0; kill < KILLS; kill += 1) {
      await whenConsumed(Math.floor(((kill + 1) * total) / (KILLS + 2)))
      const [victim, served] = [...owners][Math.floor(Math.random() * owners.size)] ?? []
      if (!victim || !served) break
      victim.signal('SIGKILL')
      await victim.ended
      owners.delete(victim)
      deaths.push({ pid: victim.pid, at: Date.now() })
      await start(served)
    }
    await whenConsumed(total)
    for (const owner of owners.keys()) owner.signal('SIGTERM')
    await Promise.all([...owners.keys()].map(({ ended }) => ended))
    expect([...owners.keys()].flatMap((owner) => owner.lines.filter((line) => line.startsWith('failed')))).toEqual([])
    const lines = await linesOf(file)
    const begins = lines.filter(({ what }) => what === 'begin')
    expect(new Set(begins.map(({ uuid }) => uuid))).toEqual(posted)
    const most = mostAtOnce('slots', lines, deaths)
    const [inverted, share] = [mostInverted(begins), shareOfHeavy(begins)]
    console.log(
      [
        `queues: ${total} jobs of ${QUEUES.length} queues, ${begins.length} starts, ${deaths.length} kills`,
        `at once: at most ${most} of ${SLOTS} slots`,
        `order: at most ${inverted} jobs of ${IN_ORDER[0]} were not begun when one of ${IN_ORDER[1]} was`,
        `weights: ${(share * 100).toFixed(1)} % of heavy, of 75 %`,
      ].join('\n  '),
    )
    expect(most).toBeLessThanOrEqual(SLOTS)
    for (const resource of new Set(lines.flatMap(({ keys }) => keys.filter((key) => key.startsWith('disk')))))
      expect(mostAtOnce(resource, lines, deaths), resource).toBe(1)
    expect(inverted).toBeLessThanOrEqual(CLAIMED_AT_ONCE)
    expect(share).toBeGreaterThan(0.675)
    expect(share).toBeLessThan(0.825)
  } finally {
    await Promise.all([...owners.keys()].map((owner) => owner[Symbol.asyncDispose]()))
    await rm(folder, { recursive: true, force: true })
  }
}

/** Returns the options of a job: every fifth has a slot of the limit, and every fifth a resource, of which each has jobs in all queues. */
function toOptions(queue: string, number: number) {
  const [slot, disk] = [number % 5 === 3, number % 5 === 4 ? `disk-${number % 4}` : undefined]
  return {
    queue,
    ...(slot ? { limits: ['slots'] } : {}),
    ...(disk === undefined ? {} : { resources: { exclusive: [disk] } }),
    details: { keys: slot ? 'slots' : (disk ?? 'plain') },
  }
}

/** Returns how many jobs of the key ran at once. The work of an owner that was killed ended with that. */
function mostAtOnce(
  key: string,
  lines: readonly Line[],
  deaths: readonly { readonly pid: number; readonly at: number }[],
): number {
  const running = new Map<string, number>()
  const events = lines.filter(({ keys }) => keys.includes(key))
  const ends = deaths.map(({ pid, at }) => ({ what: 'death', at, pid, uuid: '' }))
  let most = 0
  for (const { what, pid, uuid } of [...events, ...ends].sort((a, b) => a.at - b.at)) {
    if (what === 'begin') running.set(`${pid} ${uuid}`, pid)
    else if (what === 'end') running.delete(`${pid} ${uuid}`)
    else for (const [job, owner] of running) if (owner === pid) running.delete(job)
    most = Math.max(most, running.size)
  }
  return most
}

/** Returns the largest number of plain jobs of the first queue that were not begun when one of the second was. */
function mostInverted(begins: readonly Line[]): number {
  const plain = begins.filter(({ keys }) => keys.includes('plain'))
  const waiting = new Set(plain.filter(({ queue }) => queue === IN_ORDER[0]).map(({ uuid }) => uuid))
  let most = 0
  for (const { queue, uuid } of plain.toSorted((a, b) => a.at - b.at)) {
    if (queue === IN_ORDER[0]) waiting.delete(uuid)
    else if (queue === IN_ORDER[1]) most = Math.max(most, waiting.size)
  }
  return most
}

/** Returns the share of the heavy queue in the first starts of plain jobs, while both weighted queues have jobs. */
function shareOfHeavy(begins: readonly Line[]): number {
  const names = Object.keys(WEIGHTS)
  const plain = begins.filter(({ queue, keys }) => names.includes(queue) && keys.includes('plain'))
  // The heavy queue has no jobs left after four thirds of its number.
  const first = plain.toSorted((a, b) => a.at - b.at).slice(0, Math.floor(plain.length / 2))
  return first.filter(({ queue }) => queue === 'heavy').length / first.length
}

async function linesOf(file: string): Promise<Line[]> {
  return (await readFile(file, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [what = '', at = '', pid = '', uuid = '', queue = '', keys = ''] = line.split(' ')
      return { what, at: Number(at), pid: Number(pid), uuid, queue, keys: keys.split(',') }
    })
}
