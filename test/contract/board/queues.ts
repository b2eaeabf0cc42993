/** Each job is in a queue, and callers claim from the queues that they name; everything else belongs to the board as a whole. */
import { expect, test } from 'vitest'
import type { ClaimNextOptions, JobBoard } from '../../../src/board/index.ts'
import { rejectOnAbort } from '../../../src/core/async/abort.ts'
import { InvalidArgument, InvalidPosting, Timeout } from '../../../src/core/errors.ts'
import { nextEvent, rejectionOf } from '../../board/events.ts'
import { all, namesOn, refresh } from '../../board/jobs.ts'
import type { BoardBackend, Place } from '../board.ts'

export function queuesContract({ openUnviewed, putRaw }: Place, { capabilities, readsAllQueues }: BoardBackend): void {
  const post = async (board: JobBoard, queue: string, names: readonly string[], options = {}) => {
    for (const name of names) await board.post('flow', {}, { name, queue, ...options })
  }
  const claimNames = async (board: JobBoard, options: ClaimNextOptions) =>
    (await board.claimNext({ timeout: '20s', ...options })).map(({ job }) => job.name)
  /** Claims `max` jobs: a call returns fewer while the view reads on. */
  const claimInOrder = async (board: JobBoard, options: ClaimNextOptions & { readonly max: number }) => {
    const names: string[] = []
    while (names.length < options.max)
      names.push(...(await claimNames(board, { ...options, max: options.max - names.length })))
    return names
  }
  const nothingFrom = async (board: JobBoard, queues: ClaimNextOptions['queues'] & object) =>
    expect(await rejectionOf(board.claimNext({ queues, timeout: 0 }))).toBeInstanceOf(Timeout)

  test('a job is in the queue with which it was posted, else in the default one', async () => {
    const [board, other] = [await openUnviewed(), await openUnviewed()]
    const job = await board.post('flow', {}, { queue: 'tenant 7/ä:1' })
    const plain = await board.post('flow', {}, { queue: 'default' })
    expect([job.queue, plain.queue]).toEqual(['tenant 7/ä:1', 'default'])
    expect((await other.find(job.uuid)).queue).toBe('tenant 7/ä:1')
    expect((await other.find(plain.uuid)).queue).toBe('default')
    const listed = await all(other.jobs({ queue: 'tenant 7/ä:1', ensureFresh: true }))
    expect(listed.map(({ uuid }) => uuid)).toEqual([job.uuid])
    expect((await claimNames(other, { queues: ['tenant 7/ä:1'] })).length).toBe(1)
  })

  test('jobs of the first queue come first, and within a queue those of higher priority', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    await post(poster, 'bulk', ['b1', 'b2', 'b3', 'b4', 'b5', 'b6'], { priority: 'VERY_HIGH' })
    await post(poster, 'urgent', ['u1', 'u2'])
    await post(poster, 'urgent', ['u0'], { priority: 'HIGH' })
    await post(poster, 'default', ['d1'])
    const queues = ['urgent', 'bulk']
    expect(await claimInOrder(board, { queues, max: 4 })).toEqual(['u0', 'u1', 'u2', 'b1'])
    await post(poster, 'urgent', ['u3'])
    await refresh(board)
    expect(await claimNames(board, { queues })).toEqual(['u3'])
    expect(await claimInOrder(board, { queues, max: 5 })).toEqual(['b2', 'b3', 'b4', 'b5', 'b6'])
    await nothingFrom(board, ['urgent', 'bulk'])
    expect(await namesOn(poster, { onlyUnclaimed: true })).toEqual(['d1'])
  })

  test('a queue is found behind any number of jobs of others', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    await post(poster, 'default', ['d1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7', 'd8'], { priority: 'HIGH' })
    await post(poster, 'bulk', ['b1', 'b2', 'b3', 'b4', 'b5', 'b6', 'b7', 'b8'], { priority: 'HIGH' })
    await nothingFrom(board, ['urgent'])
    const claiming = claimNames(board, { queues: ['urgent'] })
    await post(poster, 'urgent', ['u1'], { priority: 'VERY_LOW' })
    expect(await claiming).toEqual(['u1'])
    expect(await claimNames(board, { queues: ['default'] })).toEqual(['d1'])
    expect(await claimNames(await openUnviewed(), { queues: ['bulk'], max: 9 })).toHaveLength(8)
    expect(await claimNames(await openUnviewed(), { queues: ['default'], max: 9 })).toHaveLength(7)
  })

  test('weights share the claims between the queues that have jobs', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    const names = (letter: string) => Array.from({ length: 9 }, (_, index) => `${letter}${index}`)
    await post(poster, 'urgent', names('u'))
    await post(poster, 'bulk', names('b'), { priority: 'VERY_HIGH' })
    const queues = { urgent: 3, bulk: 1, empty: 5 }
    const order = [
      ...(await claimInOrder(board, { queues, max: 4 })),
      ...(await claimInOrder(board, { queues, max: 4 })),
    ]
    expect(order.filter((name) => name.startsWith('u'))).toHaveLength(6)
    expect(order.filter((name) => name.startsWith('b'))).toEqual(['b0', 'b1'])
    expect((await claimInOrder(board, { queues, max: 4 })).sort()).toEqual(['b2', 'u6', 'u7', 'u8'])
    // A queue that has the only jobs gets all claims, and the other owes it nothing afterwards.
    expect(await claimInOrder(board, { queues, max: 4 })).toEqual(['b3', 'b4', 'b5', 'b6'])
    await post(poster, 'urgent', ['u9'])
    await refresh(board)
    expect(await claimNames(board, { queues })).toEqual(['u9'])
  })

  test('a pattern stands for all queues with its prefix, also for those that begin later', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    await post(poster, 'tenant-1', ['t1'])
    await post(poster, 'other', ['o1'])
    expect(await claimNames(board, { queues: ['tenant-*'], max: 5 })).toEqual(['t1'])
    const claiming = claimNames(board, { queues: ['tenant-*'] })
    await post(poster, 'tenant-2', ['t2'])
    expect(await claiming).toEqual(['t2'])
    await post(poster, 'tenant-2', ['t3'])
    await refresh(board)
    expect(await claimNames(board, { queues: ['other', '*'], max: 5 })).toEqual(['o1', 't3'])
  })

  test('a caller without patience finds a job of a queue that nobody on its board has served before', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    const names = ['x0', 'x1', 'x2']
    for (const name of names) await post(poster, name, [name])
    using _waiting = await board.view()
    for (const name of names) expect(await claimNames(board, { queues: [name], timeout: 0 })).toEqual([name])
  })

  test('callers of one board object have each its own queues', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    await post(poster, 'a', ['a1', 'a2', 'a3', 'a4', 'a5'])
    await post(poster, 'b', ['b1'])
    await post(poster, 'default', ['d1'])
    expect(await claimNames(board, { queues: ['a'] })).toEqual(['a1'])
    expect(await claimNames(board, { queues: ['b'] })).toEqual(['b1'])
    expect(await claimNames(board, { max: 9 })).toEqual(['a2', 'a3', 'a4', 'a5', 'd1'])
  })

  test('a job that is given back to another queue is claimed there, and there only', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    await post(poster, 'small', ['job'])
    const [claim] = await board.claimNext({ queues: ['small'], timeout: '20s' })
    await claim.abandon({ queue: 'large', failed: true, reason: 'out of memory' })
    await nothingFrom(board, ['small'])
    const there = await openUnviewed()
    const [again] = await there.claimNext({ queues: ['large'], timeout: '20s' })
    expect(again.job).toMatchObject({ name: 'job', queue: 'large', runs: 2 })
    await again.abandon({ queue: 'default' })
    await nothingFrom(there, ['large', 'small'])
    const [last] = await (await openUnviewed()).claimNext({ queues: ['default'], timeout: '20s' })
    expect(last.job).toMatchObject({ queue: 'default', runs: 3 })
    await last.abandon()
    const anew = await openUnviewed()
    expect((await anew.find(last.job.uuid)).queue).toBe('default')
  })

  test('a waiting caller receives a job that is moved into its queue', async () => {
    const [poster, board, waiting] = [await openUnviewed(), await openUnviewed(), await openUnviewed()]
    await post(poster, 'small', ['job'])
    const [claim] = await board.claimNext({ queues: ['small'], timeout: '20s' })
    const claiming = claimNames(waiting, { queues: ['large'] })
    await claim.abandon({ queue: 'large' })
    expect(await claiming).toEqual(['job'])
  })

  test('a job goes back from the trash to its queue, or to another one', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    await post(poster, 'bulk', ['kept', 'moved', 'plain'])
    for (const claim of await board.claimNext({ queues: ['bulk'], max: 3, timeout: '20s' })) await claim.trash()
    const trashed = new Map((await all(board.trashed())).map((job) => [job.name, job]))
    expect(trashed.get('kept')?.queue).toBe('bulk')
    const restore = async (name: string, options = {}) => {
      const job = trashed.get(name)
      if (job) await board.restore(job, options)
    }
    await restore('kept')
    await restore('moved', { queue: 'urgent' })
    await restore('plain', { queue: 'default' })
    expect(await claimNames(await openUnviewed(), { queues: ['bulk'], max: 3 })).toEqual(['kept'])
    expect(await claimNames(await openUnviewed(), { queues: ['urgent'], max: 3 })).toEqual(['moved'])
    expect(await claimNames(await openUnviewed(), { queues: ['default'], max: 3 })).toEqual(['plain'])
    const [job] = trashed.values()
    if (job) expect(await rejectionOf(board.restore(job, { queue: 'a,b' }))).toBeInstanceOf(InvalidArgument)
  })

  test('the history has the queue in which each job has ended', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    await post(poster, 'bulk', ['done', 'trashed', 'cancelled', 'moved', 'home'])
    await post(poster, 'default', ['plain'])
    for await (const job of poster.jobs({ name: 'cancelled', ensureFresh: true })) await poster.cancel(job)
    for (const claim of await board.claimNext({ queues: ['bulk'], max: 4, timeout: '20s' })) {
      if (claim.job.name === 'done') await claim.consume()
      else if (claim.job.name === 'trashed') await claim.trash()
      else await claim.abandon({ queue: claim.job.name === 'moved' ? 'large' : 'default' })
    }
    const rest = { queues: ['large', 'default'], max: 3 }
    for (let left = 3; left > 0; )
      for (const claim of await board.claimNext({ ...rest, timeout: '20s' })) {
        await claim.consume()
        left -= 1
      }
    const ended = (await poster.history()).map(({ name, queue }) => [name, queue] as const)
    expect(Object.fromEntries(ended)).toEqual({
      ...{ done: 'bulk', trashed: 'bulk', cancelled: 'bulk' },
      ...{ moved: 'large', home: 'default', plain: 'default' },
    })
  })

  if (!readsAllQueues)
    test('a caller reads no postings of queues that it does not serve', async () => {
      const [poster, board, other] = [await openUnviewed(), await openUnviewed(), await openUnviewed()]
      // A posting that cannot be read is reported by whoever reads it.
      const id = await putRaw(Buffer.from('no posting'))
      await post(poster, 'urgent', ['u1', 'u2'])
      const errors: string[] = []
      board.on('error', ({ error }) => errors.push(error.message))
      expect(await claimNames(board, { queues: ['urgent'] })).toEqual(['u1'])
      await refresh(board)
      expect(await claimNames(board, { queues: ['urgent'] })).toEqual(['u2'])
      expect(errors).toEqual([])
      const reported = nextEvent(other, 'error')
      await nothingFrom(other, ['default'])
      expect((await reported).error.message).toContain(id)
    })

  test('names and choices that are not valid are refused with one line', async () => {
    const board = await openUnviewed()
    for (const queue of ['', ' x', 'a,b', 'a=1', 'a*', 'a\nb', 'x'.repeat(201), 7, null, '\ud800'])
      expect(await rejectionOf(board.post('flow', {}, { queue: queue as string }))).toBeInstanceOf(InvalidPosting)
    for (const queues of [
      [],
      Array<string>(1).concat('a'),
      {},
      'urgent',
      ['a', 'a'],
      ['a*b'],
      ['a,b'],
      { a: 0 },
      { a: 1.5 },
      { a: '2' },
      [7],
    ])
      expect(await rejectionOf(board.claimNext({ queues: queues as string[], timeout: 0 }))).toBeInstanceOf(
        InvalidArgument,
      )
    expect(await board.countJobs()).toBe(0)
  })

  if (capabilities.release)
    test('a job that is released while its owner moves it is in one queue, and is claimed there', async () => {
      const [poster, board, other] = [await openUnviewed(), await openUnviewed(), await openUnviewed()]
      for (let round = 0; round < 6; round += 1) {
        const job = await poster.post('flow', {}, { queue: 'from' })
        const [claim] = await board.claimNext({ queues: ['from'], timeout: '20s' })
        await Promise.allSettled([other.release(job, { reason: 'by hand' }), claim.abandon({ queue: 'to' })])
        const { queue } = await (await openUnviewed()).find(job.uuid)
        const [again] = await (await openUnviewed()).claimNext({ queues: [queue], timeout: '20s' })
        expect(again.job.uuid).toBe(job.uuid)
        await again.consume()
      }
    })

  if (capabilities.delays) {
    test('a job that is given back to another queue for later is claimed there when it is due', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      await post(poster, 'small', ['job'])
      const [claim] = await board.claimNext({ queues: ['small'], timeout: '20s' })
      await claim.abandon({ queue: 'large', delay: 500 })
      expect(await claimNames(await openUnviewed(), { queues: ['large'] })).toEqual(['job'])
    })

    test('a delayed job of a queue that begins later is claimed by a pattern', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      const stop = new AbortController()
      const found: string[] = []
      // More than a short window reads at once, so that jobs are beyond its horizon.
      for (const delay of [1_200, 1_300, 1_400, 1_500, 60_000, 60_000, 60_000])
        await post(poster, 't-1', ['t-1'], { delay })
      await nothingFrom(board, ['t-*'])
      const working = (async () => {
        for await (const claim of board.claims({ queues: ['t-*'], signal: stop.signal })) {
          found.push(claim.job.name)
          await claim.consume()
          if (found.length === 5) return
        }
      })()
      await post(poster, 't-new', ['t-new'], { delay: 1_600 })
      await rejectOnAbort(working, AbortSignal.timeout(20_000)).catch(() => stop.abort())
      expect(found.sort()).toEqual(['t-1', 't-1', 't-1', 't-1', 't-new'])
    })

    test('a delayed job becomes due in its queue', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      await post(poster, 'bulk', ['b1', 'b2', 'b3', 'b4', 'b5'], { delay: 60_000 })
      await post(poster, 'default', ['d1', 'd2', 'd3', 'd4', 'd5'], { delay: 60_000 })
      await post(poster, 'urgent', ['late'], { delay: 300 })
      await nothingFrom(board, ['urgent'])
      expect(await claimNames(board, { queues: ['urgent'] })).toEqual(['late'])
      await post(poster, 'default', ['d0'], { delay: 300 })
      expect(await claimNames(await openUnviewed(), { queues: ['default'] })).toEqual(['d0'])
    })
  }

  if (capabilities.keys)
    test('a job that is replaced moves to the queue of the new post', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      const key = { name: 'sync', on: 'replace' } as const
      await post(poster, 'bulk', ['first'], { key })
      await nothingFrom(board, ['urgent'])
      const claiming = claimNames(board, { queues: ['urgent'] })
      await post(poster, 'urgent', ['second'], { key })
      expect(await claiming).toEqual(['second'])
      await nothingFrom(await openUnviewed(), ['bulk'])
    })

  if (capabilities.resources) {
    test('a resource is of the board: a job waits for the holder in another queue, and is claimed when that has ended', async () => {
      const [poster, bulk, urgent] = [await openUnviewed(), await openUnviewed(), await openUnviewed()]
      const resources = { exclusive: ['disk'] }
      await nothingFrom(urgent, ['urgent'])
      await post(poster, 'bulk', ['holder'], { resources })
      const [holder] = await bulk.claimNext({ queues: ['bulk'], timeout: '20s' })
      await post(poster, 'urgent', ['waits'], { resources })
      await post(poster, 'urgent', ['free'])
      expect(await claimNames(urgent, { queues: ['urgent'], max: 2 })).toEqual(['free'])
      const claiming = claimNames(urgent, { queues: ['urgent'] })
      await holder.consume()
      expect(await claiming).toEqual(['waits'])
    })

    test('no job waits for one of a queue that its process does not serve', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      const resources = { exclusive: ['disk'] }
      await post(poster, 'bulk', ['before'], { resources, priority: 'VERY_HIGH' })
      await post(poster, 'urgent', ['behind'], { resources })
      expect(await claimNames(board, { queues: ['urgent'] })).toEqual(['behind'])
    })

    test('no job waits for one of a queue that no caller of its process serves any more', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      const resources = { exclusive: ['disk'] }
      // The view is open already, and callers of other queues have come and gone.
      using _view = await board.view()
      await nothingFrom(board, ['bulk'])
      expect(await rejectionOf(board.claimNext({ timeout: 0 }))).toBeInstanceOf(Timeout)
      const claiming = claimNames(board, { queues: ['urgent'] })
      expect(await rejectionOf(board.claimNext({ queues: ['bulk'], timeout: 100 }))).toBeInstanceOf(Timeout)
      await post(poster, 'bulk', ['before'], { resources, priority: 'HIGH' })
      await post(poster, 'urgent', ['behind'], { resources })
      expect(await claiming).toEqual(['behind'])
    })
  }

  if (capabilities.limits)
    test('a queue is paused alone, by somebody, for a reason, until it is resumed', async () => {
      const [poster, board, waiting] = [await openUnviewed(), await openUnviewed(), await openUnviewed()]
      await post(poster, 'bulk', ['b1', 'b2', 'b3'], { limits: 'none' })
      await post(poster, 'urgent', ['u1'])
      const [running] = await board.claimNext({ queues: ['bulk'], timeout: '20s' })
      await poster.pause({ queue: 'bulk', by: 'ann', reason: 'the store is full' })
      expect(poster.paused).toBe(false)
      const pause = { queue: 'bulk', by: 'ann', reason: 'the store is full', since: expect.any(Date) }
      expect(await board.pausedQueues()).toEqual([pause])
      await running.abandon()
      // From here on nobody claims from it, also not who has heard nothing of the pause.
      for (const claimer of [board, waiting, await openUnviewed()]) await nothingFrom(claimer, ['bulk'])
      expect(await claimNames(waiting, { max: 4 })).toEqual(['u1'])
      const job = (await all(poster.jobs())).find(({ name }) => name === 'b2')
      const reason = job && (await poster.waitingFor(job))
      expect(reason).toMatchObject({ kind: 'pause', queue: 'bulk', text: expect.stringContaining('ann') })
      const claiming = claimNames(waiting, { queues: ['bulk'], max: 3 })
      await board.resume({ queue: 'bulk' })
      expect(await claiming).toContain('b1')
      expect(await poster.pausedQueues()).toEqual([])
      expect(await rejectionOf(board.pause({ queue: 'a*' }))).toBeInstanceOf(InvalidArgument)
    })

  if (capabilities.limits)
    test('a pattern whose limit is stopped is among the paused queues, beside those that are paused by their names', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      await post(poster, 'tenant-a', ['a1'])
      await poster.limits.stop('queue/tenant-*', { by: 'ann', reason: 'the night' })
      await poster.limits.stop('tenant-*')
      await poster.pause({ queue: 'tenant-b', by: 'bob' })
      const pattern = { queue: 'tenant-*', by: 'ann', reason: 'the night', since: expect.any(Date) }
      const paused = (await board.pausedQueues()).toSorted((one, other) => (one.by < other.by ? -1 : 1))
      expect(paused).toEqual([pattern, { queue: 'tenant-b', by: 'bob', since: expect.any(Date) }])
      await nothingFrom(board, ['tenant-a'])
      await board.resume({ queue: 'tenant-b' })
      expect(await poster.pausedQueues()).toEqual([pattern])
      await board.limits.resume('queue/tenant-*')
      expect(await poster.pausedQueues()).toEqual([])
      expect(await claimNames(board, { queues: ['tenant-a'] })).toEqual(['a1'])
    })

  if (capabilities.limits)
    test('a queue has a limit of its own, which also holds for jobs that keep no other', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      await poster.limits.set('queue/bulk', { concurrency: 1 })
      await poster.limits.set('*', { concurrency: 100 })
      await post(poster, 'bulk', ['b1', 'b2'], { limits: 'none' })
      await post(poster, 'urgent', ['u1', 'u2'])
      const claims = await board.claimNext({ max: 4, timeout: '20s' })
      expect(claims.map(({ job }) => job.name).sort()).toEqual(['b1', 'u1', 'u2'])
      const claiming = claimNames(board, {})
      await claims.find(({ job }) => job.name === 'b1')?.consume()
      expect(await claiming).toEqual(['b2'])
    })

  if (capabilities.dependencies)
    test('a job after a job of another queue becomes claimable in its own', async () => {
      const [poster, first, second] = [await openUnviewed(), await openUnviewed(), await openUnviewed()]
      const before = await poster.post('flow', {}, { queue: 'bulk' })
      await post(poster, 'urgent', ['after'], { after: [before] })
      await nothingFrom(second, ['urgent'])
      const claiming = claimNames(second, { queues: ['urgent'] })
      const [claim] = await first.claimNext({ queues: ['bulk'], timeout: '20s' })
      await claim.consume()
      expect(await claiming).toEqual(['after'])
    })

  if (capabilities.batches)
    test('a batch counts jobs of several queues, and posts its end to a queue', async () => {
      const [poster, board] = [await openUnviewed(), await openUnviewed()]
      const onDone = { flow: 'flow', name: 'end', queue: 'urgent: ä', delay: 1 } as const
      const batch = await poster.batch({ name: 'import', onDone })
      await post(poster, 'bulk', ['b1'], { batch: batch.uuid })
      await post(poster, 'default', ['d1'], { batch: batch.uuid })
      await batch.seal()
      const claiming = claimNames(board, { queues: ['urgent: ä'] })
      const worker = await openUnviewed()
      for (const claim of await worker.claimNext({ queues: ['bulk', 'default'], max: 2, timeout: '20s' }))
        await claim.consume()
      expect(await claiming).toEqual(['end'])
    })

  test('a view of one queue emits the events of its jobs', async () => {
    const [poster, board] = [await openUnviewed(), await openUnviewed()]
    await post(poster, 'bulk', ['b1', 'b2', 'b3', 'b4'])
    await nothingFrom(board, ['urgent'])
    const claiming = board.claimNext({ queues: ['urgent'], timeout: '20s' })
    const posted = nextEvent(board, 'posted', ({ job }) => job.name === 'u1')
    await post(poster, 'urgent', ['u1'])
    expect((await posted).job.queue).toBe('urgent')
    const [claim] = await claiming
    await claim.consume()
    await refresh(poster)
    expect(await board.countJobs()).toBe(4)
    expect(await namesOn(board)).toEqual(['b1', 'b2', 'b3', 'b4'])
  })
}
