/** Settings of flows: what an operator sets reaches all that post and claim. */
import { expect, test } from 'vitest'
import { type JobBoard, schedule } from '../../../src/board/index.ts'
import { boardInternals, toDeclaredFlowSettings } from '../../../src/board/internal.ts'
import { FLOW_SETTINGS } from '../../../src/board/settings/record.ts'
import {
  IncompatibleVersion,
  InvalidArgument,
  NotFound,
  Timeout,
  Unclaimable,
  UnsupportedCapability,
} from '../../../src/core/errors.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { nextSession, rejectionOf } from '../../board/events.ts'
import { all, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

export function flowSettingsContract({ open, openUnviewed, expire }: Place): void {
  const trashedOn = async (board: JobBoard) =>
    (await all(board.trashed()))
      .map(({ name, reason }) => ({ name, reason }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))

  test('posts have them in place of what the code of the flow says, and callers replace them', async () => {
    const operator = await openUnviewed()
    const { flowSettings } = operator
    await flowSettings.set('report', { priority: 'HIGH', expiresAfter: '1d' })
    await flowSettings.set('rep*', { priority: 'LOW', queue: 'bulk', delay: '1h', onOwnerLost: 'fail' })
    await flowSettings.set('*', { queue: 'other', delay: '1m' })
    const board = await openUnviewed()
    const posting = { priority: 'VERY_LOW', queue: 'code', maxAttempts: 5 } as const
    const report = linear({ name: 'report', posting }, input<object>(), task('t', { execute: () => 1 }))
    const coded = await board.post(report, {})
    const named = await board.post('report', {})
    for (const job of [coded, named]) {
      expect(job).toMatchObject({ priority: 'HIGH', queue: 'bulk', onOwnerLost: 'fail' })
      const found = await operator.find(job.uuid)
      expect(found).toMatchObject({ priority: 'HIGH', queue: 'bulk', onOwnerLost: 'fail' })
      const [delay, expiry] = [found.delayedUntil, found.expiresAt].map(
        (time) => (time?.getTime() ?? 0) - (found.postedAt?.getTime() ?? 0),
      )
      expect([delay, expiry]).toEqual([3_600_000, 86_400_000])
    }
    expect(coded.maxAttempts).toBe(5)
    const said = await board.post(report, {}, { priority: 'NORMAL', queue: 'default', delay: 0, onOwnerLost: 'retry' })
    expect(said).toMatchObject({ priority: 'NORMAL', queue: 'default', onOwnerLost: 'retry' })
    const found = await operator.find(said.uuid)
    expect(found.delayedUntil).toEqual(found.postedAt)
    expect(await board.post('others', {})).toMatchObject({ priority: 'NORMAL', queue: 'other' })
    const many = await board.postMany([
      { flow: 'report', store: {} },
      { flow: report, store: {}, queue: 'mine' },
    ])
    expect(many.map((each) => 'job' in each && each.job.queue)).toEqual(['bulk', 'mine'])
    const [together] = await board.postMany([{ flow: 'report', store: {} }], { atomic: true })
    expect(together && 'job' in together && together.job.queue).toBe('bulk')
  })

  test('with force, they replace what callers say, too', async () => {
    const operator = await openUnviewed()
    await operator.flowSettings.set('report', { queue: 'bulk', maxAttempts: 1, force: true })
    await operator.flowSettings.set('*', { queue: 'other', priority: 'LOW' })
    const board = await open()
    const job = await board.post('report', {}, { queue: 'urgent', priority: 'HIGH', maxAttempts: 9 })
    expect(job).toMatchObject({ queue: 'bulk', priority: 'HIGH' })
    await (await board.claim(job)).perform(() => Promise.reject(new Error('broken')))
    expect(await trashedOn(board)).toMatchObject([{ name: 'report' }])
  })

  test('attempts, back-off and deadlines hold at once, for jobs that were posted before', async () => {
    const [operator, board] = [await openUnviewed(), await open()]
    const fail = () => Promise.reject(new Error('broken'))
    const [once, said, slow] = [
      await board.post('report', {}, { name: 'a once' }),
      await board.post('report', {}, { name: 'b said', maxAttempts: 4, backOff: { first: 0 } }),
      await board.post('report', {}, { name: 'c slow' }),
    ]
    const claim = await board.claim(once)
    await operator.flowSettings.set('report', { maxAttempts: 1, backOff: { first: '1h', jitter: 'none' }, deadline: 1 })
    // The claim of another job reads what is set now.
    const late = await board.claim(slow)
    expect(await claim.perform(fail)).toBe('trashed')
    expect(
      await late.perform(
        (_, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ),
    ).toBe('trashed')
    expect(await (await board.claim(said)).perform(fail)).toBe('abandoned')
    const trashed = await trashedOn(operator)
    expect(trashed.map(({ name }) => name)).toEqual(['a once', 'c slow'])
    expect(trashed[1]?.reason).toContain('not done within')
    await operator.flowSettings.set('report', { maxAttempts: 3 })
    await operator.flowSettings.unset('report', { keys: ['deadline'] })
    const again = await board.post('report', {}, { name: 'd again' })
    expect(await (await board.claim(again)).perform(fail)).toBe('abandoned')
    const found = await operator.find(again.uuid)
    expect(found.delayedUntil?.getTime()).toBeGreaterThan((found.postedAt?.getTime() ?? 0) + 3_000_000)
  })

  test('a number of failures that is reduced trashes jobs that have failed as often, instead of running them', async () => {
    const [operator, board] = [await openUnviewed(), await open()]
    const job = await board.post('report', {}, { backOff: { first: 0 } })
    for (let failures = 0; failures < 2; failures += 1)
      expect(await (await board.claim(job)).perform(() => Promise.reject(new Error('broken')))).toBe('abandoned')
    await operator.flowSettings.set('report', { maxAttempts: 2 })
    expect(await rejectionOf(board.claim(job))).toMatchObject({
      message: expect.stringContaining('was trashed: failed 2'),
    })
    expect((await trashedOn(operator))[0]?.reason).toContain('failed 2 times, 2 are allowed')
  })

  test('more failures than the posting lists are counted', async () => {
    const [operator, board] = [await openUnviewed(), await open()]
    await operator.flowSettings.set('report', { maxAttempts: 14, backOff: { first: 0 } })
    const job = await board.post('report', {})
    for (let failures = 1; failures <= 14; failures += 1)
      expect(await (await board.claim(job)).perform(() => Promise.reject(new Error('broken')))).toBe(
        failures < 14 ? 'abandoned' : 'trashed',
      )
    const [trashed] = await all(operator.trashed())
    expect(trashed?.attempts.length).toBeLessThan(14)
    expect(trashed?.omittedAttempts?.failed).toBeGreaterThan(0)
  })

  test('a job that must not survive its owner is trashed, also if it was posted before', async () => {
    const [operator, board, other] = [await openUnviewed(), await open(), await open()]
    const job = await board.post('report', {})
    const kept = await board.post('report', {}, { name: 'said', onOwnerLost: 'retry' })
    const claims = [await board.claim(job), await board.claim(kept)]
    await operator.flowSettings.set('*', { onOwnerLost: 'fail' })
    expect(await operator.release(job)).toMatchObject({ trashed: true })
    expect(await operator.release(kept)).toMatchObject({ trashed: false })
    for (const claim of claims)
      expect(
        claim.lost.aborted || (await new Promise((done) => claim.lost.addEventListener('abort', () => done(true)))),
      ).toBe(true)
    const dies = await board.post('report', {}, { name: 'dies' })
    await board.claim(dies)
    const renewed = nextSession(board)
    await expire(board)
    await renewed
    const [claim] = await other.claimNext({ timeout: '20s' })
    expect(claim.job.name).toBe('said')
    const stop = new AbortController()
    const claiming = other.claimNext({ signal: stop.signal }).catch(() => undefined)
    await expect
      .poll(() => trashedOn(operator), { timeout: 20_000 })
      .toMatchObject([{ name: 'dies' }, { name: 'report' }])
    stop.abort()
    await claiming
  })

  test('a job is not started after the time that its flow has for it', async () => {
    const [operator, board] = [await openUnviewed(), await open()]
    const [job, said] = [await board.post('report', {}), await board.post('report', {}, { expiresAfter: '1h' })]
    await operator.flowSettings.set('report', { expiresAfter: 1 })
    // A board in memory claims within the millisecond of the post; the clock of a server may be a little behind this one.
    const { postedAt } = await board.find(job.uuid)
    while (Date.now() < (postedAt?.getTime() ?? 0) + 50) await refresh(board)
    expect(await rejectionOf(board.claim(job))).toBeInstanceOf(Unclaimable)
    expect((await board.claim(said)).run).toBe(1)
    expect((await trashedOn(operator))[0]?.reason).toBe('nobody started it within 1 ms')
  })

  test('jobs of a flow that is not enabled wait, with the reason', async () => {
    const [operator, board] = [await openUnviewed({ who: 'ada' }), await open()]
    await operator.flowSettings.set('rep*', { enabled: false }, { reason: 'the disk is full' })
    await operator.flowSettings.set('repair', { enabled: true })
    const job = await board.post('report', {})
    const unlimited = await board.post('report', {}, { limits: 'none', name: 'unlimited' })
    const repair = await board.post('repair', {})
    expect((await board.claimNext({ max: 9, timeout: '20s' })).map((claim) => claim.job.uuid)).toEqual([repair.uuid])
    for (const waiting of [job, unlimited]) {
      expect(
        await rejectionOf(board.claimNext({ timeout: 0, accept: ({ uuid }) => uuid === waiting.uuid })),
      ).toBeInstanceOf(Timeout)
      expect(await rejectionOf(board.claim(waiting))).toMatchObject({
        message: expect.stringContaining('was disabled by ada'),
      })
      expect(await board.waitingFor(waiting)).toMatchObject({
        ...{ kind: 'disabled', flow: 'report', stopped: { key: 'rep*', by: 'ada', reason: 'the disk is full' } },
        text: 'flow report (rep*) was disabled by ada: the disk is full',
      })
    }
    const cancelled = await board.post('report', {}, { name: 'cancelled' })
    await operator.cancel(cancelled, { reason: 'no need' })
    await expect.poll(() => trashedOn(operator)).toMatchObject([{ name: 'cancelled' }])
    const claiming = board.claimNext({ max: 2, timeout: '20s' })
    await operator.flowSettings.unset('rep*')
    expect((await claiming)[0]?.job.uuid).toBe(job.uuid)
  })

  test('a process that has not received the change yet cannot claim a job of a flow that is disabled', async () => {
    const [operator, board] = [await openUnviewed(), await open()]
    const job = await board.post('report', {})
    for (let round = 0; round < 5; round += 1) {
      await operator.flowSettings.set('report', { enabled: false })
      expect(await rejectionOf(board.claim(job))).toBeInstanceOf(Unclaimable)
      await operator.flowSettings.set('report', { enabled: true })
      await (await board.claim(job)).abandon()
    }
  })

  test('a job that its poster claims has them, but the times before its claim', async () => {
    const operator = await openUnviewed()
    const times = { delay: '1h', expiresAfter: '2h' } as const
    await operator.flowSettings.set('*', { ...times, priority: 'LOW', queue: 'bulk', onOwnerLost: 'fail' })
    const board = await openUnviewed()
    const claim = await board.postAndClaim('report', {}, { timeout: '20s' })
    expect(claim.job).toMatchObject({ priority: 'LOW', queue: 'bulk', onOwnerLost: 'fail' })
    await claim.consume()
  })

  test('limits of patterns do not apply to jobs without limits, such as holds of resources', async () => {
    const [operator, board] = [await openUnviewed(), await open()]
    await operator.limits.set('*', { concurrency: 1 })
    await operator.limits.set('flow*', { concurrency: 0 })
    await operator.limits.stop('fl*')
    await operator.flowSettings.set('other', { enabled: false })
    await using _one = await board.hold({ exclusive: ['one'], timeout: '20s' })
    await using _two = await board.hold({ exclusive: ['two'], timeout: '20s' })
  })

  test('a time by which the job would expire before its turn is left out, unless it is forced', async () => {
    const operator = await openUnviewed()
    await operator.flowSettings.set('report', { delay: '1h' })
    await operator.flowSettings.set('rep*', { expiresAfter: '10m' })
    await operator.flowSettings.set('forced', { delay: '1h', force: true })
    const board = await openUnviewed()
    const [both, said, expiring] = [
      await board.post('report', {}),
      await board.post('report', {}, { expiresAfter: '5m' }),
      await board.post('repair', {}, { delay: '30m' }),
    ]
    const timesOf = async ({ uuid }: { readonly uuid: string }) => {
      const { delayedUntil, expiresAt, postedAt } = await operator.find(uuid)
      return [delayedUntil, expiresAt].map((time) => time && (time.getTime() - (postedAt?.getTime() ?? 0)) / 60_000)
    }
    expect(await timesOf(both)).toEqual([undefined, 10])
    expect(await timesOf(said)).toEqual([undefined, 5])
    expect(await timesOf(expiring)).toEqual([30, undefined])
    expect(await rejectionOf(board.post('forced', {}, { expiresAfter: '10m' }))).toMatchObject({
      code: 'JOBBOARD_INVALID_POSTING',
      message: expect.stringContaining('would expire before it could be claimed'),
    })
  })

  test('the first post is done as it was called, whatever its caller does meanwhile', async () => {
    const operator = await openUnviewed()
    await operator.flowSettings.set('report', { queue: 'bulk' })
    const before = await operator.post('before', {})
    const board = await openUnviewed()
    const [store, after] = [{ list: [1] }, [before.uuid]]
    const posting = board.post('report', store, { after })
    store.list.push(2)
    after.length = 0
    const job = await operator.find((await posting).uuid)
    expect(job).toMatchObject({ queue: 'bulk', details: { store: { list: [1] } } })
    expect(await rejectionOf(operator.claim(job))).toMatchObject({ message: expect.stringContaining('it waits for') })
  })

  test('a post that was called before the board is closed is done, also the first one', async () => {
    const operator = await openUnviewed()
    await operator.flowSettings.set('report', { queue: 'bulk' })
    const board = await openUnviewed()
    const posting = board.post('report', {})
    await board.close()
    expect((await operator.find((await posting).uuid)).queue).toBe('bulk')
  })

  test('jobs of schedules have them', async () => {
    const board = await open()
    await board.schedules.put(schedule('plain', { every: '1d' }, 'report', {}))
    await board.schedules.put(
      schedule('said', { every: '1d' }, 'report', {}, { post: { queue: 'mine', maxAttempts: 2 } }),
    )
    await board.flowSettings.set('report', { queue: 'bulk', priority: 'HIGH', maxAttempts: 1 })
    const other = await openUnviewed()
    const [plain, said] = [await other.schedules.trigger('plain'), await other.schedules.trigger('said')]
    const jobs = [await board.find(plain), await board.find(said)]
    expect(jobs.map(({ queue, priority }) => [queue, priority])).toEqual([
      ['bulk', 'HIGH'],
      ['mine', 'HIGH'],
    ])
    const fail = () => Promise.reject(new Error('broken'))
    const ends = []
    for (const job of jobs) ends.push(await (await board.claim(job)).perform(fail))
    expect(ends).toEqual(['trashed', 'abandoned'])
  })

  test('are listed, and each value has its origin', async () => {
    const board = await openUnviewed({ who: 'ada' })
    const { flowSettings } = board
    await flowSettings.set('rep*', {
      maxAttempts: 7,
      keepLogbooks: 'forever',
      removeTrashAfter: '2d',
      keepResults: true,
    })
    await flowSettings.set(
      'report',
      { backOff: { first: '10s' }, queue: 'default', force: true },
      { by: 'bob', reason: 'slow' },
    )
    const [pattern, flow] = await flowSettings.list()
    expect(pattern).toMatchObject({
      ...{ flow: 'rep*', by: 'ada' },
      settings: { maxAttempts: 7, keepLogbooks: 'forever', removeTrashAfter: 172_800_000, keepResults: true },
    })
    expect(flow).toMatchObject({
      ...{ flow: 'report', by: 'bob', reason: 'slow' },
      settings: { backOff: { first: 10_000 }, queue: 'default', force: true },
    })
    expect(await flowSettings.of('report')).toEqual({
      maxAttempts: { value: 7, from: 'rep*', force: false },
      keepLogbooks: { value: 'forever', from: 'rep*', force: false },
      removeTrashAfter: { value: 172_800_000, from: 'rep*', force: false },
      keepResults: { value: true, from: 'rep*', force: false },
      backOff: { value: { first: 10_000 }, from: 'report', force: true },
      queue: { value: 'default', from: 'report', force: true },
    })
    expect(await flowSettings.of('other')).toEqual({})
    await flowSettings.set('report', { queue: 'bulk', backOff: { factor: 3 }, force: false })
    expect((await flowSettings.list())[1]?.settings).toEqual({ backOff: { first: 10_000, factor: 3 }, queue: 'bulk' })
    expect(await flowSettings.unset('report', { keys: ['queue', 'backOff', 'delay'] })).toEqual(['queue', 'backOff'])
    expect((await flowSettings.list()).map((each) => each.flow)).toEqual(['rep*'])
    await flowSettings.set('report', { enabled: false }, { by: 'bob' })
    expect(await rejectionOf(flowSettings.unset('report', { keys: ['queue'], by: 'eve' }))).toBeInstanceOf(NotFound)
    expect((await flowSettings.list())[1]).toMatchObject({ flow: 'report', by: 'bob' })
    await flowSettings.unset('report')
    for (const keys of [['queue'], undefined] as const)
      expect(await rejectionOf(flowSettings.unset('report', keys ? { keys } : {}))).toBeInstanceOf(NotFound)
  })

  test('who has disabled a flow stays known when other settings of the record are changed', async () => {
    const board = await open()
    const { flowSettings } = board
    await flowSettings.set('report', { enabled: false }, { by: 'ann', reason: 'the disk is full' })
    await flowSettings.set('report', { maxAttempts: 7 }, { by: 'bob', reason: 'slow' })
    expect(await flowSettings.list()).toMatchObject([{ by: 'bob', reason: 'slow' }])
    const job = await board.post('report', {})
    await refresh(board)
    expect((await board.waitingFor(job))?.text).toBe('flow report was disabled by ann: the disk is full')
    await flowSettings.set('report', { enabled: true }, { by: 'bob' })
    await flowSettings.set('report', { enabled: false }, { by: 'bob' })
    await refresh(board)
    expect((await board.waitingFor(job))?.text).toBe('flow report was disabled by bob')
  })

  test('what a newer release has set is not changed in part, and stops the jobs of its flows', async () => {
    const board = await open()
    const newer = boardInternals(board).records.of({ ...FLOW_SETTINGS, format: 2 })
    const job = await board.post('report', {})
    await newer.write([{ id: 'rep*', revision: undefined, value: { settings: { queue: 'a' }, by: 'ann', at: 1 } }])
    const refused = [
      () => board.flowSettings.set('rep*', { queue: 'bulk' }),
      () => board.flowSettings.unset('rep*', { keys: ['queue'] }),
      () => board.flowSettings.of('report'),
    ]
    for (const call of refused) expect(await rejectionOf(call())).toBeInstanceOf(IncompatibleVersion)
    expect(await rejectionOf(board.claim(job))).toMatchObject({ message: expect.stringContaining('newer release') })
    await board.flowSettings.unset('rep*')
    expect((await board.claim(job)).run).toBe(1)
  })

  test('what cannot be set is refused with a reason', async () => {
    const { flowSettings } = await openUnviewed()
    const refused = [
      [() => flowSettings.set('report', {}), 'give at least one'],
      [() => flowSettings.set('report', { maxAttempts: 0 }), 'maxAttempts must be'],
      [() => flowSettings.set('report', { queue: '' }), 'queue'],
      [() => flowSettings.set('report', { deadline: 'soon' as '1h' }), 'deadline'],
      [() => flowSettings.set('a*b', { maxAttempts: 1 }), 'one *, at its end'],
      [() => flowSettings.set('', { maxAttempts: 1 }), 'must be a name'],
      [() => flowSettings.set('report', Object({ maxAttempt: 1 })), 'did you mean maxAttempts'],
      [() => flowSettings.set('report', Object({ enabled: 'no' })), 'enabled must be true or false'],
      [() => flowSettings.unset('report', { keys: Object(['queues']) }), 'did you mean queue'],
    ] as const
    for (const [call, text] of refused) {
      const error = await rejectionOf(call())
      expect(error).toBeInstanceOf(InvalidArgument)
      expect(error).toMatchObject({ message: expect.stringContaining(text) })
    }
    expect(await flowSettings.list()).toEqual([])
  })

  test('what a program declares is put, pruned, and stays where it was changed at run time', async () => {
    const board = await openUnviewed()
    const declare = (settings: Parameters<typeof toDeclaredFlowSettings>[0]['declare']) =>
      boardInternals(board).declareFlowSettings(
        toDeclaredFlowSettings({ declare: settings, owner: 'billing', prune: true }),
      )
    await board.flowSettings.set('mine', { queue: 'mine' })
    expect(await declare({ 'a*': { maxAttempts: 2, version: 1 }, b: { queue: 'b' } })).toMatchObject({
      put: ['a*', 'b'],
    })
    await board.flowSettings.set('b', { queue: 'c' })
    expect(await declare({ 'a*': { maxAttempts: 9 }, b: { queue: 'b' } })).toMatchObject({
      newer: ['a*'],
      edited: ['b'],
      pruned: [],
    })
    expect(await declare({ 'a*': { maxAttempts: 3, version: 2 } })).toMatchObject({ put: ['a*'], pruned: ['b'] })
    expect((await board.flowSettings.list()).map(({ flow, settings }) => [flow, settings])).toEqual([
      ['a*', { maxAttempts: 3 }],
      ['mine', { queue: 'mine' }],
    ])
  })
}

export function noFlowSettingsContract({ open }: Place): void {
  test('are refused', async () => {
    const board = await open()
    expect(await rejectionOf(board.flowSettings.set('report', { maxAttempts: 1 }))).toBeInstanceOf(
      UnsupportedCapability,
    )
    expect(await board.post('report', {}, { maxAttempts: 2 })).toMatchObject({ created: true })
  })
}
