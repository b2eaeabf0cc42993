/** What becomes of jobs whose logbooks refuse, or cannot be read here: rows of the decision table. */
import { describe, expect, test } from 'vitest'
import { IncompatibleVersion, SealedLogbook, StorageFailure } from '../../src/core/errors.ts'
import { openPersistence, type Persistence } from '../../src/index.ts'
import { refresh } from '../board/jobs.ts'
import { delegate, listTrash, singleTaskFlow, startTestConductor } from './conducting.ts'
import { PLACES, placesOf } from './places.ts'

describe.each(PLACES)('on $name', (backend) => {
  const { boards } = placesOf(backend)

  test.each([
    ['of a newer release', new IncompatibleVersion('format 9')],
    ['whose key is not here', new SealedLogbook('key 7')],
  ])('a logbook %s: its job rests, and the others are done meanwhile', async (_, fault) => {
    const [board] = await boards('a')
    const inner = await openPersistence('memory:')
    const fine = singleTaskFlow('fine', () => 1)
    const closed = await board.post(fine, { n: 0 }, { priority: 'VERY_HIGH', maxAttempts: 1 })
    let asked = 0
    const acquire: Persistence['acquire'] = async (request) => {
      if (request.flow.uuid !== closed.uuid) return inner.acquire(request)
      asked += 1
      throw fault
    }
    const conductor = await startTestConductor({
      board,
      persistence: delegate(inner, { acquire }),
      flows: [fine],
      concurrency: 1,
    })
    const given = new Promise((resolve) => conductor.on('settled', resolve))
    expect(await given).toMatchObject({ settled: 'abandoned' })
    expect(conductor.healthy).toBe(true)
    const before = asked
    const jobs = await Promise.all(Array.from({ length: 20 }, (_, n) => board.post(fine, { n })))
    for (const job of jobs) expect(await job.wait()).toBe('COMPLETE')
    expect(asked - before).toBeLessThan(jobs.length)
    await conductor.stop()
    await refresh(board)
    const attempts = closed.attempts.map(({ ended, reason }) => [ended, reason])
    expect(attempts[0]).toEqual(['returned', expect.stringContaining('its logbook cannot be read here')])
  })

  test('logbooks that refuse for good: a failed run', async () => {
    const [board] = await boards('a')
    const inner = await openPersistence('memory:')
    const acquire: Persistence['acquire'] = async () => {
      throw new StorageFailure('too large', { retryable: false })
    }
    const fine = singleTaskFlow('fine', () => 1)
    await startTestConductor({ board, persistence: delegate(inner, { acquire }), flows: [fine] })
    const job = await board.post(fine, { n: 1 }, { maxAttempts: 2, backOff: { first: 1 } })
    expect(await job.wait()).toBe('TRASHED')
    const [trashed] = await listTrash(board)
    expect(trashed?.attempts.map(({ ended }) => ended)).toEqual(['failed', 'failed'])
    expect(trashed?.reason).toContain('too large')
  })

  test('a defect: a failed run', async () => {
    const [board] = await boards('a')
    const inner = await openPersistence('memory:')
    const acquire: Persistence['acquire'] = async () => {
      throw new TypeError('undefined is not a function')
    }
    const fine = singleTaskFlow('fine', () => 1)
    await startTestConductor({ board, persistence: delegate(inner, { acquire }), flows: [fine] })
    const job = await board.post(fine, { n: 1 }, { maxAttempts: 1 })
    expect(await job.wait()).toBe('TRASHED')
    expect((await listTrash(board))[0]?.attempts.map(({ ended }) => ended)).toEqual(['failed'])
  })
})
