/** Dependencies as rows: jobs that end at the same time, posts beside an end, owners that are lost, and many dependent jobs. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { Job, JobBoard, PostOptions } from '../../../../src/board/index.ts'
import { InvalidState, NotFound, Timeout } from '../../../../src/core/errors.ts'
import { count } from '../../../support/counts.ts'
import { startNode } from '../../../support/node-process.ts'
import type { PostgresServer } from '../../../support/postgres.ts'
import { startPooledPostgres } from '../../../support/session-pooler.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent, rejectionOf } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { type PostgresPlace, postgresPlaceOn } from './boards.ts'
import { countDeadlocks, countOf, openTransaction, untilWaiting } from './server-side.ts'

const CLAIMER = new URL('../../stopped-claimer.ts', import.meta.url)

let server: PostgresServer

beforeAll(async () => {
  server = await startPooledPostgres({ config: { fsync: 'off' } })
})

afterAll(() => server.stop())

function postAfter(board: JobBoard, name: string, after: readonly Job[] = [], options: PostOptions = {}): Promise<Job> {
  return board.post('flow', {}, { ...options, name, after })
}

const numberOf = (job: Job) => Number(jobIdFor(job).slice('job'.length))

async function claimNone(board: JobBoard): Promise<void> {
  expect(await rejectionOf(board.claimNext({ timeout: 0 }))).toBeInstanceOf(Timeout)
}

/** How many jobs were freed, by all changes so far. */
async function countFreed({ query }: PostgresPlace): Promise<number> {
  const [row] = await query(`SELECT coalesce(sum(cardinality(jobs)), 0) AS count FROM @.changes WHERE kind = 'ready'`)
  return Number(row?.['count'])
}

test('leave no rows behind, however the jobs end', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  const first = await postAfter(board, 'first')
  const second = await postAfter(board, 'second', [first])
  await postAfter(board, 'third', [first, second])
  await postAfter(board, 'fourth', [second], { delay: '1h' })
  const fifth = await postAfter(board, 'fifth', [second])
  expect(await countOf(place, '@.dependencies')).toBe(5)
  await board.cancel(fifth)
  await (await claimed(board, 'first')).consume()
  await (await claimed(board, 'second')).trash()
  expect(await namesOn(board)).toEqual([])
  expect(await countOf(place, '@.dependencies')).toBe(0)
})

