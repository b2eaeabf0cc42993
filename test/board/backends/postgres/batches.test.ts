/** Batches as rows: last jobs that end at the same time, seals and posts beside them, owners that are lost, transactions of callers, and sweeping. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { batchesChannel, boardMigrations } from '../../../../src/board/backends/postgres/store/schema.ts'
import type { Batch, JobBoard, TrashedJob } from '../../../../src/board/index.ts'
import { decodeBatch, toBatchCallback } from '../../../../src/board/model/job-batch.ts'
import { decodePosting } from '../../../../src/board/model/posting/posting-codec.ts'
import { Duplicate, InvalidState, NotFound } from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { newUuid } from '../../../../src/core/uuid.ts'
import { migrate, PostgresPool, parsePostgresLocation } from '../../../../src/postgres/index.ts'
import { createBatch, end, postTo, takeCallback } from '../../../contract/board/batches.ts'
import { count } from '../../../support/counts.ts'
import { startNode } from '../../../support/node-process.ts'
import type { PostgresServer } from '../../../support/postgres.ts'
import { startPooledPostgres } from '../../../support/session-pooler.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent, rejectionOf } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { functionsAsFormer, newSchema, type PostgresPlace, postgresPlaceOn } from './boards.ts'
import { countDeadlocks, countOf, openTransaction, untilWaiting } from './server-side.ts'

const CLAIMER = new URL('../../stopped-claimer.ts', import.meta.url)
/** The tables of what is counted beside the jobs: empty when all jobs of all batches are done, and their batches have ended. */
const COUNTED = ['@.batch_posts', '@.batch_failures']

let server: PostgresServer

beforeAll(async () => {
  server = await startPooledPostgres({ config: { fsync: 'off' } })
})

afterAll(() => server.stop())

async function trashedIn(board: JobBoard, batch: Batch): Promise<TrashedJob> {
  const found = (await all(board.trashed())).find((job) => job.batch === batch.uuid)
  if (found) return found
  throw new Error('it is in the trash')
}

async function expectNothingCounted(place: PostgresPlace): Promise<void> {
  for (const table of COUNTED) expect(await countOf(place, table), table).toBe(0)
}

/** Another program that holds the row of the batch until its transaction ends. */
async function holdRow(place: PostgresPlace, batch: Batch) {
  const holder = await openTransaction(place)
  await holder.query('SELECT FROM batches WHERE uuid = $1 FOR UPDATE', [batch.uuid])
  return holder
}

/** Does what a board does from time to time, whenever another one has done it. */
async function sweep(place: PostgresPlace): Promise<void> {
  await place.query('SELECT @.sweep_batches(id) FROM @.boards')
}

/** Posts jobs to the batch and ends them, on each of the boards. */
async function postAndEnd(boards: readonly JobBoard[], batch: Batch, size: number, how: 'consume' | 'trash') {
  let left = size
  const work = async (board: JobBoard) => {
    while (left > 0) {
      const accept = ({ batch: counted }: { readonly batch?: string }) => counted === batch.uuid
      const claims = await board.claimNext({ max: 100, timeout: 100, accept }).catch(() => [])
      left -= claims.length
      await Promise.all(claims.map((claim) => claim[how]()))
    }
  }
  const working = boards.map(work)
  const items = Array.from({ length: size }, (_, n) => ({ flow: 'flow', store: {}, name: `${n}` }))
  expect((await batch.postMany(items)).filter((result) => 'error' in result)).toEqual([])
  await batch.seal()
  await Promise.all(working)
}

