/**
 * Limits of boards against a model: whatever is set, removed, held, posted, claimed, given back and taken outside of claims, by whichever board and
 * at whichever time, no claim is granted that the limits do not permit, no window of time has more starts than burst and rate, and
 * what is permitted is granted. Rates are raised and lowered between all of this.
 *
 * On memory the clock is turned. On servers it is theirs, and stands still for limits whose tokens come back in hours.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, MemorySpace } from '../../../src/board/backends/memory/index.ts'
import type { Claim, Job } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { LimitReached, NotFound, Timeout } from '../../../src/core/errors.ts'
import type { Duration } from '../../../src/core/time.ts'
import { ManualClock } from '../../../src/testing/hand-clock.ts'
import { postgresBoards } from '../../board/backends/postgres/boards.ts'
import { redisBoards } from '../../board/backends/redis/places.ts'
import { sqliteBoards } from '../../board/backends/sqlite/boards.ts'
import { zookeeperBoards } from '../../board/boards.ts'
import { nextSession, whenLost } from '../../board/events.ts'
import { refresh } from '../../board/jobs.ts'
import type { BoardBackend } from '../../contract/board.ts'
import { count } from '../../support/counts.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { LimitModel, type ModelJob, type Settings } from './limit-model.ts'

const BOARDS = 2

const KEYS = ['a', 'b', 'p/1', 'p/2'] as const
const board = fc.nat(BOARDS - 1)
const which = fc.nat(1_000)
const key = fc.constantFrom(...KEYS)
const id = fc.constantFrom(...KEYS, 'p/*', '*', 'flow/work')
const cost = fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 6 }))
const concurrency = fc.integer({ min: 0, max: 3 })

/** @param unit the time of which rates are multiples, in milliseconds */
function steps(unit: number, { hasTime }: { readonly hasTime: boolean }) {
  const rate = fc.record({
    limit: fc.integer({ min: 1, max: 5 }),
    per: fc.integer({ min: 1, max: 50 }).map((times) => times * unit),
    burst: fc.integer({ min: 1, max: 4 }),
  })
  const settings: fc.Arbitrary<Settings> = fc.oneof(
    fc.record({ concurrency }),
    { weight: 3, arbitrary: fc.record({ rate }) },
    fc.record({ concurrency, rate }),
  )
  const limits = fc.oneof(
    { weight: 8, arbitrary: fc.uniqueArray(fc.record({ key, cost }), { maxLength: 3, selector: (each) => each.key }) },
    { weight: 1, arbitrary: fc.constant('none' as const) },
  )
  const ms = fc.integer({ min: 1, max: 60 }).map((times) => times * unit)
  return fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('set' as const), board, id, settings }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), board, id }) },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('post' as const), board, limits }) },
    {
      weight: 8,
      arbitrary: fc.record({ kind: fc.constant('claim next' as const), board, max: fc.integer({ min: 1, max: 4 }) }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), board, which }) },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('settle' as const),
        which,
        how: fc.constantFrom('consume' as const, 'abandon' as const, 'trash' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('push back' as const), board, id, ms }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('stop' as const), board, id }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('resume' as const), board, id }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('take' as const), board, key, cost }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('expire' as const), board }) },
    {
      weight: hasTime ? 8 : 0,
      arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.oneof(ms, fc.constant(1)) }),
    },
  )
}
type Step = ReturnType<typeof steps> extends fc.Arbitrary<infer S> ? S : never

/** A process that does not wait for its own changes of limits to be known chooses by those before them. */
const OWN_CHANGES: readonly Step[] = [
  { kind: 'set', board: 0, id: 'p/2', settings: { concurrency: 0 } },
  { kind: 'stop', board: 0, id: 'p/2' },
  { kind: 'stop', board: 0, id: 'flow/work' },
  { kind: 'remove', board: 0, id: 'p/2' },
  { kind: 'resume', board: 0, id: 'flow/work' },
  { kind: 'post', board: 0, limits: [] },
  { kind: 'post', board: 0, limits: [] },
  { kind: 'claim', board: 0, which: 0 },
]

/** A refusal tells when a job that costs less may start, to the fraction of a millisecond. */
const FRACTIONS: readonly Step[] = [
  { kind: 'set', board: 0, id: 'a', settings: { rate: { limit: 3, per: 10, burst: 2 } } },
  { kind: 'post', board: 0, limits: [{ key: 'a', cost: 1 }] },
  { kind: 'post', board: 0, limits: [{ key: 'a', cost: 2 }] },
  { kind: 'post', board: 0, limits: [{ key: 'a', cost: 1 }] },
  { kind: 'claim next', board: 0, max: 1 },
  { kind: 'claim', board: 1, which: 0 },
  { kind: 'claim', board: 1, which: 1 },
]

