/** The results that a board keeps with the end of a job. */
import { expect, test } from 'vitest'
import { newUuid } from '../../../src/core/uuid.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { rejectionOf } from '../../board/events.ts'
import { claimed } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import type { BoardCapabilities } from './capabilities.ts'

export function resultsContract({ open }: Place, { keys }: BoardCapabilities): void {
  test('are read before, during and after the end of the job, by its poster and by others', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const job = await here.post('flow', {}, { name: 'job' })
    const early = [here.result(job), there.result(job.uuid), there.result(job.ref)]
    await (await claimed(there, 'job')).consume({ results: { pages: 12, at: [1, null, 'x'] } })
    const results = { uuid: job.uuid, results: { pages: 12, at: [1, null, 'x'] } }
    expect(await Promise.all(early)).toEqual([results, results, results])
    const late = await Promise.all([here.result(job), here.result(job.uuid), there.result(job.ref, { timeout: '10s' })])
    expect(late).toEqual([results, results, results])
  })

  test('of a job that failed are its reason, also after its removal from the trash', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { name: 'job' })
    const early = rejectionOf(board.result(job))
    await (await board.claim(job)).trash({ reason: 'it broke' })
    const failed = { code: 'JOBBOARD_JOB_FAILED', uuid: job.uuid, reason: 'it broke' }
    expect(await early).toMatchObject(failed)
    expect(await rejectionOf(board.result(job.uuid))).toMatchObject(failed)
    for await (const trashed of board.trashed()) await board.purge(trashed)
    expect(await rejectionOf(board.result(job.uuid))).toMatchObject(failed)
  })

  test('of a job in the trash that the history does not have are its reason', async () => {
    const [here, there] = await Promise.all([open({ keepHistory: 0 }), open()])
    const job = await here.post('flow', {}, { name: 'job' })
    await (await here.claim(job)).trash({ reason: 'it broke' })
    const failed = { code: 'JOBBOARD_JOB_FAILED', uuid: job.uuid, reason: 'it broke', cancelled: false }
    expect(await rejectionOf(there.result(job.uuid))).toMatchObject(failed)
  })

  test('are refused with a flow of another name or version, whose type would be wrong', async () => {
    const board = await open()
    const toSum = (name: string, version: string) => {
      const add = task('add', { provides: 'sum', execute: () => 3 })
      return linear({ name, version }, input<object>(), add)
    }
    const job = await board.post(toSum('sum', '1'), {}, { name: 'job' })
    await (await board.claim(job)).consume({ results: { sum: 3 } })
    expect(await board.result(job.uuid, { flow: toSum('sum', '1') })).toMatchObject({ results: { sum: 3 } })
    const refusal = await rejectionOf(board.result(job, { flow: toSum('sum', '2') }))
    expect(refusal).toMatchObject({ code: 'JOBBOARD_INCOMPATIBLE_VERSION' })
    expect(await rejectionOf(board.result(job.uuid, { flow: toSum('sum', '2') }))).toEqual(refusal)
    expect(await rejectionOf(board.result(job.uuid, { flow: toSum('other', '1') }))).toMatchObject({
      code: 'JOBBOARD_INVALID_ARGUMENT',
    })
  })

  test('of a job that was cancelled are its reason', async () => {
    const board = await open()
    const job = await board.post('flow', {})
    await board.cancel(job.uuid, { reason: 'not needed' })
    expect(await rejectionOf(board.result(job))).toMatchObject({
      code: 'JOBBOARD_JOB_FAILED',
      cancelled: true,
      reason: expect.stringContaining('not needed'),
    })
  })

  test('of a job that was restored from the trash are those of its next run', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {}, { name: 'job' })
    await (await here.claim(job)).trash()
    for await (const trashed of here.trashed()) await here.restore(trashed)
    const waiting = [here.result(job), there.result(job.uuid)]
    await (await claimed(there, 'job')).consume({ results: { run: 2 } })
    for (const { results } of await Promise.all(waiting)) expect(results).toEqual({ run: 2 })
  })

  test('of a job that was restored, and is done before the call, are those of its last run', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {}, { name: 'job' })
    await (await there.claim(job)).trash()
    expect(await job.wait()).toBe('TRASHED')
    for await (const trashed of there.trashed()) await there.restore(trashed)
    await (await claimed(there, 'job')).consume({ results: { run: 2 } })
    expect((await here.result(job)).results).toEqual({ run: 2 })
  })

  test('that nobody kept are refused by name', async () => {
    const board = await open()
    const jobs = await Promise.all(['plain', 'performed'].map((name) => board.post('flow', {}, { name })))
    await (await claimed(board, 'plain')).consume()
    await (await claimed(board, 'performed')).perform(() => 'a return value')
    for (const job of jobs)
      expect(await rejectionOf(board.result(job))).toMatchObject({
        code: 'JOBBOARD_RESULT_NOT_KEPT',
        message: expect.stringContaining(job.uuid),
      })
  })

  test('are kept up to 64 KiB; larger ones are refused, and the job can still be settled', async () => {
    const board = await open()
    const job = await board.post('flow', {})
    const claim = await board.claim(job)
    expect(await rejectionOf(claim.consume({ results: { text: 'x'.repeat(65_600) } }))).toMatchObject({
      code: 'JOBBOARD_INVALID_ARGUMENT',
      message: expect.stringContaining('a board keeps 65536'),
    })
    const text = 'x'.repeat(65_000)
    await claim.consume({ results: { text } })
    expect((await board.result(job)).results).toEqual({ text })
  })

  test('bad input is refused, and nothing is settled', async () => {
    const board = await open()
    const job = await board.post('flow', {})
    const claim = await board.claim(job)
    for (const results of ['text', 7, null, [1], { call: () => 1 }, { big: 10n ** 400n }])
      expect(await rejectionOf(claim.consume({ results } as never))).toMatchObject({
        code: 'JOBBOARD_INVALID_ARGUMENT',
      })
    expect(await rejectionOf(claim.consume({ result: {} } as never))).toMatchObject({
      code: 'JOBBOARD_INVALID_ARGUMENT',
    })
    expect(claim.settled).toBe(false)
    await claim.consume({ results: {} })
    expect((await board.result(job)).results).toEqual({})
    for (const options of [{ timeout: -1 }, { wait: 3 }, { flow: 'flow' }, { persistence: 'memory:' }])
      expect(await rejectionOf(board.result(job, options as never))).toMatchObject({
        code: 'JOBBOARD_INVALID_ARGUMENT',
      })
    expect(await rejectionOf(board.result('not a uuid'))).toMatchObject({ code: expect.any(String) })
    expect(await rejectionOf(board.result(newUuid()))).toMatchObject({ code: 'JOBBOARD_NOT_FOUND' })
  })

  test('are read for the time after the end that the posting says', async () => {
    const board = await open()
    const [short, none, long] = [
      await board.post('flow', {}, { resultTtl: 1 }),
      await board.post('flow', {}, { resultTtl: 0 }),
      await board.post('flow', {}, { resultTtl: '1h' }),
    ]
    for (const job of [short, none, long]) await (await board.claim(job)).consume({ results: { n: 1 } })
    expect((await board.result(long)).results).toEqual({ n: 1 })
    await expect
      .poll(async () => String(await rejectionOf(board.result(short))))
      .toMatch(/its results were not kept: they were kept until \S+Z \(resultTtl\)/)
    expect(await rejectionOf(board.result(none))).toMatchObject({ code: 'JOBBOARD_RESULT_NOT_KEPT' })
    const [later] = await Promise.all([open()])
    expect((await later.result(long.uuid)).results).toEqual({ n: 1 })
    expect(await rejectionOf(board.post('flow', {}, { resultTtl: -1 }))).toMatchObject({
      code: 'JOBBOARD_INVALID_ARGUMENT',
    })
  })

  test('are awaited no longer than the timeout, and until the signal', async () => {
    const board = await open()
    const job = await board.post('flow', {})
    expect(await rejectionOf(board.result(job, { timeout: 20 }))).toMatchObject({ code: 'JOBBOARD_TIMEOUT' })
    const reason = new Error('enough')
    expect(await rejectionOf(board.result(job, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    await (await board.claim(job)).consume({ results: { done: true } })
    expect((await board.result(job, { timeout: 0 })).results).toEqual({ done: true })
  })

  test.runIf(keys)('are those of the job with that uuid, whatever its key', async () => {
    const board = await open()
    const first = await board.post('flow', {}, { key: 'one' })
    await (await board.claim(first)).consume({ results: { n: 1 } })
    const second = await board.post('flow', {}, { key: 'one' })
    await (await board.claim(second)).consume({ results: { n: 2 } })
    expect((await board.result(first)).results).toEqual({ n: 1 })
    expect((await board.result(second.uuid)).results).toEqual({ n: 2 })
  })
}