describe('the end of a job', () => {
  test('waits for nobody while there is a job of its batch that nobody has claimed', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const batch = await createBatch(board)
    for (const name of ['a', 'b', 'c']) await postTo(batch, name)
    await batch.seal()
    await using holder = await holdRow(place, batch)
    for (const name of ['a', 'b']) await end(board, name, name === 'a' ? 'consume' : 'trash')
    const last = (await claimed(board, 'c')).consume()
    await untilWaiting(place, 'settle', 1)
    await holder.query('COMMIT')
    await last
    expect(await takeCallback(board, 'some failed')).toMatchObject({ total: 3, done: 2, failed: 1 })
  })

  variant(
    'beside a removal of the only other job, which has not begun to wait, leaves the batch to that one',
    async () => {
      await using place = await postgresPlaceOn(server.uri)
      await using here = await place.open()
      await using there = await place.open()
      for (let round = 0; round < count({ test: 20, long: 1_000 }); round++) {
        const batch = await createBatch(here)
        const [a, b] = [await postTo(batch, 'a'), await postTo(batch, 'b')]
        await batch.seal()
        const claim = await there.claim(await there.find(a.uuid))
        await Promise.all([claim.consume(), here.cancel(b)])
        expect(await takeCallback(here, 'some failed')).toMatchObject({ total: 2, done: 1, failed: 1 })
      }
    },
  )
})

describe('two last jobs that end at the same time', () => {
  variant.each(['consume', 'trash'] as const)(
    'post one callback, when both have ended their job before either has looked (%s)',
    async (how) => {
      await using place = await postgresPlaceOn(server.uri)
      await using here = await place.open()
      await using there = await place.open()
      const deadlocks = await countDeadlocks(place)
      for (let round = 0; round < count({ test: 10, long: 500 }); round++) {
        const batch = await createBatch(here)
        for (const name of ['a', 'b']) await postTo(batch, name)
        await batch.seal()
        const [a, b] = [await claimed(here, 'a'), await claimed(there, 'b')]
        await using holder = await holdRow(place, batch)
        const ends = [a.consume(), b[how]()]
        await untilWaiting(place, 'settle', 2)
        await holder.query('COMMIT')
        await Promise.all(ends)
        expect(await batch.progress()).toMatchObject({ total: 2, open: 0, generation: 1, endedAt: expect.any(Date) })
        expect(await takeCallback(there, how === 'consume' ? 'all done' : 'some failed')).toMatchObject({ total: 2 })
      }
      expect(await countDeadlocks(place)).toBe(deadlocks)
    },
  )

  test('post one callback, however often that happens', async () => {
    await using place = await postgresPlaceOn(server.uri)
    const boards = await Promise.all(Array.from({ length: 3 }, () => place.open()))
    const [here = await place.open()] = boards
    const deadlocks = await countDeadlocks(place)
    for (let round = 0; round < count({ test: 30, long: 2_000 }); round++) {
      const batch = await createBatch(here)
      await Promise.all(boards.map((_, n) => postTo(batch, `${n}`)))
      await batch.seal()
      const claims = await Promise.all(boards.map((board, n) => claimed(board, `${n}`)))
      await Promise.all(claims.map((claim) => claim.consume()))
      // The transaction of the last end has posted it: nobody has to look again.
      expect(await batch.progress()).toMatchObject({ total: 3, done: 3, state: 'done', generation: 1 })
      expect(await takeCallback(here, 'all done')).toMatchObject({ total: 3, generation: 1 })
    }
    expect(await countDeadlocks(place)).toBe(deadlocks)
    await expectNothingCounted(place)
    await Promise.all(boards.map((board) => board.close()))
  })

  variant('of several batches, which each owner ends in another order, never wait for each other', async () => {
    await using place = await postgresPlaceOn(server.uri)
    const boards = await Promise.all(Array.from({ length: 4 }, () => place.open()))
    const [here = await place.open()] = boards
    const deadlocks = await countDeadlocks(place)
    for (let round = 0; round < count({ test: 5, long: 200 }); round++) {
      const batches = await Promise.all(Array.from({ length: 5 }, () => createBatch(here)))
      const jobs = await Promise.all(
        boards.map((_, owner) => Promise.all(batches.map((batch, n) => postTo(batch, `${owner} ${n}`)))),
      )
      await Promise.all(batches.map((batch) => batch.seal()))
      const claims = await Promise.all(
        boards.map(async (board, owner) => {
          const own = owner % 2 === 0 ? jobs[owner] : jobs[owner]?.reverse()
          return Promise.all((own ?? []).map(async ({ uuid }) => board.claim(await board.find(uuid))))
        }),
      )
      await Promise.all(claims.flat().map((claim, n) => (n % 7 === 0 ? claim.trash() : claim.consume())))
      for (const batch of batches)
        expect(await batch.progress()).toMatchObject({ total: 4, open: 0, generation: 1, endedAt: expect.any(Date) })
      const names = await namesOn(here)
      expect(names).toHaveLength(batches.length)
      for (const name of names) await end(here, name)
    }
    expect(await countDeadlocks(place)).toBe(deadlocks)
    await Promise.all(boards.map((board) => board.close()))
  })
})

