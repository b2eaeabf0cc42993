/** The history of a board: which jobs have ended, how, and by whom. */
import { expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { newUuid } from '../../../src/core/uuid.ts'
import { rejectionOf } from '../../board/events.ts'
import { claimed } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

export function historyContract({ open }: Place): void {
  test('has the jobs that have ended, newest first, however they ended', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const before = Date.now() - 60_000
    for (const name of ['done', 'performed', 'trashed', 'cancelled', 'running'])
      await here.post('flow', {}, { name, ...(name === 'performed' ? { maxAttempts: 1 } : {}) })
    await (await claimed(there, 'done')).consume()
    await (await claimed(here, 'performed')).perform(() => undefined)
    await (await claimed(there, 'trashed')).trash({ reason: 'it broke' })
    const running = await claimed(there, 'running')
    await running.abandon({ reason: 'once' })
    const again = await claimed(here, 'running')
    for await (const job of here.jobs({ name: 'cancelled', ensureFresh: true })) await here.cancel(job)
    for (const board of [here, there]) {
      const [cancelled, trashed, performed, done, ...others] = await board.history()
      expect(others).toEqual([])
      expect(done).toMatchObject({ name: 'done', flow: 'flow', outcome: 'COMPLETE', who: 'there', runs: 1 })
      expect(performed).toMatchObject({ name: 'performed', outcome: 'COMPLETE', who: 'here', runs: 1 })
      expect(trashed).toMatchObject({ name: 'trashed', outcome: 'TRASHED', who: 'there', reason: 'it broke' })
      expect(cancelled).toMatchObject({ name: 'cancelled', outcome: 'TRASHED', who: 'here', runs: 0 })
      expect([cancelled?.cancelled, trashed?.cancelled]).toEqual([true, false])
      expect([cancelled?.startedAt, cancelled?.earlierRuns]).toEqual([undefined, []])
      const times = [done?.postedAt, done?.startedAt, done?.endedAt].map((time) => time?.getTime() ?? 0)
      expect(times).toEqual([...times].sort((a, b) => a - b))
      expect(Math.min(...times)).toBeGreaterThan(before)
    }
    await again.consume()
    const [last, previous] = await here.history({ limit: 2 })
    expect([last?.name, previous?.name]).toEqual(['running', 'cancelled'])
    expect(last).toMatchObject({
      who: 'here',
      runs: 2,
      earlierRuns: [{ who: 'there', ended: 'returned', reason: 'once' }],
    })
    expect(last?.earlierRuns[0]?.at).toBeInstanceOf(Date)
  })

  test('has a job once that ended twice', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { name: 'job' })
    await (await board.claim(job)).trash()
    for await (const trashed of board.trashed()) await board.restore(trashed)
    expect((await board.history()).map(({ outcome }) => outcome)).toEqual(['TRASHED'])
    await (await claimed(board, 'job')).consume()
    const ends = (await board.history()).filter(({ uuid }) => uuid === job.uuid)
    expect(ends[0]).toMatchObject({ outcome: 'COMPLETE', runs: 2 })
  })

  test('keeps about as many jobs as it should, and none where it is turned off', async () => {
    const [some, none] = await Promise.all([open({ keepHistory: 20 }), open({ keepHistory: 0 })])
    for (let round = 0; round < 10; round++) {
      await some.postMany(Array.from({ length: 30 }, (_, n) => ({ flow: 'flow', store: {}, name: `${round}/${n}` })))
      for (let left = 30; left > 0; ) {
        const claims = await some.claimNext({ max: 10 })
        await Promise.all(claims.map((claim) => claim.consume()))
        left -= claims.length
      }
    }
    const kept = await some.history({ limit: 10_000 })
    expect(kept.length).toBeGreaterThanOrEqual(20)
    expect(kept.length).toBeLessThan(150)
    expect(kept[0]?.name).toMatch(/^9\//)
    const job = await none.post('flow', {}, { name: 'unseen' })
    await (await none.claim(job)).consume()
    expect((await none.history()).some(({ name }) => name === 'unseen')).toBe(false)
  })

  test('bad input is refused', async () => {
    const board = await open()
    for (const limit of [0, -1, 1.5, Number.NaN, 10_001])
      expect(await rejectionOf(board.history({ limit }))).toBeInstanceOf(InvalidArgument)
    expect(await board.history()).toEqual([])
    expect(await rejectionOf(board.post('flow', {}, { after: [newUuid()] }))).toMatchObject({
      code: 'JOBBOARD_NOT_FOUND',
    })
  })
}
