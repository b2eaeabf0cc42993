/** A flow in the foreground that holds what a job would hold. */
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import type { Job } from '../../src/board/index.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { ClaimLost, Duplicate, InvalidArgument, SealedLogbook, Timeout } from '../../src/core/errors.ts'
import { encrypted, input, linear, openPersistence, type RunFlowOptions, runFlow, task } from '../../src/index.ts'
import { zookeeperBoards } from '../board/boards.ts'
import { all, refresh } from '../board/jobs.ts'
import { boards, listTrash, singleTaskFlow, startTestConductor } from './conducting.ts'

const disk = { resources: { exclusive: ['disk'] } }

test('it waits for resources that a job holds, and jobs wait for those that it holds', async () => {
  const [board, other] = await boards('a', 'b')
  const [reached, release] = [createDeferred(), createDeferred()]
  const order: string[] = []
  const slow = singleTaskFlow('slow', async () => {
    reached.resolve()
    await release.promise
    order.push('job before')
  })
  const quick = singleTaskFlow('quick', () => void order.push('job behind'))
  await startTestConductor({ board: other, persistence: 'memory:', flows: [slow, quick] })
  await board.post(slow, { n: 1 }, disk)
  await reached.promise
  let fence: bigint | undefined
  const told = task('told', {
    provides: 'run',
    execute: async (_: object, ctx) => {
      fence = ctx.fence
      await board.post(quick, { n: 1 }, disk)
      order.push('foreground')
      return ctx.job?.name
    },
  })
  const running = runFlow(linear('told', input(), told), {}, { board, job: { name: 'by hand', ...disk } })
  expect(order).toEqual([])
  release.resolve()
  expect(await running).toEqual({ results: { run: 'by hand' } })
  expect(typeof fence).toBe('bigint')
  for await (const job of board.jobs({ ensureFresh: true })) await job.wait()
  expect(order).toEqual(['job before', 'foreground', 'job behind'])
})

test('a flow that fails is for its caller to hear of, and its job has left the board', async () => {
  const [board] = await boards('a')
  const failing = singleTaskFlow('failing', () => {
    throw new Error('no paper')
  })
  await expect(runFlow(failing, { n: 1 }, { board, job: disk })).rejects.toThrow('no paper')
  expect([await board.countJobs(), await listTrash(board)]).toEqual([0, []])
  const stuck = task('stuck', {
    execute: () => {
      throw new Error('no paper')
    },
    revert: () => {
      throw new Error('no way back')
    },
  })
  await expect(runFlow(linear('stuck', input(), stuck), {}, { board })).rejects.toThrow('no way back')
  expect((await listTrash(board)).map(({ reason }) => reason)).toEqual([expect.stringContaining('no way back')])
})

test('one that is asked to stop is suspended, and a conductor goes on with it', async () => {
  const [board, other] = await boards('a', 'b')
  const persistence = await openPersistence('memory:')
  const ran: string[] = []
  const stop = new AbortController()
  const first = task('first', {
    execute: () => {
      ran.push('first')
      stop.abort(new Error('enough'))
    },
  })
  const flow = linear('two', input(), first, task('second', { execute: () => void ran.push('second') }))
  await expect(runFlow(flow, {}, { board, persistence, signal: stop.signal })).rejects.toThrow('enough')
  const [job] = await all(other.jobs({ ensureFresh: true }))
  await startTestConductor({ board: other, persistence, flows: [flow] })
  expect(await job?.wait()).toBe('COMPLETE')
  expect(ran).toEqual(['first', 'second'])
})

test('what it opened is closed, and a claim that was lost is reported', async () => {
  const fine = singleTaskFlow('fine', ({ n }) => n)
  expect(await runFlow(fine, { n: 7 }, { board: 'memory:' })).toEqual({ results: { out: 7 } })
  const [board] = await boards('a')
  const closing = singleTaskFlow('closing', () => board.close())
  await expect(runFlow(closing, { n: 1 }, { board })).rejects.toBeInstanceOf(ClaimLost)
})