describe('two jobs that end at the same time', () => {
  test('free a job after both once, however often that happens', async () => {
    await using place = await postgresPlaceOn(server.uri)
    const boards = await Promise.all([place.open({ who: 'one' }), place.open({ who: 'two' })])
    const [one] = boards
    const deadlocks = await countDeadlocks(place)
    const rounds = count({ test: 10, long: 500 })
    for (let round = 1; round <= rounds; round++) {
      const pair = await Promise.all(boards.map((board, n) => postAfter(board, `${n}`)))
      const last = await postAfter(one, 'last', pair)
      const claims = await Promise.all(
        boards.map(async (board, n) => board.claim(await board.find(pair[n]?.ref ?? ''))),
      )
      // Both have ended their job, and wait for the job after them.
      await using holder = await openTransaction(place)
      await holder.query('SELECT FROM jobs WHERE id = $1 FOR UPDATE', [numberOf(last)])
      const ends = claims.map((claim) => claim.consume())
      await untilWaiting(place, 'settle', 2)
      await holder.query('COMMIT')
      await Promise.all(ends)
      const [claim] = await one.claimNext()
      expect(claim.job.uuid).toBe(last.uuid)
      await claim.consume()
      expect(await countFreed(place)).toBe(round)
    }
    expect(await countDeadlocks(place)).toBe(deadlocks)
    await Promise.all(boards.map((board) => board.close()))
  })

  test('of which one is in the trash cancel the job after both, and free nothing', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using one = await place.open({ who: 'one' })
    await using two = await place.open({ who: 'two' })
    const [done, trashed] = [await postAfter(one, 'done'), await postAfter(one, 'trashed')]
    const last = await postAfter(one, 'last', [done, trashed])
    const ends = [await one.claim(done), await two.claim(await two.find(trashed.ref))] as const
    await using holder = await openTransaction(place)
    await holder.query('SELECT FROM jobs WHERE id = $1 FOR UPDATE', [numberOf(last)])
    const ending = [ends[1].trash({ reason: 'it broke' }), ends[0].consume()]
    await untilWaiting(place, 'settle', 2)
    await holder.query('COMMIT')
    await Promise.all(ending)
    expect(await last.wait()).toBe('TRASHED')
    expect(await countFreed(place)).toBe(0)
  })

  variant('never wait for each other, whatever jobs come after them', { timeout: 60_000 }, async () => {
    await using place = await postgresPlaceOn(server.uri)
    const boards = await Promise.all(Array.from({ length: 4 }, () => place.open()))
    const [board = await place.open()] = boards
    const deadlocks = await countDeadlocks(place)
    const rounds = count({ test: 3, long: 100 })
    for (let round = 0; round < rounds; round++) {
      const firsts = await Promise.all(Array.from({ length: 24 }, (_, n) => postAfter(board, `first ${n}`)))
      const some = (n: number) => firsts.filter((_, at) => (at * 7 + n * 5) % 11 < 4)
      await Promise.all(Array.from({ length: 24 }, (_, n) => postAfter(board, `last ${n}`, some(n))))
      // Each owner ends some of the jobs together, in another order, some of them in the trash.
      const claims = await Promise.all(
        boards.map(async (each, owner) => {
          const own = firsts.filter((_, at) => at % boards.length === owner)
          if (owner % 2 === 1) own.reverse()
          return Promise.all(own.map(async ({ ref }) => each.claim(await each.find(ref))))
        }),
      )
      await Promise.all(claims.flat().map((claim, n) => (n % 12 === 0 ? claim.trash() : claim.consume())))
      // Those after a job in the trash have ended with it.
      for (let left = (await namesOn(board)).length; left > 0; ) {
        const next = await board.claimNext({ max: 50 })
        await Promise.all(next.map((claim) => claim.perform(() => undefined)))
        left -= next.length
      }
      expect(await namesOn(board)).toEqual([])
      expect(await countOf(place, '@.dependencies')).toBe(0)
    }
    expect(await countDeadlocks(place)).toBe(deadlocks)
    await Promise.all(boards.map((each) => each.close()))
  })
})

