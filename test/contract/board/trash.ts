/** What is in the trash comes back as it was posted, or goes for ever. */
import { expect, test } from 'vitest'
import type { JobBoard, TrashedJob } from '../../../src/board/index.ts'
import { Duplicate, NotFound } from '../../../src/core/errors.ts'
import { nextEvent, nextSession, recordEvents, rejectionOf, whenLost } from '../../board/events.ts'
import { all, claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import type { BoardCapabilities } from './capabilities.ts'

async function trashedAs(board: JobBoard, name: string): Promise<TrashedJob> {
  const found = (await all(board.trashed())).find((entry) => entry.name === name)
  if (!found) throw new Error(`${name} is not in the trash`)
  return found
}

export function trashContract({ open, expire }: Place, capabilities: BoardCapabilities): void {
  const { delays, keys, release, resources: resourcesToo } = capabilities
  test('a job is found in the trash by its uuid and its reference as soon as it is there, and no longer than it is', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const [first, second] = [
      await here.post('flow', {}, { name: 'first' }),
      await here.post('flow', {}, { name: 'second' }),
    ]
    expect(await there.findTrashed(first.uuid)).toBeUndefined()
    for (const job of [first, second]) {
      await (await here.claim(job)).trash({ reason: `of ${job.name}` })
      for (const name of [job.uuid, job.ref])
        expect(await there.findTrashed(name)).toMatchObject({ uuid: job.uuid, reason: `of ${job.name}` })
    }
    await here.purge(await trashedAs(here, 'first'))
    for (const name of [first.uuid, first.ref]) expect(await there.findTrashed(name)).toBeUndefined()
    expect(await there.findTrashed(second.uuid)).toMatchObject({ name: 'second', cancelled: false })
    expect(JSON.parse(JSON.stringify(await there.findTrashed(second.ref)))).toMatchObject({ uuid: second.uuid })
  })

  test('of a job that was trashed, restored and trashed again, the newest entry is found', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {}, { name: 'job' })
    await (await here.claim(job)).trash({ reason: 'once' })
    expect(await there.findTrashed(job.uuid)).toMatchObject({ reason: 'once' })
    await here.restore(await trashedAs(here, 'job'))
    expect(await there.findTrashed(job.uuid)).toBeUndefined()
    await (await claimed(here, 'job')).trash({ reason: 'twice' })
    for (const name of [job.uuid, job.ref]) expect(await there.findTrashed(name)).toMatchObject({ reason: 'twice' })
  })

  test('a restored job is what was posted, at the end of the queue: its uuid and runs kept, its attempts empty', async () => {
    const [here, there] = await Promise.all([open(), open()])
    using _view = await here.view()
    const options = { name: 'job', queue: 'large', maxAttempts: 2, deadline: '1h' } as const
    const job = await here.post('flow', { n: 1 }, options)
    await (await here.claim(job)).abandon({ failed: true })
    await (await here.claim(job)).trash()
    await here.post('flow', {}, { name: 'other' })
    await refresh(here)
    const history = recordEvents(here)
    const posted = nextEvent(here, 'posted')
    await there.restore(await trashedAs(there, 'job'))
    await posted
    expect(history).toEqual(['posted job'])
    expect(await namesOn(here)).toEqual(['other', 'job'])
    expect(await all(here.trashed())).toEqual([])
    const restored = await there.find(job.uuid)
    expect(restored).toMatchObject({ uuid: job.uuid, queue: 'large', maxAttempts: 2, runs: 2, attempts: [] })
    expect(restored.details).toEqual(job.details)
    expect(job.state).toBe('TRASHED')
    const claim = await claimed(there, 'job')
    expect(claim.run).toBe(3)
    expect(claim.job.attempts).toHaveLength(1)
    await claim.consume()
  })

  test('the number of its runs goes on, however a job came to the trash and back', async () => {
    const [owner, operator] = await Promise.all([open({ who: 'owner' }), open({ who: 'operator' })])
    await owner.post('flow', {}, { name: 'job', onOwnerLost: 'fail' })
    const runs: number[] = []
    const back = async () => {
      await operator.restore(await trashedAs(operator, 'job'))
      await refresh(owner)
    }
    const claim = async () => {
      const next = await claimed(owner, 'job')
      runs.push(next.run)
      return next
    }
    await (await claim()).trash()
    await back()
    const taken = await claim()
    const lost = whenLost(taken)
    if (release) await operator.release(await operator.find(taken.job.uuid))
    else await taken.trash()
    if (release) await lost
    await back()
    const session = nextSession(owner)
    await claim()
    await expire(owner)
    await session
    await refresh(operator)
    // Some boards find the dead owner at the next claim.
    if ((await all(operator.trashed())).length === 0) await rejectionOf(operator.claimNext({ timeout: 0 }))
    await back()
    await operator.cancel(await operator.find(taken.job.uuid))
    await (await claim()).trash()
    await back()
    await (await claim()).consume()
    expect(runs).toEqual([1, 2, 3, 4, 5])
  })

  if (delays)
    test('a job that was to rest does not rest again, and one that was too often tried is tried again', async () => {
      const board = await open()
      const resting = await board.post('flow', {}, { name: 'resting', delay: '1h' })
      await board.cancel(resting)
      const failed = await board.post('flow', {}, { name: 'failed', maxAttempts: 1 })
      await (await board.claim(failed)).abandon({ failed: true })
      await rejectionOf(board.claim(failed))
      for (const entry of await all(board.trashed())) await board.restore(entry)
      await refresh(board)
      const claims = await board.claimNext({ max: 2 })
      expect(claims.map(({ job, run }) => [job.name, run])).toEqual([
        ['resting', 1],
        ['failed', 2],
      ])
    })

  if (keys)
    test('a job whose key is taken stays in the trash until it is free, and takes it back', async () => {
      const [here, there] = await Promise.all([open(), open()])
      await here.post('flow', {}, { name: 'first', key: 'one' })
      await (await claimed(here, 'first')).trash()
      const second = await here.post('flow', {}, { name: 'second', key: 'one' })
      const entry = await trashedAs(there, 'first')
      const failure = await rejectionOf(there.restore(entry))
      expect(failure).toBeInstanceOf(Duplicate)
      // All that is proven: on ZooKeeper the entry of a key may outlive its job.
      expect(String(failure)).toContain('its key is taken on the board')
      expect(String(failure)).toContain(entry.uuid)
      expect(await namesOn(there)).toEqual(['second'])
      expect(await all(there.trashed())).toHaveLength(1)
      await (await there.claim(second)).consume()
      await there.restore(entry)
      const again = await here.post('flow', {}, { key: 'one' })
      expect(again).toMatchObject({ created: false, uuid: entry.uuid })
    })

  if (resourcesToo)
    test('a job wants its resources again', async () => {
      const board = await open()
      const resources = { exclusive: ['disk'] }
      await board.post('flow', {}, { name: 'first', resources })
      await (await claimed(board, 'first')).trash()
      await board.post('flow', {}, { name: 'second', resources })
      await board.restore(await trashedAs(board, 'first'))
      expect((await board.claimNext({ max: 2 })).map(({ job }) => job.name)).toEqual(['second'])
    })

  test('what was restored, or is gone for ever, is NotFound for later callers', async () => {
    const [here, there] = await Promise.all([open(), open()])
    for (const name of ['restored', 'purged', 'kept']) {
      await here.post('flow', {}, { name })
      await (await claimed(here, name)).trash()
    }
    const gone = [await trashedAs(here, 'purged')]
    for (const entry of gone) await here.purge(entry)
    const entry = await trashedAs(here, 'restored')
    await here.restore(entry)
    gone.push(entry)
    for (const entry of gone) {
      for (const board of [here, there]) {
        expect(await rejectionOf(board.restore(entry))).toBeInstanceOf(NotFound)
        const failure = await rejectionOf(board.purge(entry))
        expect(failure).toBeInstanceOf(NotFound)
        expect(String(failure)).toContain(entry.uuid)
      }
    }
    expect(await namesOn(there)).toEqual(['restored'])
    expect((await all(there.trashed())).map(({ name }) => name)).toEqual(['kept'])
  })

  test('a long trash is read page by page, oldest first: what has left it before its page was read is not listed', async () => {
    const [here, there] = await Promise.all([open(), open()])
    // Three of these are more than a page has.
    const store = { text: 'x'.repeat(450_000) }
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) await here.post('flow', store, { name })
    const oldestFirst = ['e', 'b', 'd', 'a', 'c']
    for (const name of oldestFirst) {
      const job = (await all(here.jobs())).find((each) => each.name === name)
      if (job) await (await here.claim(job)).trash()
    }
    expect((await all(there.trashed())).map(({ name }) => name)).toEqual(oldestFirst)

    const listing = there.trashed()
    const first = (await listing.next()).value
    await here.purge(await trashedAs(here, 'c'))
    expect([first, ...(await all(listing))].map((entry) => entry?.name)).toEqual(['e', 'b', 'd', 'a'])
  })

  test('of many who restore or purge the same at once, one does', async () => {
    const boards = await Promise.all([open(), open(), open()])
    const [here] = boards
    for (let round = 0; round < 5; round++) {
      const name = `round ${round}`
      await here.post('flow', {}, { name })
      await (await claimed(here, name)).trash()
      const entry = await trashedAs(here, name)
      const asked = boards.flatMap((board) => [board.restore(entry), board.purge(entry)])
      const results = await Promise.allSettled(asked)
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      for (const result of results) if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(NotFound)
      const first = results.findIndex(({ status }) => status === 'fulfilled')
      const restored = first % 2 === 0
      expect(await namesOn(here)).toEqual(restored ? [name] : [])
      for (const _ of restored ? [name] : []) await (await claimed(here, name)).consume()
    }
  })
}