test('what cannot begin is reported, and leaves nothing on the board', async () => {
  const [board, other] = await boards('a', 'b')
  const fine = singleTaskFlow('fine', ({ n }) => n)
  await other.post('else', {}, { ...disk, key: 'one' })
  await other.claimNext()
  await refresh(board)
  await expect(runFlow(fine, { n: 1 }, { board, job: { ...disk, timeout: 1 } })).rejects.toBeInstanceOf(Timeout)
  await expect(runFlow(fine, { n: 1 }, { board, job: { key: 'one' } })).rejects.toBeInstanceOf(Duplicate)
  const odd: RunFlowOptions = { board: 7 } as object
  await expect(runFlow(fine, { n: 1 }, odd)).rejects.toBeInstanceOf(InvalidArgument)
  await refresh(board)
  expect(await board.countJobs()).toBe(1)
})

test('a conductor on the same board leaves its job to it', async () => {
  const [board] = await boards('a')
  const [reached, release] = [createDeferred(), createDeferred()]
  const flow = singleTaskFlow('flow', ({ n }) => n)
  const slow = singleTaskFlow('slow', async () => {
    reached.resolve()
    await release.promise
  })
  const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [flow, slow], concurrency: 4 })
  const settled: string[] = []
  conductor.on('settled', ({ job }) => settled.push(job.name))
  await board.post(slow, { n: 1 }, disk)
  await reached.promise
  const running = runFlow(flow, { n: 7 }, { board, job: disk })
  await refresh(board)
  release.resolve()
  expect(await running).toEqual({ results: { out: 7 } })
  expect(settled).toEqual(['slow'])
})

test('a job that is cancelled while it waits for its turn is reported to its caller', async () => {
  const [board, other] = await boards('a', 'b')
  await other.post('else', {}, disk)
  await other.claimNext()
  const posted = new Promise<Job>((resolve) => board.on('posted', ({ job }) => job.name === 'mine' && resolve(job)))
  const flow = singleTaskFlow('flow', ({ n }) => n)
  const running = runFlow(flow, { n: 7 }, { board, job: { ...disk, name: 'mine' } })
  const told = expect(running).rejects.toThrow(/left the board while it waited/)
  await board.cancel(await posted)
  await told
})

test('its session may end while it waits: the job is claimed in the next', async () => {
  const place = await zookeeperBoards.place()
  onTestFinished(() => place[Symbol.asyncDispose]())
  const [board, other] = [await place.open({ who: 'a' }), await place.open({ who: 'b' })]
  onTestFinished(async () => void (await Promise.all([board.close(), other.close()])))
  await other.post('else', {}, disk)
  const [claim] = await other.claimNext()
  await refresh(board)
  const posted = new Promise<Job>((resolve) => board.on('posted', ({ job }) => job.name === 'mine' && resolve(job)))
  const running = runFlow(
    singleTaskFlow('flow', ({ n }) => n),
    { n: 7 },
    { board, job: { ...disk, name: 'mine' } },
  )
  await posted
  await place.expire(board)
  await claim.consume()
  expect(await running).toEqual({ results: { out: 7 } })
})

test('asked to stop before it began: nothing is posted', async () => {
  const [board] = await boards('a')
  const reason = new Error('enough')
  const running = runFlow(
    singleTaskFlow('flow', ({ n }) => n),
    { n: 7 },
    { board, signal: AbortSignal.abort(reason) },
  )
  await expect(running).rejects.toBe(reason)
  expect([await board.countJobs(), await listTrash(board)]).toEqual([0, []])
})

test('what it keeps goes through its codec', async () => {
  const uri = `memory:run-flow-${process.pid}`
  const codec = encrypted({ key: randomBytes(32) })
  await using keyless = await openPersistence(uri)
  await using owner = await openPersistence(uri, { codec })
  await runFlow(
    singleTaskFlow('secret', () => 'the combination'),
    { n: 1 },
    { persistence: uri, codec },
  )
  for await (const { uuid } of owner.listBooks()) {
    const { flows } = await owner.getBook(uuid)
    expect(flows.map(({ atoms }) => atoms.map(({ result }) => result))).toEqual([['the combination']])
    await expect(keyless.getBook(uuid)).rejects.toThrow(SealedLogbook)
  }
  expect.assertions(2)
})