describe('a seal', () => {
  test('and the last end at the same time end the batch once, whichever comes first', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 20, long: 1_000 }); round++) {
      const batch = await createBatch(here)
      await postTo(batch, 'job')
      const claim = await claimed(there, 'job')
      await using holder = await holdRow(place, batch)
      const acts = [() => batch.seal(), () => claim.consume()]
      if (round % 2 === 1) acts.reverse()
      const acting: Promise<unknown>[] = []
      for (const act of acts) {
        acting.push(act())
        if (round % 4 < 2) await untilWaiting(place, acting.length === 1 + (round % 2) ? 'change_batch' : 'settle', 1)
      }
      await holder.query('COMMIT')
      await Promise.all(acting)
      expect(await batch.progress()).toMatchObject({ total: 1, done: 1, state: 'done', generation: 1 })
      expect(await takeCallback(here, 'all done')).toMatchObject({ total: 1, done: 1 })
    }
  })

  test.each(['COMMIT', 'ROLLBACK'])('waits for a post in an open transaction (%s)', async (how) => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const batch = await createBatch(board)
    await using client = await openTransaction(place)
    const options = { name: 'job', batch, client }
    const posted = await board.post('flow', {}, options)
    expect(await batch.progress()).toMatchObject({ total: 0, open: 0 })
    const sealing = batch.seal()
    await untilWaiting(place, 'change_batch', 1)
    await client.query(how)
    if (how === 'ROLLBACK') {
      expect(await sealing).toMatchObject({ total: 0, state: 'done' })
      expect(await rejectionOf(posted.wait())).toBeInstanceOf(NotFound)
    } else {
      expect(await sealing).toMatchObject({ total: 1, open: 1, state: 'running' })
      await end(board, 'job')
    }
    expect(await takeCallback(board, 'all done')).toMatchObject({ total: how === 'COMMIT' ? 1 : 0 })
  })

  test('that waits for a post in an open transaction holds up no end of a job, nor another post', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const batch = await createBatch(board)
    await postTo(batch, 'first')
    await using client = await openTransaction(place)
    await board.post('flow', {}, { name: 'second', batch, client })
    const sealing = batch.seal()
    await untilWaiting(place, 'change_batch', 1)
    await end(board, 'first')
    await postTo(batch, 'third')
    await end(board, 'third', 'trash')
    expect(await batch.progress()).toMatchObject({ total: 2, done: 1, failed: 1, open: 0, state: 'open' })
    await client.query('COMMIT')
    expect(await sealing).toMatchObject({ total: 3, open: 1, state: 'running' })
    await end(board, 'second')
    expect(await takeCallback(board, 'some failed')).toMatchObject({ total: 3, done: 2, failed: 1 })
  })

  variant('and posts at the same time: each job is counted or refused', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 20, long: 1_000 }); round++) {
      const batch = await createBatch(here)
      const same = await there.findBatch(batch.uuid)
      const posting = Array.from({ length: 4 }, (_, n) => postTo(same, `${n}`).catch((error: unknown) => error))
      const [results] = await Promise.all([Promise.all(posting), batch.seal()])
      const refused = results.filter((result) => result instanceof Error)
      for (const error of refused) expect(error).toBeInstanceOf(InvalidState)
      const total = results.length - refused.length
      expect(await batch.progress()).toMatchObject({ total, open: total, sealed: true })
      for (const name of await namesOn(there, { batch: batch.uuid })) await end(there, name)
      expect(await takeCallback(here, 'all done')).toMatchObject({ total, done: total })
    }
  })
})