describe('a post beside the end of the job on which it depends', () => {
  test('in a transaction that began before keeps the other one until it is committed, and is found by its end', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    for (const end of ['COMMIT', 'ROLLBACK']) {
      const first = await postAfter(board, 'first')
      const claim = await board.claim(first)
      await using client = await openTransaction(place)
      await board.post('flow', {}, { name: 'second', after: [first], client })
      const ending = claim.consume()
      await untilWaiting(place, 'settle', 1)
      await client.query(end)
      await ending
      if (end === 'COMMIT') await (await claimed(board, 'second')).consume()
      expect(await namesOn(board)).toEqual([])
    }
    expect(await countOf(place, '@.dependencies')).toBe(0)
  })

  test('waits for an end that began before, and finds the dependency met', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using other = await place.open()
    const first = await postAfter(board, 'first')
    const claim = await board.claim(first)
    const named = await other.find(first.ref)
    // The end has locked its job, and cannot write the history yet.
    await using holder = await openTransaction(place)
    await holder.query('LOCK TABLE history IN EXCLUSIVE MODE')
    const ending = claim.consume()
    await untilWaiting(place, 'settle', 1)
    const posting = postAfter(other, 'second', [named])
    await untilWaiting(place, 'post', 1)
    await holder.query('COMMIT')
    await Promise.all([ending, posting])
    const [row] = await place.query(`SELECT due_when_ready FROM @.jobs WHERE uuid = $1`, [(await posting).uuid])
    expect(row).toEqual({ due_when_ready: null })
    await (await claimed(board, 'second')).consume()
  })

  test('depends on a job that was posted in the same transaction', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using client = await openTransaction(place)
    const first = await board.post('flow', {}, { name: 'first', client })
    await board.post('flow', {}, { name: 'second', after: [first], client })
    await client.query('COMMIT')
    for (const name of ['first', 'second']) {
      const [claim] = await board.claimNext()
      expect(claim.job.name).toBe(name)
      await claim.consume()
    }
  })

  test('is refused in a transaction that does not see the other one, and for one that is not committed', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using client = await openTransaction(place)
    await client.query('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query('SELECT FROM jobs')
    const later = await postAfter(board, 'later')
    const refused = await rejectionOf(board.post('flow', {}, { after: [later], client }))
    expect(refused).toBeInstanceOf(InvalidState)
    expect(String(refused)).toContain('READ COMMITTED')
    await client.query('ROLLBACK; BEGIN')
    const open = await board.post('flow', {}, { name: 'open', client })
    expect(await rejectionOf(postAfter(board, 'second', [open]))).toBeInstanceOf(NotFound)
    await client.query('COMMIT')
    await postAfter(board, 'second', [open])
    expect(await namesOn(board)).toEqual(['later', 'open', 'second'])
  })
})

describe('an owner', () => {
  test('whose connection is ended while it frees jobs has ended nothing, and its successor frees them', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using owner = await place.open({ who: 'owner' })
    await using nextOwner = await place.open({ who: 'next-owner' })
    const first = await postAfter(nextOwner, 'first')
    const second = await postAfter(nextOwner, 'second', [first])
    const claim = await owner.claim(await owner.find(first.ref))
    await using holder = await openTransaction(place)
    await holder.query('SELECT FROM jobs WHERE id = $1 FOR UPDATE', [numberOf(second)])
    const ending = claim.consume().catch((error: unknown) => error)
    const [backend] = await untilWaiting(place, 'settle', 1)
    await place.query('SELECT pg_terminate_backend($1)', [backend])
    expect(await ending).toBeInstanceOf(Error)
    await holder.query('COMMIT')
    await place.expire(owner)
    const next = await claimed(nextOwner, 'first')
    expect(next.run).toBe(2)
    await claimNone(nextOwner)
    await next.consume()
    await (await claimed(nextOwner, 'second')).consume()
    expect(await countFreed(place)).toBe(1)
  })

  variant('that was killed leaves its job to another one, whose end frees the jobs after it', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using nextOwner = await place.openAt(server.port, { who: 'next-owner', parameters: '&sessionTimeout=5s' })
    const first = await postAfter(nextOwner, 'first')
    await postAfter(nextOwner, 'second', [first])
    await using owner = await startNode(CLAIMER, [`${place.uri}&sessionTimeout=2s`])
    await owner.says('claimed')
    await claimNone(nextOwner)
    owner.signal('SIGKILL')
    const next = await claimed(nextOwner, 'first')
    await next.consume()
    await (await claimed(nextOwner, 'second')).consume()
  })

  test('that is lost with a job that must not run again cancels those after it, and the history knows the end', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using owner = await place.open({ who: 'owner' })
    await using nextOwner = await place.open({ who: 'next-owner' })
    const first = await postAfter(nextOwner, 'first', [], { onOwnerLost: 'fail' })
    const doomed = await postAfter(nextOwner, 'second', [first])
    const third = await nextOwner.post('flow', {}, { name: 'third', after: [{ uuid: first.uuid, on: 'settled' }] })
    await owner.claim(await owner.find(first.ref))
    const trashed = nextEvent(nextOwner, 'trashed')
    await place.expire(owner)
    await trashed
    expect((await claimed(nextOwner, 'third')).job.uuid).toBe(third.uuid)
    expect(await doomed.wait()).toBe('TRASHED')
    const [entry, second] = await all(nextOwner.trashed())
    expect(second?.reason).toContain(`job ${first.uuid} (first), on which it depends, is in the trash: its owner owner`)
    const ended = (await nextOwner.history()).find(({ uuid }) => uuid === first.uuid)
    const expected = { name: 'first', flow: 'flow', outcome: 'TRASHED', who: 'owner', runs: 1 }
    expect(ended).toMatchObject({ ...expected, reason: 'its owner owner was lost', startedAt: expect.any(Date) })
    if (!entry) throw new Error('it is in the trash')
    await nextOwner.purge(entry)
    expect(await rejectionOf(postAfter(nextOwner, 'fourth', [first]))).toBeInstanceOf(InvalidState)
    expect(await rejectionOf(nextOwner.result(first.uuid))).toMatchObject({ code: 'JOBBOARD_JOB_FAILED' })
  })
})