/** A burst forgives tokens beyond it, also to jobs that cost more. */
const FORGIVEN: readonly Step[] = [
  { kind: 'set', board: 0, id: 'b', settings: { rate: { limit: 1, per: 10, burst: 1 } } },
  { kind: 'post', board: 0, limits: [{ key: 'b', cost: 2 }] },
  { kind: 'claim next', board: 0, max: 1 },
  { kind: 'set', board: 0, id: 'b', settings: { rate: { limit: 1, per: 20, burst: 1 } } },
  { kind: 'advance', ms: 20 },
  { kind: 'post', board: 0, limits: [{ key: 'b', cost: 2 }] },
  { kind: 'claim next', board: 0, max: 1 },
]

/** A third of 50 ms is not exact: the token that is missing is still one token at a rate with a longer interval. */
const ROUNDED: readonly Step[] = [
  { kind: 'set', board: 0, id: 'a', settings: { rate: { limit: 3, per: 50, burst: 1 } } },
  { kind: 'set', board: 0, id: '*', settings: { rate: { limit: 1, per: 130, burst: 2 } } },
  { kind: 'post', board: 0, limits: [{ key: 'a', cost: 1 }] },
  { kind: 'post', board: 0, limits: [{ key: 'a', cost: 1 }] },
  { kind: 'claim next', board: 0, max: 1 },
  { kind: 'remove', board: 0, id: 'a' },
  { kind: 'claim next', board: 0, max: 1 },
]

/** Where the boards are. */
interface World {
  /** How long a call waits for what must be granted. */
  readonly patience: Duration
  readonly boards: readonly JobBoard[]
  readonly now: () => number
  advance(ms: number): void
  expire(board: JobBoard): Promise<void>
}

class Run {
  readonly #world: World
  readonly #model = new LimitModel()
  readonly #jobs = new Map<string, { readonly job: Job; readonly model: ModelJob }>()
  readonly #claims: { readonly claim: Claim; readonly board: JobBoard; readonly model: ModelJob }[] = []

  constructor(world: World) {
    this.#world = world
  }

  async take(step: Step): Promise<void> {
    const { advance, now } = this.#world
    const model = this.#model
    switch (step.kind) {
      case 'set': {
        await this.#board(step).limits.set(step.id, step.settings)
        return model.set(step.id, step.settings, now())
      }
      case 'remove': {
        await this.#board(step).limits.remove(step.id).catch(unless(NotFound))
        return model.remove(step.id, now())
      }
      case 'push back': {
        await this.#board(step).limits.pushBack(step.id, { for: step.ms })
        return model.hold(step.id, now() + step.ms)
      }
      case 'stop': {
        await this.#board(step).limits.stop(step.id)
        return model.hold(step.id, Number.POSITIVE_INFINITY)
      }
      case 'resume': {
        await this.#board(step).limits.resume(step.id)
        return model.resume(step.id)
      }
      case 'post': {
        const job = await this.#board(step).post('work', {}, { limits: step.limits })
        this.#jobs.set(job.uuid, { job, model: model.post(step.limits) })
        return
      }
      case 'claim':
        return this.#claim(this.#board(step), step.which)
      case 'claim next':
        return this.#claimNext(this.#board(step), step.max)
      case 'settle':
        return this.#settle(step.which, step.how)
      case 'take':
        return this.#takeTokens(this.#board(step), step)
      case 'expire':
        return this.#expire(this.#board(step))
      case 'advance':
        return advance(step.ms)
    }
  }

  async #claim(board: JobBoard, which: number): Promise<void> {
    const waiting = [...this.#jobs.values()].filter(({ model }) => model.state === 'waiting' && !model.hasLostOwner)
    const picked = waiting[which % waiting.length]
    if (!picked) return
    await refresh(board)
    const mayStart = this.#model.mayStart(picked.model, this.#world.now())
    const claim = await board.claim(await board.find(picked.job.uuid)).catch(unless(LimitReached))
    if (claim) this.#granted(board, claim)
    expect(claim !== undefined || !mayStart, `job ${picked.model.number} may start, and does not`).toBe(true)
  }