describe('a post', () => {
  variant('by a job that ends at the same time is counted, or refused', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using here = await place.open()
    await using there = await place.open()
    const deadlocks = await countDeadlocks(place)
    for (let round = 0; round < count({ test: 30, long: 2_000 }); round++) {
      const batch = await createBatch(here)
      const last = await postTo(batch, 'last')
      await batch.seal()
      const claim = await claimed(here, 'last')
      const adding = there
        .post('flow', {}, { name: 'added', batch: { uuid: batch.uuid, by: last.uuid } })
        .catch((error: unknown) => error)
      const [added] = await Promise.all([adding, claim.consume()])
      const isAdded = !(added instanceof Error)
      if (!isAdded) expect(added).toBeInstanceOf(InvalidState)
      else await end(there, 'added')
      const total = isAdded ? 2 : 1
      expect(await takeCallback(here, 'all done')).toMatchObject({ total, done: total, generation: 1 })
    }
    expect(await countDeadlocks(place)).toBe(deadlocks)
  })

  test.each(['COMMIT', 'ROLLBACK'])(
    'by a job, in a transaction of the caller, keeps that job until it is committed (%s)',
    async (how) => {
      await using place = await postgresPlaceOn(server.uri)
      await using board = await place.open()
      const batch = await createBatch(board)
      await postTo(batch, 'job')
      await batch.seal()
      const claim = await claimed(board, 'job')
      await using client = await openTransaction(place)
      await board.post('flow', {}, { name: 'added', batch, client })
      const ending = claim.consume()
      await untilWaiting(place, 'settle', 1)
      await client.query(how)
      await ending
      if (how === 'COMMIT') await end(board, 'added')
      const total = how === 'COMMIT' ? 2 : 1
      expect(await takeCallback(board, 'all done')).toMatchObject({ total, done: total })
    },
  )

  test('in a transaction of the caller is refused as others are, and counts to its savepoint', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const [batch, sealed] = [await createBatch(board), await board.batch({ name: 'sealed' })]
    await sealed.seal()
    const first = await postTo(batch, 'first')
    await using client = await openTransaction(place)
    const post = (options: object) => board.post('flow', {}, { ...options, client })
    expect(await rejectionOf(post({ batch: newUuid() }))).toBeInstanceOf(NotFound)
    expect(await rejectionOf(post({ batch: sealed }))).toBeInstanceOf(InvalidState)
    expect(await rejectionOf(post({ batch, uuid: first.uuid }))).toBeInstanceOf(Duplicate)
    await post({ batch, name: 'second' })
    await client.query('SAVEPOINT before')
    await post({ batch, name: 'third' })
    await client.query('ROLLBACK TO before')
    await client.query('COMMIT')
    expect(await batch.seal()).toMatchObject({ total: 2, open: 2 })
    expect(await namesOn(board)).toEqual(['first', 'second'])
  })

  test('in a transaction with a snapshot of its own never adds to a batch that was sealed since', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const batch = await createBatch(board)
    await postTo(batch, 'job')
    await using client = await openTransaction(place)
    await client.query('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query('SELECT FROM jobs')
    await batch.seal()
    expect(await rejectionOf(board.post('flow', {}, { batch, client }))).toMatchObject({
      message: expect.stringContaining('40001'),
    })
    await client.query('ROLLBACK')
    expect(await batch.progress()).toMatchObject({ total: 1, open: 1 })
  })

  test('with the uuid of a job that is posted to the batch at the same time is refused', async () => {
    await using place = await postgresPlaceOn(server.uri)
    const boards = [await place.open(), await place.open()]
    const batch = await createBatch(boards[0] as JobBoard)
    const size = count({ test: 50, long: 5_000 })
    const uuids = Array.from({ length: size }, () => newUuid())
    const posts = boards.map((board, n) => {
      const items = uuids.map((uuid) => ({ flow: 'flow', store: {}, batch, uuid, name: `${n}` }))
      return board.postMany(n === 0 ? items : items.reverse())
    })
    const results = (await Promise.all(posts)).flat()
    const errors = results.flatMap((result) => ('error' in result ? [result.error] : []))
    expect(errors).toHaveLength(size)
    for (const error of errors) expect(error).toBeInstanceOf(Duplicate)
    const twice = await boards[0]?.postMany(
      [uuids[0], newUuid()].flatMap((uuid = '') => {
        return [1, 2].map(() => ({ flow: 'flow', store: {}, batch, uuid }))
      }),
    )
    expect(twice?.filter((result) => 'error' in result && result.error instanceof Duplicate)).toHaveLength(3)
    expect(await batch.progress()).toMatchObject({ total: size + 1, open: size + 1 })
    await Promise.all(boards.map((board) => board.close()))
  })
})

