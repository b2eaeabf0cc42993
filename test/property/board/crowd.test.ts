/**
 * Several boards at once, each doing whatever comes to its mind: nothing is lost, nothing is doubled, and in the end all
 * see the same.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Claim, JobBoard } from '../../../src/board/index.ts'
import { Cancelled, ClaimLost, Duplicate, NotFound, NotOwner, Unclaimable } from '../../../src/core/errors.ts'
import { sqliteBoards } from '../../board/backends/sqlite/boards.ts'
import { memoryBoards, zookeeperBoards } from '../../board/boards.ts'
import { all, namesOn, refresh } from '../../board/jobs.ts'
import type { BoardBackend } from '../../contract/board.ts'
import { count } from '../../support/counts.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { type Random, randomly } from '../../support/random.ts'

const BOARDS = 3
/** That go on at the same time on each board. */
const LANES = 3
const STEPS = 25

/** What is right to happen where others are at the same thing. */
const RACES = [ClaimLost, Duplicate, NotFound, NotOwner, Unclaimable]

class CompetingClaimers {
  readonly #board: JobBoard
  readonly #random: Random
  readonly #account: Account
  readonly #held: Claim[] = []

  constructor(board: JobBoard, random: Random, account: Account) {
    this.#board = board
    this.#random = random
    this.#account = account
  }

  async live(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      await this.#step().catch((error: unknown) => {
        if (!RACES.some((race) => error instanceof race)) throw error
      })
    }
    for (const claim of this.#held) await this.#settle(claim, 'abandon').catch(() => undefined)
  }

  async #step(): Promise<void> {
    const { pick, between } = this.#random
    switch (
      pick(['post', 'post', 'claim', 'claim', 'settle', 'settle', 'cancel', 'restore', 'purge', 'key'] as const)
    ) {
      case 'post':
        return this.#post(undefined)
      case 'key':
        return this.#post(pick(['a', 'b']))
      case 'claim':
        return this.#claim(between(1, 5))
      case 'settle':
        return this.#settle(this.#held.shift(), pick(['consume', 'abandon', 'trash'] as const))
      case 'cancel': {
        const jobs = await all(this.#board.jobs())
        return jobs.length > 0 ? this.#board.cancel(pick(jobs)) : undefined
      }
      case 'restore': {
        const [entry] = await all(this.#board.trashed())
        if (entry) await this.#board.restore(entry)
        return
      }
      case 'purge': {
        const entry = (await all(this.#board.trashed())).at(-1)
        if (!entry) return
        await this.#board.purge(entry)
        this.#account.left(entry.uuid, 'purged')
      }
    }
  }

  async #post(key: string | undefined): Promise<void> {
    const resources = this.#random.pick([{}, { exclusive: ['disk'] }, { shared: ['disk'] }, { exclusive: ['tape'] }])
    const job = await this.#board.post('flow', {}, { resources, ...(key === undefined ? {} : { key }) })
    if (job.created) this.#account.posted.add(job.uuid)
  }

  async #claim(max: number): Promise<void> {
    const stop = new AbortController()
    const claiming = this.#board.claimNext({ max, signal: stop.signal }).catch(() => [])
    await refresh(this.#board)
    stop.abort()
    for (const claim of await claiming) {
      this.#account.granted(claim)
      this.#held.push(claim)
    }
  }

  async #settle(claim: Claim | undefined, how: 'consume' | 'abandon' | 'trash'): Promise<void> {
    if (!claim) return
    try {
      await claim[how]()
    } catch (error) {
      // A job that was cancelled before it was claimed was not to be run, so it cannot be done.
      if (!(error instanceof Cancelled)) throw error
      return claim.trash()
    }
    if (how === 'consume') this.#account.left(claim.job.uuid, 'consumed')
  }
}

/** What everybody together did to the jobs. */
class Account {
  readonly posted = new Set<string>()
  readonly gone = new Map<string, string>()
  readonly wrong: string[] = []
  readonly #runs = new Map<string, Set<number>>()

  granted({ job, run }: Claim): void {
    const runs = this.#runs.get(job.uuid) ?? new Set()
    if (runs.has(run)) this.wrong.push(`run ${run} of ${job} was granted twice`)
    this.#runs.set(job.uuid, runs.add(run))
  }

  left(uuid: string, how: string): void {
    const before = this.gone.get(uuid)
    if (before !== undefined) this.wrong.push(`${uuid} was ${how} after it was ${before}`)
    this.gone.set(uuid, how)
  }
}

function startClaimers(backend: BoardBackend, counts: { test: number; long: number }): void {
  test(`on ${backend.name}`, { timeout: count({ test: 180_000, long: 1_800_000 }) }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 31 - 1 }), async (seed) => {
        const place = await backend.place()
        const boards = await Promise.all(Array.from({ length: BOARDS }, () => place.open()))
        const random = randomly(seed)
        const account = new Account()
        try {
          const crowd = boards.flatMap((board) =>
            Array.from({ length: LANES }, () => new CompetingClaimers(board, random, account)),
          )
          await Promise.all(crowd.map((each) => each.live()))
          await Promise.all(boards.map(refresh))
          const [board = await place.open()] = boards
          const there = (await all(board.jobs())).map(({ uuid }) => uuid)
          const trashed = (await all(board.trashed())).map(({ uuid }) => uuid)
          expect(account.wrong).toEqual([])
          expect([...there, ...trashed, ...account.gone.keys()].sort()).toEqual([...account.posted].sort())
          const names = await namesOn(board)
          for (const other of boards) {
            expect(await namesOn(other)).toEqual(names)
            expect(await namesOn(other, { onlyUnclaimed: true })).toEqual(names)
            expect(other.jobCount).toBe(names.length)
          }
        } finally {
          await Promise.all(boards.map((board) => board.close()))
          await place[Symbol.asyncDispose]()
        }
      }),
      { numRuns: count(counts) },
    )
  })
}

describe('whatever several boards do at once', () => {
  startClaimers(memoryBoards, { test: 10, long: 500 })
  startClaimers(sqliteBoards(), { test: 10, long: 500 })
  if (zookeeperHosts) startClaimers(zookeeperBoards, { test: 5, long: 500 })
})