  async #claimNext(board: JobBoard, max: number): Promise<void> {
    await refresh(board)
    const startable = this.#model.startable(this.#world.now())
    const timeout = startable.length > 0 ? this.#world.patience : 0
    const claims = (await board.claimNext({ max, timeout }).catch(unless(Timeout))) ?? []
    for (const claim of claims) this.#granted(board, claim)
    expect(claims.length > 0 || startable.length === 0, `job ${startable[0]?.number} may start, and does not`).toBe(
      true,
    )
  }

  #granted(board: JobBoard, claim: Claim): void {
    const found = this.#jobs.get(claim.job.uuid)
    if (!found) throw new Error('a job was claimed that nobody has posted')
    this.#model.grant(found.model, this.#world.now())
    this.#claims.push({ claim, board, model: found.model })
  }

  async #settle(which: number, how: 'consume' | 'abandon' | 'trash'): Promise<void> {
    const [held] = this.#claims.splice(which % Math.max(1, this.#claims.length), 1)
    if (!held) return
    await held.claim[how]()
    this.#model.end(held.model, how === 'abandon' ? 'waiting' : 'gone')
  }

  async #takeTokens(board: JobBoard, { key, cost }: { readonly key: string; readonly cost: number }): Promise<void> {
    const free = this.#model.take(key, cost, this.#world.now())
    const taking = board.limits.take(key, { cost, timeout: free ? this.#world.patience : 0 })
    const refused = await taking.then(
      () => undefined,
      (error: unknown) => error,
    )
    if (refused && !(refused instanceof Timeout)) throw refused
    expect(refused === undefined, `${cost} tokens of ${key} outside of a claim`).toBe(free)
  }

  async #expire(board: JobBoard): Promise<void> {
    const held = this.#claims.filter((each) => each.board === board)
    const back = nextSession(board)
    await this.#world.expire(board)
    await Promise.all([back, ...held.map(({ claim }) => whenLost(claim))])
    for (const each of held) {
      this.#claims.splice(this.#claims.indexOf(each), 1)
      this.#model.end(each.model, 'waiting')
      each.model.hasLostOwner = true
    }
    await Promise.all(this.#world.boards.map(refresh))
  }

  /** What is shown of each key is what is taken. */
  async check(): Promise<void> {
    const [board] = this.#world.boards
    for (const key of KEYS) {
      const shown = await board?.limits.show(key).catch(unless(NotFound))
      if (shown) expect(shown.keys?.[0]?.running ?? 0, key).toBe(this.#model.runningOf(key))
    }
  }

  #board({ board }: { readonly board: number }): JobBoard {
    const found = this.#world.boards[board]
    if (!found) throw new Error('there is no such board')
    return found
  }
}

/** Returns what makes an error of this class no result. */
function unless(type: abstract new (...given: never[]) => Error): (error: unknown) => undefined {
  return (error) => {
    if (error instanceof type) return undefined
    throw error
  }
}

async function play(world: World, sequence: readonly Step[]): Promise<void> {
  const run = new Run(world)
  for (const [index, step] of sequence.entries()) {
    try {
      await run.take(step)
    } catch (error) {
      throw new Error(`step ${index}: ${JSON.stringify(step)}: ${String(error)}`, { cause: error })
    }
  }
  await run.check()
}

test('on memory, with a clock that is turned', { timeout: count({ test: 180_000, long: 1_800_000 }) }, async () => {
  const sequences = fc.array(steps(10, { hasTime: true }), { minLength: 5, maxLength: 60, size: 'max' })
  await fc.assert(
    fc.asyncProperty(sequences, async (sequence) => {
      const clock = new ManualClock()
      const space = new MemorySpace({ clock })
      const backends = Array.from({ length: BOARDS }, () => new MemoryBackend({ uri: 'memory:', space }))
      const boards = backends.map((backend) => new JobBoard(backend))
      for (const each of boards) {
        await boardInternals(each).open()
        await each.view()
      }
      try {
        await play(
          {
            boards,
            patience: '2s',
            now: () => clock.now(),
            advance: (ms) => clock.advance(ms),
            expire: async (each) => backends[boards.indexOf(each)]?.expireSession(),
          },
          sequence,
        )
      } finally {
        await Promise.all(boards.map((each) => each.close()))
      }
    }),
    {
      examples: [[[...OWN_CHANGES]], [[...FRACTIONS]], [[...FORGIVEN]], [[...ROUNDED]]],
      numRuns: count({ test: 150, long: 5_000 }),
    },
  )
})

describe('on servers', () => {
  let postgres: PostgresServer
  let redis: RedisServer
  beforeAll(async () => {
    ;[postgres, redis] = await Promise.all([startPostgres({ config: { fsync: 'off' } }), startRedis()])
  })
  afterAll(() => Promise.all([postgres.stop(), redis.stop()]))

  const backends: [string, boolean, BoardBackend][] = [
    ['ZooKeeper', zookeeperHosts !== '', zookeeperBoards],
    ['Postgres', true, postgresBoards(() => postgres)],
    ['Redis', true, redisBoards(() => redis)],
    ['SQLite', true, sqliteBoards()],
  ]
  describe.each(backends.filter(([, isThere]) => isThere))('on %s', (_name, _isThere, backend) => {
    test('with tokens that come back in hours', { timeout: count({ test: 180_000, long: 1_800_000 }) }, async () => {
      const sequences = fc.array(steps(3_600_000, { hasTime: false }), { minLength: 30, maxLength: 60, size: 'max' })
      await fc.assert(
        fc.asyncProperty(sequences, async (sequence) => {
          await using place = await backend.place()
          const boards = await Promise.all(Array.from({ length: BOARDS }, () => place.open()))
          const now = Date.now()
          try {
            await play(
              { boards, patience: '30s', now: () => now, advance: () => undefined, expire: place.expire },
              sequence,
            )
          } finally {
            await Promise.all(boards.map((each) => each.close()))
          }
        }),
        // Shorter sequences hardly claim a job with a limit. A sequence that fails is not shrunk: each try would wait for what is not granted.
        { numRuns: count({ test: 10, long: 500 }), endOnFailure: true },
      )
    })
  })
})