describe('a restoration', () => {
  variant('at the same time as the last end: the batch ends as often as it was opened', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 30, long: 1_000 }); round++) {
      const batch = await createBatch(here)
      for (const name of ['bad', 'last']) await postTo(batch, name)
      await batch.seal()
      await end(here, 'bad', 'trash')
      const claim = await claimed(here, 'last')
      const trashed = await trashedIn(there, batch)
      await Promise.all([there.restore(trashed), claim.consume()])
      await end(here, 'bad')
      const { generation } = await batch.progress()
      const names = (await namesOn(here)).sort()
      expect(names).toEqual(generation === 1 ? ['all done'] : ['all done', 'some failed'])
      for (const name of names) await end(here, name)
      expect(await batch.progress()).toMatchObject({ total: 2, done: 2, failed: 0, state: 'done' })
    }
    await expectNothingCounted(place)
  })

  variant('at the same time as retryFailed restores its job once, in one new generation', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using here = await place.open()
    await using there = await place.open()
    const deadlocks = await countDeadlocks(place)
    for (let round = 0; round < count({ test: 15, long: 500 }); round++) {
      const batch = await createBatch(here)
      for (const name of ['a', 'b']) await postTo(batch, name)
      await batch.seal()
      for (const name of ['a', 'b']) await end(here, name, 'trash')
      await takeCallback(here, 'some failed')
      const trashed = await trashedIn(there, batch)
      const [, restored] = await Promise.all([there.restore(trashed).catch(() => undefined), batch.retryFailed()])
      expect(restored.length).toBeGreaterThanOrEqual(1)
      const progress = await batch.progress()
      expect(progress).toMatchObject({ total: 2, open: 2, failed: 0, generation: 2, sealed: true })
      for (const name of ['a', 'b']) await end(here, name)
      expect(await takeCallback(here, 'all done')).toMatchObject({ generation: 2, done: 2 })
    }
    expect(await countDeadlocks(place)).toBe(deadlocks)
  })
})

describe('an owner', () => {
  test('whose connection is ended while it ends the batch has ended nothing, and its successor ends it', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using owner = await place.open({ who: 'owner' })
    await using nextOwner = await place.open({ who: 'next-owner' })
    const batch = await createBatch(nextOwner)
    await postTo(batch, 'job')
    await batch.seal()
    const claim = await claimed(owner, 'job')
    await using holder = await holdRow(place, batch)
    const ending = claim.consume().catch((error: unknown) => error)
    const [backend] = await untilWaiting(place, 'settle', 1)
    await place.query('SELECT pg_terminate_backend($1)', [backend])
    expect(await ending).toBeInstanceOf(Error)
    await holder.query('COMMIT')
    expect(await batch.progress()).toMatchObject({ total: 1, open: 1, state: 'running' })
    await place.expire(owner)
    const next = await claimed(nextOwner, 'job')
    expect(next.run).toBe(2)
    await next.consume()
    expect(await takeCallback(nextOwner, 'all done')).toMatchObject({ total: 1, done: 1 })
  })

  variant('that was killed leaves its job open, and its next owner ends the batch', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using nextOwner = await place.openAt(server.port, { who: 'next-owner', parameters: '&sessionTimeout=5s' })
    const batch = await createBatch(nextOwner)
    const job = await postTo(batch, 'job')
    await batch.seal()
    await using owner = await startNode(CLAIMER, [`${place.uri}&sessionTimeout=2s`])
    await owner.says('claimed')
    await refresh(nextOwner)
    const abandoned = nextEvent(nextOwner, 'abandoned')
    owner.signal('SIGKILL')
    await abandoned
    expect(await batch.progress()).toMatchObject({ total: 1, open: 1, state: 'running' })
    await (await nextOwner.claim(job)).consume()
    expect(await takeCallback(nextOwner, 'all done')).toMatchObject({ total: 1, done: 1 })
  })

  test('that is lost with jobs of several batches that must not run again fails all of them', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using owner = await place.open({ who: 'owner' })
    await using nextOwner = await place.open({ who: 'next-owner' })
    const batches = [await createBatch(nextOwner), await createBatch(nextOwner)]
    for (const [n, batch] of batches.entries()) {
      for (const name of ['a', 'b']) {
        await postTo(batch, `${name}${n}`, { onOwnerLost: 'fail' })
        await claimed(owner, `${name}${n}`)
      }
      await batch.seal()
    }
    const waits = batches.map((batch) => batch.wait())
    await place.expire(owner)
    expect(await Promise.all(waits)).toEqual(['failed', 'failed'])
    for (const batch of batches) expect(await batch.progress()).toMatchObject({ total: 2, failed: 2, open: 0 })
    expect(await namesOn(nextOwner)).toEqual(['some failed', 'some failed'])
  })
})

