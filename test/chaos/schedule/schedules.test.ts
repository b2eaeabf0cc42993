/**
 * Processes that fire the same schedules every second, while they are killed at random, while two of them have a clock that is an hour wrong,
 * and while the server is restarted. Each nominal time has exactly one job.
 */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Claim, type JobBoard, openBoard, schedule } from '../../../src/index.ts'
import { count } from '../../support/counts.ts'
import { type NodeProcess, startNode } from '../../support/node-process.ts'
import { startPostgres } from '../../support/postgres.ts'
import { type Random, randomly } from '../../support/random.ts'
import { startRedis } from '../../support/redis.ts'
import { startZooKeeper } from '../../support/zookeeper.ts'

const PROCESS = new URL('./firing-process.ts', import.meta.url)
const SCHEDULES = count({ test: 10, long: 1_000 })
const PROCESSES = count({ test: 3, long: 5 })
/** How long schedules fire while processes are killed. */
const SECONDS = count({ test: 5, long: 300 })
const TIMEOUT_MS = count({ test: 180_000, long: 1_800_000 })
const HOUR_MS = 3_600_000
/** A schedule of every second is changed by others about as often as a thousand pauses at once are done. */
const PAUSED_AT_ONCE = 20
/** By how much the clocks of the processes are wrong. */
const SHIFTS_MS = [0, HOUR_MS, -HOUR_MS, 0, 0]

interface Served extends AsyncDisposable {
  readonly uri: string
  /** Restarts the server, with the same data. */
  readonly restart: () => Promise<void>
}

const SERVERS: [string, () => Promise<Served>][] = [
  ['ZooKeeper', onZooKeeper],
  ['Postgres', onPostgres],
  ['Redis', onRedis],
]

describe.each(SERVERS)('schedules on %s', (name, serve) => {
  test('each nominal time has one job', { timeout: TIMEOUT_MS }, async () => {
    await using server = await serve()
    await using board = await openBoard(server.uri)
    const random = randomly()
    await using fleet = new Fleet(server.uri)
    await fleet.open()
    const ids = Array.from({ length: SCHEDULES }, (_, n) => `s${n}`)
    const options = { overlap: 'allow', catchUp: 'all' } as const
    for (const id of ids) await board.schedules.put(schedule(id, { every: '1s' }, 'tick', {}, options))
    const ledger = new Ledger()
    await using consumer = new Consumer(board, ledger)
    const kills = await fleet.suffer({ seconds: SECONDS, random, restart: server.restart })
    await pauseAll(board, ids)
    await ledger.quiet(board)
    await consumer[Symbol.asyncDispose]()
    let missed = 0
    for (const id of ids) {
      const { counts } = await board.schedules.show(id)
      const times = ledger.timesOf(id)
      expect(times, id).toHaveLength(counts?.fired ?? -1)
      // Each second between the first and the last is there, or counted.
      const span = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1_000 + 1
      const left = counts?.skipped.missed ?? 0
      expect(times.length + left, id).toBeGreaterThanOrEqual(span)
      if (left === 0) expect(times.length, id).toBe(span)
      missed += left
    }
    expect(ledger.twice).toEqual([])
    expect(fleet.errors).toEqual([])
    console.log(`${name}: seed ${random.seed}, ${ledger.size} jobs, ${kills} kills, ${missed} times missed`)
  })
})

/** What was posted, by schedule and nominal time. */
class Ledger {
  readonly #times = new Map<string, Set<number>>()
  readonly twice: string[] = []
  size = 0
  #lastAt = performance.now()

  add({ run, job }: Claim): void {
    this.#lastAt = performance.now()
    // A job that is claimed again was posted once.
    if (run > 1) return
    const { id, nominal } = Object(job.details['schedule'])
    const times = this.#times.get(id) ?? new Set()
    this.#times.set(id, times)
    const time = Date.parse(nominal)
    if (times.has(time)) this.twice.push(`${id} ${nominal}`)
    times.add(time)
    this.size += 1
  }