test('a claim of a job that waits is refused by the database, and takes nothing', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.open()
  const first = await postAfter(board, 'first')
  const second = await postAfter(board, 'second', [first])
  const session = await place.sessionOf(board)
  // As a board that has not heard of the dependency; the second one is cancelled.
  const claim = async (job: Job) => {
    const text = `SELECT @.claim(NULL, NULL, (SELECT max(id) FROM @.boards), $1, ARRAY[$2::bigint], ARRAY[0], ARRAY['w'], '', ARRAY[0],
      ARRAY[1], ARRAY[7::bigint], ARRAY['disk'], ARRAY[true], '{}', ARRAY[1], ARRAY['key'], ARRAY[1], ARRAY[NULL::float8],
      ARRAY[NULL::float8], ARRAY[NULL::float8]) AS answer`
    return (await place.query(text, [session, numberOf(job)]))[0]?.['answer']
  }
  expect(await claim(second)).toMatchObject({ granted: null, refused: [[0, 'waits']] })
  expect([await countOf(place, '@.permits'), await countOf(place, '@.slots')]).toEqual([0, 0])
  await place.query(`SELECT @.cancel(NULL, NULL, max(id), $1, 'w', 'not needed') FROM @.boards`, [numberOf(second)])
  expect(await claim(second)).toMatchObject({ granted: [0], refused: null })
  expect(await countOf(place, '@.dependencies')).toBe(0)
})

describe('thousands of jobs after one', () => {
  // In the trash, each of them ends in a transaction of its own.
  variant.each([
    ['consume', 10_000],
    ['trash', 2_000],
  ] as const)('all follow its end at once (%s)', { timeout: 120_000 }, async (how, many) => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    await using other = await place.open()
    const first = await postAfter(board, 'first')
    const items = Array.from({ length: many }, (_, n) => ({ flow: 'flow', store: {}, name: `${n}`, after: [first] }))
    const results = await board.postMany(items)
    expect(results.filter((result) => 'error' in result)).toEqual([])
    expect((await board.dependencies(first)).dependents).toHaveLength(1_000)
    await claimed(other, 'first').then((claim) => claim[how]())
    const [row] = await place.query(
      `SELECT count(*) AS there, count(*) FILTER (WHERE due_at = '-infinity') AS due, count(due_when_ready) AS waiting
        FROM @.jobs`,
    )
    const left = how === 'trash' ? 0 : many
    expect(row).toEqual({ there: `${left}`, due: `${left}`, waiting: '0' })
    expect(await countOf(place, '@.dependencies')).toBe(0)
    if (how === 'trash') {
      expect(await countOf(place, '@.trash')).toBe(many + 1)
      return
    }
    const claims = await board.claimNext({ max: 20 })
    for (const end of await Promise.all(claims.map((claim) => claim.perform(() => undefined))))
      expect(end).toBe('consumed')
    await refresh(other)
  })
})