describe('a callback', () => {
  test.each(['consume', 'trash'] as const)('is the posting that its creator would make (%s)', async (how) => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const details = { endedBatch: 7, at: new Date(0), bytes: new Uint8Array([0xc1, 0, 0xff]), text: 'ü:\0\n\\' }
    const onDone = { flow: 'flow', store: { deep: [{ x: 1.5 }] }, name: 'täsk\\', priority: 'HIGH', details } as const
    const onFailed = { ...onDone, delay: 1_500.25, limits: ['a'], backOff: { first: '1m' } } as const
    const batch = await board.batch({ name: 'ü'.repeat(100), onDone, onFailed })
    const [row] = await place.query('SELECT definition FROM @.batches')
    const definition = decodeBatch(batch.uuid, row?.['definition'] as Uint8Array)
    for (const name of ['a', 'b']) await postTo(batch, name)
    await batch.seal()
    await end(board, 'a')
    for (let generation = 1; generation <= 3; generation++) {
      await end(board, 'b', how)
      const counts = how === 'trash' ? { total: 2, done: 1, failed: 1 } : { total: 2, done: 2, failed: 0 }
      const expected = toBatchCallback(definition, { generation, sealed: true, ...counts })
      const [job] = await place.query('SELECT *, due_at > clock_timestamp() AS rests FROM @.jobs')
      expect(decodePosting(job?.['body'] as Uint8Array, 'msgpack')).toEqual(expected)
      expect(job).toMatchObject({ uuid: expected?.uuid, priority: 'HIGH', rests: how === 'trash' })
      const found = await board.find(expected?.uuid ?? '')
      expect(found).toMatchObject({ name: 'täsk\\', priority: 'HIGH' })
      await board.cancel(found)
      if (how === 'consume') break
      await board.restore(await trashedIn(board, batch))
    }
  })

  variant('has the uuid and the numbers that other boards would write, however large they are', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const batch = await createBatch(board)
    await batch.seal()
    const [row] = await place.query('SELECT definition FROM @.batches')
    const definition = decodeBatch(batch.uuid, row?.['definition'] as Uint8Array)
    for (const [generation, failed, total] of [
      ...[
        [1, 1, 127],
        [9, 127, 128],
        [10, 128, 255],
        [99, 255, 256],
        [100, 256, 65_535],
      ],
      ...[
        [65_535, 65_535, 65_536],
        [65_536, 65_536, 4_294_967_295],
        [2_147_483_647, 4_294_967_295, 4_294_967_296],
      ],
    ] as [number, number, number][]) {
      await place.query('DELETE FROM @.jobs')
      const values = [batch.uuid, generation, total, failed]
      await place.query('SELECT @.post_callback(board, number, $1, $2, $3, $4) FROM @.batches', values)
      const [job] = await place.query('SELECT body FROM @.jobs')
      const counts = { generation, total, failed, done: total - failed, sealed: true }
      expect(decodePosting(job?.['body'] as Uint8Array, 'msgpack')).toEqual(toBatchCallback(definition, counts))
    }
  })

  test.each([
    ["gaps = 'u999999999999'", 0],
    ["gaps = 'u10 t5'", 0],
    ["priority = 'x'", 0],
    ["body = ''", 1],
  ])('that was damaged by hand (%s) keeps no job from ending', async (damage, posted) => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const batch = await createBatch(board)
    await postTo(batch, 'job')
    await batch.seal()
    await place.query(`UPDATE @.batch_callbacks SET ${damage}`)
    await end(board, 'job')
    expect(await batch.progress()).toMatchObject({ total: 1, done: 1, state: 'done' })
    expect(await countOf(place, '@.jobs')).toBe(posted)
  })
})

