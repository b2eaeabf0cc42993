/** What is posted is there, whole, in order, for everybody; what makes no sense is not. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type JobsOptions, type PostOptions, PRIORITIES } from '../../../src/board/index.ts'
import {
  InvalidArgument,
  InvalidPosting,
  MissingDependencies,
  NotFound,
  PayloadTooLarge,
} from '../../../src/core/errors.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { rejectionOf } from '../../board/events.ts'
import { all, fillTo, namesOn, refresh } from '../../board/jobs.ts'
import type { BoardBackend, Place } from '../board.ts'

const greet = task('greet', { requires: ['name'], execute: ({ name }: { name: string }) => `Hello, ${name}!` })
const hello = linear({ name: 'hello', version: '2.0' }, input<{ name: string }>(), greet)

export function postingContract({ open }: Place, { jsonOnly = false }: Pick<BoardBackend, 'jsonOnly'>): void {
  test('an empty board has no jobs', async () => {
    const board = await open()
    expect(await board.countJobs()).toBe(0)
    expect(await namesOn(board)).toEqual([])
    expect(board.connected).toBe(true)
    expect(board.state).toBe('connected')
  })

  test('a job is seen by another board with all that was posted', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const beyondJson = { at: new Date(5), bytes: Uint8Array.of(0, 255) }
    const store = { text: 'π', none: null, deep: { list: [1, 'two'] }, ...(jsonOnly ? {} : beyondJson) }
    const book = { uuid: randomUUID(), name: 'the book' }
    const uuid = randomUUID()
    const options = { name: 'job', priority: 'LOW', queue: 'large', maxAttempts: 7, book, uuid } as const
    const job = await here.post('flow', store, { ...options, details: { origin: 'test' } })
    const found = await there.find(uuid)
    for (const seen of [job, found]) {
      expect(seen).toMatchObject({ ...options, runs: 0, attempts: [], state: 'UNCLAIMED' })
      expect(seen.details).toEqual({ origin: 'test', flow: 'flow', store })
      expect(seen.postedAt).toBeInstanceOf(Date)
    }
    expect(await here.countJobs()).toBe(1)
    expect(await there.countJobs()).toBe(1)
    expect(String(found)).not.toContain('π')
  })

  test("defaults are the flow's name, NORMAL, medium, three attempts, and a logbook of the job's own", async () => {
    const job = await (await open()).post(hello, { name: 'Ada' })
    expect(job).toMatchObject({ name: 'hello', priority: 'NORMAL', queue: 'default', maxAttempts: 3 })
    expect(job.details).toEqual({ flow: 'hello', version: '2.0', store: { name: 'Ada' } })
    expect(job.book).toEqual({ uuid: job.uuid, name: 'hello' })
  })

  test('what the poster changes afterwards was not posted', async () => {
    const board = await open({ who: 'both' })
    const store = { list: [1] }
    const posting = board.post('flow', store)
    store.list.push(2)
    const job = await posting
    store.list.push(3)
    expect(job.details.store).toEqual({ list: [1] })
    await (await board.claim(job)).abandon()
    const other = await open()
    expect((await other.find(job.uuid)).details.store).toEqual({ list: [1] })
  })

  test('jobs come by priority, then in the order of posting, on every board', async () => {
    const boards = await Promise.all([open(), open(), open()])
    const expected = new Map(PRIORITIES.map((priority) => [priority, [] as string[]]))
    for (let number = 0; number < 30; number++) {
      const priority = PRIORITIES[(number * 7) % PRIORITIES.length] ?? 'NORMAL'
      const name = `${priority} ${number}`
      await boards[number % boards.length]?.post('flow', {}, { name, priority })
      expected.get(priority)?.push(name)
    }
    for (const board of boards) expect(await namesOn(board)).toEqual([...expected.values()].flat())
  })

  test('jobs can be chosen by name, priority, queue and by being unclaimed', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { name: 'a', priority: 'HIGH', queue: 'small' })
    await board.post('flow', {}, { name: 'b', priority: 'HIGH' })
    await board.post('flow', {}, { name: 'c', queue: 'small' })
    await board.claim(job)
    const cases: [JobsOptions, string[]][] = [
      [{}, ['a', 'b', 'c']],
      [{ name: 'b' }, ['b']],
      [{ priority: 'HIGH' }, ['a', 'b']],
      [{ queue: 'small' }, ['a', 'c']],
      [{ queue: 'default' }, ['b']],
      [{ onlyUnclaimed: true }, ['b', 'c']],
      [{ onlyUnclaimed: true, queue: 'small' }, ['c']],
    ]
    for (const [options, names] of cases) expect(await namesOn(board, options), JSON.stringify(options)).toEqual(names)
  })

  test('what ends while jobs are being looked through is left out', async () => {
    const board = await open()
    for (const name of ['a', 'b', 'c']) await board.post('flow', {}, { name })
    const seen: string[] = []
    for await (const job of board.jobs()) {
      seen.push(job.name)
      if (job.name === 'a') await (await board.claimNext({ accept: ({ name }) => name === 'b' }))[0].consume()
    }
    expect(seen).toEqual(['a', 'c'])
  })

  test('a job that is not there is not found', async () => {
    const board = await open()
    expect(await rejectionOf(board.find(randomUUID()))).toBeInstanceOf(NotFound)
    const job = await board.post('flow', {})
    await (await board.claim(job)).consume()
    expect(await rejectionOf(board.find(job.uuid))).toBeInstanceOf(NotFound)
    expect(await board.findOwner(job)).toBeUndefined()
  })

  test('a uuid that is posted twice is two jobs, and found as long as one is there', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const uuid = randomUUID()
    await here.post('flow', {}, { uuid, name: 'first' })
    await here.post('flow', {}, { uuid, name: 'second' })
    await refresh(there)
    expect(await there.countJobs()).toBe(2)
    for (const name of ['second', 'first']) {
      const [claim] = await there.claimNext({ accept: (posting) => posting.name === name })
      expect(await here.find(uuid)).toMatchObject({ uuid })
      await claim.consume()
    }
    expect(await rejectionOf(there.find(uuid))).toBeInstanceOf(NotFound)
    expect(await there.countJobs()).toBe(0)
  })

  describe('is refused', () => {
    const senseless: [string, PostOptions][] = [
      ['an unknown priority', { priority: 'URGENT' as 'HIGH' }],
      ['a queue whose name is not valid', { queue: 'a*' }],
      ['no attempts', { maxAttempts: 0 }],
      ['too many attempts', { maxAttempts: 1_000_001 }],
      ['half an attempt', { maxAttempts: 1.5 }],
      ['a uuid that is none', { uuid: 'one' }],
      ['an empty name', { name: '' }],
      ['a book without a uuid', { book: { uuid: 'x', name: 'x' } }],
    ]
    test.each(senseless)('for %s, as InvalidPosting', async (_, options) => {
      const board = await open()
      expect(await rejectionOf(board.post('flow', {}, options))).toBeInstanceOf(InvalidPosting)
      await refresh(board)
      expect(await board.countJobs()).toBe(0)
    })

    test('for a flow without a name, or a store or details that are no object, as InvalidPosting', async () => {
      const board = await open()
      expect(await rejectionOf(board.post('', {}))).toBeInstanceOf(InvalidPosting)
      expect(await rejectionOf(board.post('flow', [1]))).toBeInstanceOf(InvalidPosting)
      expect(await rejectionOf(board.post('flow', JSON.parse('null')))).toBeInstanceOf(InvalidPosting)
      for (const details of ['[1]', '"text"', 'null'])
        expect(await rejectionOf(board.post('flow', {}, { details: JSON.parse(details) }))).toBeInstanceOf(
          InvalidPosting,
        )
    })

    test('for what is no plain data, as InvalidArgument naming the place', async () => {
      const board = await open()
      const failure = await rejectionOf(board.post('flow', { when: { done: () => undefined } }))
      expect(failure).toBeInstanceOf(InvalidArgument)
      expect(String(failure)).toContain('when.done')
    })

    test('for inputs that the flow lacks, as MissingDependencies naming them', async () => {
      const board = await open()
      const failure = await rejectionOf(board.post(hello, {} as { name: string }))
      expect(failure).toBeInstanceOf(MissingDependencies)
      expect(String(failure)).toContain('name')
      expect(await board.countJobs()).toBe(0)
    })

    test('for a posting that is too large, as PayloadTooLarge that does not print it', async () => {
      const board = await open()
      const failure = await rejectionOf(board.post('flow', { secret: 'secret'.repeat(100_000) }))
      expect(failure).toBeInstanceOf(PayloadTooLarge)
      expect(String(failure)).not.toContain('secretsecret')
      expect(await board.countJobs()).toBe(0)
    })
  })

  test('what could be posted can be claimed, given back 20 times and trashed, however close to the limit', async () => {
    const [board, other] = await Promise.all([open({ who: 'w'.repeat(200) }), open()])
    const job = await fillTo(board, { from: 500_000, to: 510_000 })
    for (let run = 1; run <= 20; run++) {
      const claim = await board.claim(job)
      expect(claim.run).toBe(run)
      await claim.abandon({ reason: '€'.repeat(600) })
    }
    const claim = await board.claim(job)
    const failure = { name: 'Error', message: 'm'.repeat(8_000), stack: 's'.repeat(8_000) }
    await claim.trash({ failure })
    const [trashed] = await all(other.trashed())
    expect(trashed).toMatchObject({ uuid: job.uuid, failure: { name: 'Error' } })
    expect(trashed?.details).toEqual(job.details)
  })
}
