/** Batches as znodes: owners that die between two steps, answers that get lost, and what is left and swept. */
import { describe, expect } from 'vitest'
import type { Batch, JobBoard } from '../../../../src/board/index.ts'
import { encodeRecord } from '../../../../src/board/model/record.ts'
import { InvalidState, NotFound } from '../../../../src/core/errors.ts'
import { createBatch, end, postTo, takeCallback } from '../../../contract/board/batches.ts'
import { count } from '../../../support/counts.ts'
import { expireSession } from '../../../support/expire-session.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor, type ZooKeeperPlace, zookeeperPlace } from '../../boards.ts'
import { nextEvent, nextSession, rejectionOf } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { CUTS, ProxiedBoard } from '../../proxied-board.ts'
import { boardAt } from './bare-backends.ts'

/** The folder of the batches of a board. */
function folderOf({ path }: ZooKeeperPlace): string {
  const cut = path.lastIndexOf('/')
  return `${path.slice(0, cut)}/.${path.slice(cut + 1)}-sessions/.batches`
}

/** Removes the last open job as the transactions of two owners do that ended at the same time, and died before they looked again. */
async function endUnseen(place: ZooKeeperPlace, batch: Batch, job: { readonly uuid: string }): Promise<void> {
  await place.observer.delete(`${folderOf(place)}/${batch.uuid}/open/${job.uuid}`)
}

/** Resolves after so many more requests of the board. */
async function requests({ proxy }: ProxiedBoard, number: number): Promise<void> {
  for (let request = 0; request < number; request++) await proxy.nextRequest()
}

/** Claims and consumes what is on the board until the batch has ended, which must be once. */
async function finish(board: JobBoard, batch: Batch): Promise<void> {
  const own = await board.findBatch(batch.uuid)
  const isMember = ({ batch: counted }: { readonly batch?: string }) => counted === batch.uuid
  while ((await own.progress()).endedAt === undefined) {
    const [claim] = await board.claimNext({ timeout: 50, accept: isMember }).catch(() => [])
    await claim?.consume()
  }
}