describe('thousands of jobs', () => {
  const timeout = count({ test: 120_000, long: 1_200_000 })

  variant('of several owners end in one callback', { timeout }, async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using here = await place.open()
    await using there = await place.open()
    const size = count({ test: 3_000, long: 100_000 })
    const batch = await createBatch(here)
    const waiting = (await there.findBatch(batch.uuid)).wait({ timeout })
    await postAndEnd([here, there], batch, size, 'consume')
    expect(await waiting).toBe('done')
    expect(await takeCallback(there, 'all done')).toMatchObject({ total: size, done: size, failed: 0 })
    await expectNothingCounted(place)
  })

  variant('that have failed are tried again together', { timeout }, async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const size = count({ test: 600, long: 20_000 })
    const batch = await createBatch(board)
    await postAndEnd([board], batch, size, 'trash')
    await takeCallback(board, 'some failed')
    expect(await batch.retryFailed()).toHaveLength(size)
    expect(await batch.progress()).toMatchObject({ open: size, failed: 0, generation: 2, sealed: true })
    expect(await batch.cancel({ reason: 'enough' })).toMatchObject({ open: size, sealed: true, state: 'cancelled' })
  })
})

describe('the sweep', () => {
  variant(
    'keeps the newest thousand batches that have ended; jobs of others end, and are restored, without one',
    {
      timeout: 60_000,
    },
    async () => {
      await using place = await postgresPlaceOn(server.uri)
      await using board = await place.open()
      const first = await createBatch(board, { name: 'first' })
      await postTo(first, 'job')
      await first.seal()
      await end(board, 'job', 'trash')
      await takeCallback(board, 'some failed')
      const open = await board.batch({ name: 'open' })
      await Promise.all(Array.from({ length: 999 }, async (_, n) => (await board.batch({ name: `${n}` })).seal()))
      expect(await first.progress()).toMatchObject({ state: 'failed' })
      await (await board.batch({ name: 'last' })).seal()
      expect(await rejectionOf(first.progress())).toBeInstanceOf(NotFound)
      expect(await open.progress()).toMatchObject({ state: 'open' })
      expect(await board.batches({ limit: 10_000 })).toHaveLength(1_001)
      for (const table of [...COUNTED, '@.batch_callbacks']) expect(await countOf(place, table), table).toBe(0)
      for (const call of [() => postTo(first, 'late'), () => first.retryFailed(), () => first.seal()])
        expect(await rejectionOf(call())).toBeInstanceOf(NotFound)
      await board.restore(await trashedIn(board, first))
      await end(board, 'job')
      expect(await namesOn(board)).toEqual([])
    },
  )

  test('leaves a batch that has ended and that another transaction opens now', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const batch = await createBatch(board)
    await batch.seal()
    await place.query(`INSERT INTO @.batches (board, uuid, definition, sealed, ended_at)
      SELECT id, n, '', true, clock_timestamp() FROM @.boards, generate_series(1, 1000) AS n`)
    await using client = await holdRow(place, batch)
    await sweep(place)
    await client.query('UPDATE batches SET ended_at = NULL, sealed = false WHERE uuid = $1', [batch.uuid])
    await client.query('COMMIT')
    await sweep(place)
    expect(await countOf(place, '@.batches')).toBe(1_001)
  })

  test('ends batches whose last jobs were removed by hand, and adds up posts', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const [batch, other] = [await createBatch(board), await createBatch(board)]
    const [job] = [await postTo(batch, 'removed'), await postTo(batch, 'other')]
    await batch.seal()
    await end(board, 'other', 'trash')
    await postTo(other, 'open')
    await sweep(place)
    expect(await batch.progress()).toMatchObject({ open: 1, state: 'running' })
    await place.removeRaw(job)
    const waiting = batch.wait()
    await sweep(place)
    expect(await waiting).toBe('failed')
    expect(await batch.progress()).toMatchObject({ total: 2, done: 1, failed: 1, open: 0 })
    expect((await namesOn(board)).sort()).toEqual(['open', 'some failed'])
    expect(await countOf(place, '@.batch_posts')).toBe(0)
    expect(await other.progress()).toMatchObject({ total: 1, open: 1 })
  })

  test('leaves a batch that was damaged by hand, and does the rest', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const [damaged, batch] = [await createBatch(board), await createBatch(board)]
    for (const each of [damaged, batch]) {
      const job = await postTo(each, 'removed')
      await each.cancel()
      await each.wait()
      await place.query('UPDATE @.batches SET ended_at = NULL WHERE uuid = $1', [each.uuid])
      await place.removeRaw(job)
    }
    // Too long for a notification.
    await place.query("UPDATE @.batches SET uuid = repeat('x', 9000) WHERE uuid = $1", [damaged.uuid])
    await place.query('INSERT INTO @.batch_posts SELECT number, 1 FROM @.batches')
    await sweep(place)
    expect(await batch.progress()).toMatchObject({ total: 2, open: 0, endedAt: expect.any(Date) })
    expect(await countOf(place, '@.batches WHERE ended_at IS NULL')).toBe(1)
  })

  test('is part of what every board does from time to time', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const batch = await createBatch(board)
    const job = await postTo(batch, 'removed')
    await batch.seal()
    await place.removeRaw(job)
    await place.query("UPDATE @.boards SET horizon_at = horizon_at - interval '1 hour'")
    await place.query('SELECT @.prune(id) FROM @.boards')
    expect(await batch.progress()).toMatchObject({ total: 1, done: 1, state: 'done' })
  })
})