  timesOf(id: string): number[] {
    return [...(this.#times.get(id) ?? [])].sort((a, b) => a - b)
  }

  /** Resolves when no job is left. */
  async quiet(board: JobBoard): Promise<void> {
    await expect.poll(async () => board.countJobs(), { timeout: TIMEOUT_MS, interval: 200 }).toBe(0)
    expect(performance.now()).toBeGreaterThan(this.#lastAt)
  }
}

/** Consumes all jobs until it is disposed. */
class Consumer implements AsyncDisposable {
  readonly #stop = new AbortController()
  readonly #consuming: Promise<void>

  constructor(board: JobBoard, ledger: Ledger) {
    this.#consuming = this.#consume(board, ledger)
  }

  async #consume(board: JobBoard, ledger: Ledger): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        const claims = await board.claimNext({ max: 100, signal })
        for (const claim of claims) ledger.add(claim)
        await Promise.all(claims.map((claim) => claim.consume()))
      } catch {
        // The server was restarted, or this is the end: jobs that were not consumed are claimed again.
        await setImmediate()
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#consuming
  }
}

/** Pauses schedules, some at once; again where the server is away, or others are faster. */
async function pauseAll(board: JobBoard, ids: readonly string[]): Promise<void> {
  const left = ids[Symbol.iterator]()
  const lane = async () => {
    for (const id of left) {
      const pause = () => board.schedules.pause(id).then(() => 'paused', String)
      await expect.poll(pause, { timeout: 60_000 }).toBe('paused')
    }
  }
  await Promise.all(Array.from({ length: PAUSED_AT_ONCE }, lane))
}

class Fleet implements AsyncDisposable {
  readonly errors: string[] = []
  readonly #uri: string
  #members: NodeProcess[] = []
  #started = 0

  constructor(uri: string) {
    this.#uri = uri
  }

  async open(): Promise<void> {
    this.#members = await Promise.all(Array.from({ length: PROCESSES }, (_, slot) => this.#start(slot)))
  }

  /** Kills processes at random, and starts others; restarts the server in the middle. Returns the number of kills. */
  async suffer(options: {
    readonly seconds: number
    readonly random: Random
    readonly restart: () => Promise<void>
  }): Promise<number> {
    const { seconds, random, restart } = options
    const end = performance.now() + seconds * 1_000
    let restarting: number | undefined = performance.now() + seconds * 500
    let kills = 0
    while (performance.now() < end) {
      const slot = random.between(0, PROCESSES - 1)
      const victim = this.#members[slot]
      victim?.signal('SIGKILL')
      await victim?.ended
      kills += 1
      this.#members[slot] = await this.#start(slot)
      if (restarting !== undefined && performance.now() > restarting) {
        restarting = undefined
        await restart()
      }
    }
    return kills
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member[Symbol.asyncDispose]()))
  }

  async #start(slot: number): Promise<NodeProcess> {
    this.#started += 1
    const shift = SHIFTS_MS[slot] ?? 0
    const member = await startNode(PROCESS, [this.#uri, `p${this.#started}`, String(shift)])
    await member.says('ready')
    return member
  }
}

async function onZooKeeper(): Promise<Served> {
  const server = await startZooKeeper({ tickTime: 500 })
  return {
    uri: `zookeeper://${server.hosts}/chaos-schedules?tick=500ms`,
    restart: () => server.restart(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

async function onPostgres(): Promise<Served> {
  const server = await startPostgres()
  return {
    uri: `${server.uri}?board=chaos`,
    restart: () => server.restart(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

async function onRedis(): Promise<Served> {
  const server = await startRedis({ config: { appendonly: 'yes', appendfsync: 'always' } })
  return {
    uri: `${server.uri}/0?prefix=chaos`,
    restart: () => server.restart(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