describe.skipIf(!zookeeperHosts)('batches on ZooKeeper', () => {
  test('keep no znode of a job that is done', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const batch = await createBatch(board)
    for (const name of ['a', 'b', 'c']) await postTo(batch, name)
    await batch.seal()
    for (const name of ['a', 'b']) await end(board, name)
    const folder = `${folderOf(place)}/${batch.uuid}`
    expect((await place.observer.getChildren(`${folder}/open`)).names).toHaveLength(1)
    await end(board, 'c', 'trash')
    expect((await place.observer.getChildren(`${folder}/open`)).names).toEqual([])
    expect((await place.observer.getChildren(`${folder}/failed`)).names).toHaveLength(1)
    await takeCallback(board, 'some failed')
    expect(await place.jobNodes()).toEqual([])
  })

  describe('answers that are lost', () => {
    test.each(CUTS)('in the end of the last job, from request %d on: it is counted once', async (cut) => {
      await using setup = await ProxiedBoard.set()
      const { board, other, proxy } = setup
      const batch = await createBatch(board)
      await postTo(batch, 'job')
      await batch.seal()
      const claim = await claimed(board, 'job')
      await refresh(other)
      let isOver = false
      const swallowing = requests(setup, cut).then(() => {
        if (!isOver) proxy.mode = 'swallow-replies'
      })
      const consuming = claim.consume()
      const seen = (await other.findBatch(batch.uuid)).wait({ timeout: '300ms' }).catch(() => 'running')
      await Promise.race([consuming, swallowing.then(() => seen)])
      isOver = true
      proxy.mode = 'pass'
      proxy.resetAll()
      await consuming
      expect(await (await other.findBatch(batch.uuid)).wait()).toBe('done')
      expect(await takeCallback(other, 'all done')).toMatchObject({ total: 1, done: 1, generation: 1 })
    })

    test.each(CUTS)('in a post and in the seal, from request %d on: both are done once', async (cut) => {
      await using setup = await ProxiedBoard.set()
      const { board, other, proxy } = setup
      const batch = await createBatch(board)
      const same = await other.findBatch(batch.uuid)
      let isOver = false
      void requests(setup, cut).then(async () => {
        if (isOver) return
        proxy.mode = 'swallow-replies'
        await refresh(other)
        proxy.mode = 'pass'
        proxy.resetAll()
      })
      const [first] = await Promise.all([again(() => postTo(batch, 'first')), again(() => postTo(batch, 'second'))])
      await again(() => batch.seal())
      isOver = true
      proxy.mode = 'pass'
      expect(first.batch).toBe(batch.uuid)
      expect(await same.progress()).toMatchObject({ total: 2, open: 2, sealed: true })
      for (const name of ['first', 'second']) await end(other, name)
      expect(await takeCallback(other, 'all done')).toMatchObject({ total: 2 })
    })
  })

  test.each(CUTS)('an owner that is cut off after request %d of the last end: the batch ends once', async (cut) => {
    await using setup = await ProxiedBoard.set()
    const { board, other, place, proxy } = setup
    const batch = await createBatch(other)
    await postTo(batch, 'job')
    await batch.seal()
    const claim = await claimed(board, 'job')
    const session = await place.sessionOf(board)
    const reborn = nextSession(board)
    let isOver = false
    const cutting = requests(setup, cut).then(() => {
      if (!isOver) proxy.mode = 'blackhole'
    })
    const consuming = claim.consume().catch((error: unknown) => error)
    await Promise.race([cutting, consuming])
    isOver = true
    proxy.mode = 'blackhole'
    await expireSession(zookeeperHosts, session)
    proxy.mode = 'pass'
    proxy.resetAll()
    await reborn
    await finish(other, batch)
    await consuming
    await refresh(other)
    expect(await batch.progress()).toMatchObject({ total: 1, done: 1, open: 0, state: 'done', generation: 1 })
    expect(await takeCallback(other, 'all done')).toMatchObject({ total: 1, done: 1 })
  })

  test('a connection that is away: the end of a job waits for it, and is counted', async () => {
    await using setup = await ProxiedBoard.set()
    const { board, other, proxy } = setup
    const batch = await createBatch(board)
    await postTo(batch, 'job')
    await batch.seal()
    const claim = await claimed(board, 'job')
    const suspended = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await suspended
    const consuming = claim.consume()
    proxy.mode = 'pass'
    await consuming
    expect(await batch.wait({ timeout: '20s' })).toBe('done')
    expect(await takeCallback(other, 'all done')).toMatchObject({ total: 1 })
  })

  describe('a batch that two owners have left, which ended its last jobs and died', () => {
    test('is ended by the sweep, once, though several boards sweep', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const batch = await createBatch(board)
      const job = await postTo(batch, 'job')
      await batch.seal()
      await place.removeRaw(job)
      await refresh(board)
      const posted = nextEvent(board, 'posted')
      await endUnseen(place, batch, job)
      const sweeping = await Promise.all(Array.from({ length: 3 }, () => boardAt(place, { scanPeriod: '2ms' })))
      // Boards sweep among what they scan, about as long as something happens.
      let isEnded = false
      const told = posted.then(() => {
        isEnded = true
      })
      while (!isEnded) await board.batch({ name: 'other' })
      await told
      for (const each of sweeping) await each.close()
      expect(await batch.progress()).toMatchObject({ total: 1, open: 0, state: 'done', generation: 1 })
      expect(await takeCallback(board, 'all done')).toMatchObject({ total: 1, done: 1 })
    })

    test('is ended by those who look at it, once', async () => {
      await using place = await zookeeperPlace()
      const boards = [await place.open(), await place.open(), await place.open()] as const
      const batch = await createBatch(boards[0])
      const job = await postTo(batch, 'job')
      await batch.seal()
      await place.removeRaw(job)
      await endUnseen(place, batch, job)
      const looks = await Promise.all(
        boards.map(async (board) => (await board.findBatch(batch.uuid)).wait({ timeout: '20s' })),
      )
      expect(looks).toEqual(['done', 'done', 'done'])
      expect(await takeCallback(boards[1], 'all done')).toMatchObject({ total: 1 })
      for (const board of boards) await board.close()
    })
  })

  test('a post whose key is taken says so, also when its batch was sealed since the poster read it', async () => {
    await using place = await zookeeperPlace()
    await using poster = await place.openUnviewed()
    await using other = await place.open()
    const batch = await createBatch(poster)
    const post = () => poster.post('flow', {}, { name: 'job', key: 'k', batch: batch.uuid })
    const first = await post()
    await (await other.findBatch(batch.uuid)).seal()
    expect(await post()).toMatchObject({ uuid: first.uuid, created: false })
    expect(await rejectionOf(poster.post('flow', {}, { name: 'late', batch: batch.uuid }))).toBeInstanceOf(InvalidState)
  })

  test('a seal at the same time as the last end ends the batch once', async () => {
    await using place = await zookeeperPlace()
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 20, long: 1_000 }); round++) {
      const batch = await createBatch(here)
      await postTo(batch, 'job')
      const claim = await claimed(there, 'job')
      const [sealed] = await Promise.all([batch.seal(), claim.consume()])
      expect(sealed.sealed).toBe(true)
      expect(await batch.wait({ timeout: '20s' })).toBe('done')
      expect(await takeCallback(here, 'all done')).toMatchObject({ total: 1, done: 1 })
    }
  })

  test('a job that is added by the last one while that ends is refused or counted', async () => {
    await using place = await zookeeperPlace()
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 20, long: 1_000 }); round++) {
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
      expect(await batch.wait({ timeout: '20s' })).toBe('done')
      const total = isAdded ? 2 : 1
      expect(await takeCallback(here, 'all done')).toMatchObject({ total, done: total, generation: 1 })
    }
  })

  variant('restoring at the same time as the last end: the batch ends as often as it was opened', async () => {
    await using place = await zookeeperPlace()
    await using here = await place.open()
    await using there = await place.open()
    for (let round = 0; round < count({ test: 15, long: 500 }); round++) {
      const batch = await createBatch(here)
      await postTo(batch, 'bad')
      await postTo(batch, 'last')
      await batch.seal()
      await end(here, 'bad', 'trash')
      const claim = await claimed(here, 'last')
      const [trashed] = (await all(there.trashed())).filter((job) => job.batch === batch.uuid)
      if (!trashed) throw new Error('it is in the trash')
      await Promise.all([there.restore(trashed), claim.consume()])
      await end(here, 'bad')
      expect(await batch.wait({ timeout: '20s' })).toBe('done')
      const { generation } = await batch.progress()
      const names = (await namesOn(here)).sort()
      expect(names).toEqual(generation === 1 ? ['all done'] : ['all done', 'some failed'])
      for (const name of names) await end(here, name)
      expect(await batch.progress()).toMatchObject({ total: 2, done: 2, failed: 0 })
    }
  })

  variant('thousands of jobs of several owners end in one callback', { timeout: 120_000 }, async () => {
    await using place = await zookeeperPlace()
    const boards = [await place.open(), await place.open()] as const
    const [here, there] = boards
    const size = count({ test: 5_000, long: 50_000 })
    const batch = await createBatch(here)
    const items = Array.from({ length: size }, (_, n) => ({ flow: 'flow', store: {}, name: `${n}` }))
    let left = size
    const work = async (board: JobBoard) => {
      while (left > 0) {
        const accept = ({ batch: counted }: { readonly batch?: string }) => counted === batch.uuid
        const claims = await board.claimNext({ max: 200, timeout: 100, accept }).catch(() => [])
        left -= claims.length
        await Promise.all(claims.map((claim) => claim.consume()))
      }
    }
    const working = boards.map(work)
    const results = await batch.postMany(items)
    expect(results.filter((result) => 'error' in result)).toEqual([])
    await batch.seal()
    await Promise.all(working)
    expect(await batch.wait({ timeout: '1m' })).toBe('done')
    expect(await takeCallback(there, 'all done')).toMatchObject({ total: size, done: size, failed: 0 })
    for (const board of boards) await board.close()
  })

  variant(
    'the last thousand batches that ended are kept; jobs of others end, and are restored, without one',
    {
      timeout: 120_000,
    },
    async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const first = await board.batch({ name: 'first' })
      for (const name of ['a', 'b']) await postTo(first, name)
      await first.seal()
      for (const name of ['a', 'b']) await end(board, name, 'trash')
      const open = await board.batch({ name: 'open' })
      await Promise.all(Array.from({ length: 1_000 }, async (_, n) => (await board.batch({ name: `${n}` })).seal()))
      await using sweeping = await boardAt(place, { scanPeriod: '2ms' })
      while (
        (await rejectionOf(first.progress().then(() => Promise.reject(new Error('it is there'))))) instanceof
          NotFound ===
        false
      )
        await (await sweeping.claim(await sweeping.post('flow', {}))).consume()
      expect(await open.progress()).toMatchObject({ state: 'open' })
      expect(await rejectionOf(postTo(first, 'late'))).toBeInstanceOf(NotFound)
      const [trashed] = (await all(board.trashed())).filter((job) => job.batch === first.uuid)
      if (!trashed) throw new Error('it is in the trash')
      await board.restore(trashed)
      await end(board, trashed.name)
      expect(await rejectionOf(first.retryFailed())).toBeInstanceOf(NotFound)
      const names = async () => (await place.observer.getChildren(folderOf(place))).names
      while ((await names()).includes(first.uuid))
        await (await sweeping.claim(await sweeping.post('flow', {}))).consume()
      expect(await names()).toHaveLength(1_001)
    },
  )

  describe('znodes that were changed by hand', () => {
    test('do not keep a job from its end', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const batch = await createBatch(board)
      const job = await postTo(batch, 'job')
      await endUnseen(place, batch, job)
      await end(board, 'job', 'trash')
      expect(await batch.progress()).toMatchObject({ total: 1, failed: 0, open: 0 })
      await postTo(batch, 'other')
      await place.observer.deleteRecursive(folderOf(place))
      await end(board, 'other', 'trash')
      expect(await rejectionOf(batch.progress())).toBeInstanceOf(NotFound)
      expect(await namesOn(board)).toEqual([])
      expect((await board.batch({ name: 'new' })).name).toBe('new')
    })

    test('the batch of a newer release is left to it', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const batch = await createBatch(board)
      await postTo(batch, 'job')
      await batch.seal()
      const name = { kind: 'batch', id: batch.uuid, format: 99 }
      await place.observer.setData(`${folderOf(place)}/${batch.uuid}`, encodeRecord({}, name))
      const told = nextEvent(board, 'error')
      await end(board, 'job')
      expect(String((await told).error)).toMatch(/format 99.*upgrade/)
      expect(await batch.progress()).toMatchObject({ open: 0, done: 1, endedAt: undefined })
      expect(await namesOn(board)).toEqual([])
    })
  })

  test('the callback has a number of its own where posters number the jobs', async () => {
    await using place = await zookeeperPlace()
    await using board = await boardAt(place, { numbersFrom: 0 })
    const batch = await createBatch(board)
    await postTo(batch, 'job')
    await batch.seal()
    await end(board, 'job')
    const [job] = await all(board.jobs({ ensureFresh: true }))
    expect(job && jobIdFor(job)).toMatch(/^job\d{20}$/)
    await takeCallback(board, 'all done')
  })
})

/** Repeats a call whose connection broke before it was done. */
async function again<T>(call: () => Promise<T>): Promise<T> {
  while (true) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof Error && 'retryable' in error && error.retryable)) throw error
    }
  }
}