test('a wait is woken by the end of its batch, and by nothing else that is sent', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using board = await place.openUnviewed()
  await using other = await place.open()
  const batch = await createBatch(board)
  const waiting = batch.wait()
  await batch.progress()
  const [row] = await place.query('SELECT id FROM @.boards')
  for (const text of [batch.uuid, '', 'x'])
    await place.query('SELECT pg_notify($1, $2)', [batchesChannel(place.schema, Number(row?.['id'])), text])
  expect(await batch.progress()).toMatchObject({ state: 'open' })
  await (await other.findBatch(batch.uuid)).seal()
  expect(await waiting).toBe('done')
})

test('two boards of one schema may have batches of the same uuid', async () => {
  await using place = await postgresPlaceOn(server.uri)
  await using same = await postgresPlaceOn(server.uri, { schema: place.schema })
  await using here = await place.open()
  await using there = await same.open()
  const uuid = newUuid()
  const batches = [await createBatch(here, { uuid }), await createBatch(there, { uuid })]
  const job = newUuid()
  for (const batch of batches) await postTo(batch, 'job', { uuid: job })
  await batches[0]?.seal()
  await end(here, 'job')
  expect(await batches[1]?.progress()).toMatchObject({ total: 1, open: 1, state: 'open' })
  expect(await takeCallback(here, 'all done')).toMatchObject({ uuid, total: 1 })
  expect(await namesOn(there)).toEqual(['job'])
})

test('a board that an earlier release has made has batches, and its jobs are done', async () => {
  await using place = await postgresPlaceOn(server.uri, { schema: newSchema() })
  const pool = new PostgresPool(parsePostgresLocation(parseUri(server.uri, 'board')))
  const { steps, ...migrations } = boardMigrations(place.schema)
  const at = steps.findIndex((step) => step.includes('CREATE TABLE IF NOT EXISTS') && step.includes('.batches ('))
  await migrate(pool, { ...migrations, indexes: [], steps: [...steps.slice(0, at - 1), functionsAsFormer(steps)] })
  expect((await place.query("SELECT to_regclass('@.batches') IS NULL AS missing"))[0]).toEqual({ missing: true })
  await pool.close()
  await using board = await place.open()
  await place.putRaw(new Uint8Array([0xc1]))
  const before = await board.post('flow', {}, { name: 'before' })
  expect(jobIdFor(before)).toBe('job0000000002')
  const batch = await createBatch(board)
  await postTo(batch, 'job')
  await batch.seal()
  await end(board, 'before')
  await end(board, 'job')
  expect(await batch.progress()).toMatchObject({ total: 1, done: 1, state: 'done' })
})
