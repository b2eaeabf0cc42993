/** What conductors do with jobs: each row of the decision table made to happen, take-overs, slots, stops. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { JobBoard } from '../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../src/board/backends/memory/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { createDeferred, type Deferred } from '../../src/core/async/abort.ts'
import { Duplicate, NotConnected } from '../../src/core/errors.ts'
import { input, linear, openPersistence, startConductor, task } from '../../src/index.ts'
import { refresh } from '../board/jobs.ts'
import { overrideRole } from '../board/override-role.ts'
import { boards, listTrash, singleTaskFlow, startTestConductor } from './conducting.ts'

test('a settle that does not go through is tried until it does', async () => {
  const backend = new MemoryBackend({ uri: 'memory:flaky', space: memorySpace('') })
  let refusals = 3
  overrideRole(backend, 'claims', (claims) => ({
    settle: async (settlement) => {
      refusals -= 1
      if (refusals >= 0) throw new NotConnected('away')
      return claims.settle(settlement)
    },
  }))
  await using board = new JobBoard(backend)
  await boardInternals(board).open()
  const fine = singleTaskFlow('fine', () => 1)
  const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine] })
  const job = await board.post(fine, { n: 1 })
  expect(await job.wait()).toBe('COMPLETE')
  expect(refusals).toBe(-1)
  await conductor.stop()
})

describe('owners that go', () => {
  test('the session ends in the middle: stopped at once, nothing written, the next owner goes on where it stopped', async () => {
    const space = memorySpace('')
    const backend = new MemoryBackend({ uri: 'memory:', space })
    await using mortal = new JobBoard(backend, { who: 'mortal' })
    await boardInternals(mortal).open()
    await using nextOwners = new JobBoard(new MemoryBackend({ uri: 'memory:', space }), { who: 'next-owner' })
    await boardInternals(nextOwners).open()
    const persistence = await openPersistence('memory:')
    const ran: string[] = []
    const reached = createDeferred()
    const release = createDeferred()
    let signal: AbortSignal | undefined
    const first = task('first', { provides: 'a', execute: async (_: object, ctx) => ran.push(`first ${ctx.run}`) })
    const second = task('second', {
      execute: async (_: object, ctx) => {
        ran.push(`second ${ctx.run}`)
        if (ctx.run > 1) return
        signal = ctx.signal
        reached.resolve()
        await release.promise
      },
    })
    const flow = linear('steps', input(), first, second)
    const dying = await startTestConductor({ board: mortal, persistence, flows: [flow], name: 'dying', concurrency: 1 })
    const job = await nextOwners.post(flow, {})
    await reached.promise
    const lost = new Promise<string>((resolve) => dying.on('settled', ({ settled }) => resolve(settled)))
    backend.expireSession()
    expect(signal?.aborted).toBe(true)
    expect(await lost).toBe('lost')
    expect(dying.running).toBe(1)
    // The former owner lives, and shows that on the board: its attempt is not taken for a death.
    while ((await nextOwners.entities('jobboard-owner')).length === 0) await refresh(nextOwners)
    await startTestConductor({ board: nextOwners, persistence, flows: [flow], name: 'next-owner' })
    expect(await job.wait()).toBe('COMPLETE')
    expect(ran).toEqual(['first 1', 'second 1', 'second 2'])
    expect(job.attempts.map(({ who, ended }) => [who, ended])).toEqual([
      ['mortal', 'returned'],
      ['next-owner', undefined],
    ])
    release.resolve()
    await dying.stop()
    expect(dying.running).toBe(0)
  })

  test('a job whose former run still executes here is not claimed here a second time', async () => {
    const backend = new MemoryBackend({ uri: 'memory:', space: memorySpace('') })
    await using board = new JobBoard(backend, { who: 'only' })
    await boardInternals(board).open()
    const reached = createDeferred()
    const release = createDeferred()
    let executing = 0
    let most = 0
    const unstoppable = singleTaskFlow('unstoppable', async () => {
      executing += 1
      most = Math.max(most, executing)
      reached.resolve()
      await release.promise
      executing -= 1
    })
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [unstoppable], concurrency: 4 })
    const job = await board.post(unstoppable, { n: 1 })
    await reached.promise
    const settled = new Promise((resolve) => conductor.on('settled', resolve))
    backend.expireSession()
    await settled
    await board.wait()
    expect([job.state, conductor.running]).toEqual(['UNCLAIMED', 1])
    release.resolve()
    expect(await job.wait()).toBe('COMPLETE')
    expect(most).toBe(1)
  })

  test('two jobs of one uuid, as a repeated post may leave them, both end, and a done task is not repeated', async () => {
    const [board] = await boards('a')
    let runs = 0
    const once = singleTaskFlow('once', () => {
      runs += 1
    })
    const job = await board.post(once, { n: 1 })
    const again = await board.post(once, { n: 1 }, { uuid: job.uuid })
    await startTestConductor({ board, persistence: 'memory:', flows: [once], concurrency: 4 })
    expect(await Promise.all([job.wait(), again.wait()])).toEqual(['COMPLETE', 'COMPLETE'])
    expect(runs).toBe(1)
  })
})

test.each(['memory:', 'directory'])(
  'a uuid that was posted before with another flow, logbooks in %s',
  async (where) => {
    const [board] = await boards('a')
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-conductor-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const persistence = await openPersistence(where === 'directory' ? `directory:${folder}` : where)
    let ran = false
    const first = singleTaskFlow('first', () => 1)
    const second = singleTaskFlow('second', () => {
      ran = true
    })
    await startTestConductor({ board, persistence, flows: [first, second] })
    const job = await board.post(first, { n: 1 })
    expect(await job.wait()).toBe('COMPLETE')
    const again = await board.post(second, { n: 1 }, { uuid: job.uuid })
    expect(await again.wait()).toBe('TRASHED')
    expect(ran).toBe(false)
    const [trashed] = await listTrash(board)
    expect(trashed?.reason).toBe(
      `job ${job.uuid} (second): it names flow second, but the logbook of this uuid belongs to flow first; post it with another uuid`,
    )
  },
)

describe('slots', () => {
  test('never more jobs at once than slots, and never more claims', async () => {
    const [board] = await boards('a')
    let executing = 0
    let most = 0
    let claimed = 0
    const gates: Deferred<void>[] = []
    const busy = singleTaskFlow('busy', async () => {
      executing += 1
      most = Math.max(most, executing)
      for await (const job of board.jobs()) if (job.state === 'CLAIMED') claimed = Math.max(claimed, executing)
      const gate = createDeferred()
      gates.push(gate)
      if (gates.length % 3 === 0) for (const open of gates.splice(0)) open.resolve()
      await gate.promise
      executing -= 1
    })
    await startTestConductor({ board, persistence: 'memory:', flows: [busy], concurrency: 3 })
    const jobs = await Promise.all(Array.from({ length: 30 }, (_, n) => board.post(busy, { n })))
    await Promise.all(jobs.map((job) => job.wait()))
    expect(most).toBe(3)
    expect(claimed).toBeLessThanOrEqual(3)
  })
})

test('reconfigure: more jobs run at once, then fewer, and running jobs go on', async () => {
  const [board] = await boards('a')
  const begun = [0, 1, 2, 3].map(() => createDeferred())
  const ends = [0, 1, 2, 3].map(() => createDeferred())
  const waits = singleTaskFlow('waits', async ({ n }) => {
    begun[n]?.resolve()
    await ends[n]?.promise
  })
  const jobs = []
  for (const n of [0, 1, 2, 3]) jobs.push(await board.post(waits, { n }))
  const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [waits], concurrency: 1 })
  await begun[0]?.promise
  expect(conductor.running).toBe(1)
  await conductor.reconfigure({ concurrency: 3 })
  await Promise.all([begun[1]?.promise, begun[2]?.promise])
  expect([conductor.running, jobs[3]?.state]).toEqual([3, 'UNCLAIMED'])
  await conductor.reconfigure({ concurrency: 1 })
  for (const n of [0, 1]) {
    ends[n]?.resolve()
    expect(await jobs[n]?.wait()).toBe('COMPLETE')
  }
  await refresh(board)
  expect([conductor.running, jobs[3]?.state]).toEqual([1, 'UNCLAIMED'])
  ends[2]?.resolve()
  await begun[3]?.promise
  ends[3]?.resolve()
  expect(await jobs[3]?.wait()).toBe('COMPLETE')
  for (const concurrency of [0, Number.NaN, 1.5, '3' as never])
    await expect(conductor.reconfigure({ concurrency })).rejects.toThrow(
      `concurrency must be a whole number from 1, got ${concurrency}`,
    )
  for (const nothing of [undefined, null, 3, []])
    await expect(conductor.reconfigure(nothing as never)).rejects.toThrow('reconfigure: the options must be an object')
  await conductor.stop()
  await expect(conductor.reconfigure({ concurrency: 2 })).rejects.toThrow(/is stopped, not running/)
})

describe('stopping', () => {
  test('drains: what runs may finish, nothing new is claimed', async () => {
    const [board] = await boards('a')
    const reached = createDeferred()
    const release = createDeferred()
    const slow = singleTaskFlow('slow', async () => {
      reached.resolve()
      await release.promise
    })
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [slow], concurrency: 1 })
    const job = await board.post(slow, { n: 1 })
    const waiting = await board.post(slow, { n: 2 })
    await reached.promise
    const stopped = conductor.stop()
    expect(conductor.state).toBe('draining')
    release.resolve()
    await stopped
    expect([job.state, waiting.state, conductor.state]).toEqual(['COMPLETE', 'UNCLAIMED', 'stopped'])
    expect(await board.entities('conductor')).toEqual([])
  })

  test('aborts what does not finish: suspended, given back uncharged, gone on with by another', async () => {
    const [board] = await boards('a')
    const persistence = await openPersistence('memory:')
    const reached = createDeferred()
    const ran: string[] = []
    const first = task('first', { execute: async (_: object, ctx) => ran.push(`first ${ctx.run}`) })
    const second = task('second', {
      execute: async (_: object, ctx) => {
        ran.push(`second ${ctx.run}`)
        if (ctx.run > 1) return
        reached.resolve()
        await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
      },
    })
    const flow = linear('steps', input(), first, second)
    const conductor = await startTestConductor({ board, persistence, flows: [flow], drainTimeout: 0 })
    const job = await board.post(flow, {}, { maxAttempts: 1 })
    await reached.promise
    await conductor.stop()
    expect(job.state).toBe('UNCLAIMED')
    expect((await persistence.getBook(job.uuid)).flows[0]?.state).toBe('SUSPENDED')
    await startTestConductor({ board, persistence, flows: [flow], name: 'next' })
    expect(await job.wait()).toBe('COMPLETE')
    expect(job.attempts[0]?.ended).toBe('returned')
    expect(ran).toEqual(['first 1', 'second 1', 'second 2'])
  })

  test('a task that does not heed its signal is left behind, and cannot write any more', async () => {
    const [board] = await boards('a')
    const persistence = await openPersistence('memory:')
    const reached = createDeferred()
    const release = createDeferred()
    const unstoppable = singleTaskFlow('unstoppable', async ({ n }) => {
      reached.resolve()
      await release.promise
      return n
    })
    const limits = { drainTimeout: 0, abortTimeout: 0 } as const
    const conductor = await startTestConductor({ board, persistence, flows: [unstoppable], ...limits })
    const job = await board.post(unstoppable, { n: 1 })
    await reached.promise
    await conductor.stop()
    expect([job.state, conductor.running]).toEqual(['UNCLAIMED', 1])
    release.resolve()
    const [flow] = (await persistence.getBook(job.uuid)).flows
    expect(flow).toMatchObject({ state: 'RUNNING', atoms: [{ state: 'RUNNING' }] })
  })

  test('what it opened is closed, what it was given is left open', async () => {
    const [board] = await boards('a')
    const fine = singleTaskFlow('fine', () => 1)
    const given = await startConductor({ board, persistence: 'memory:', flows: [fine] })
    await given.stop()
    await given.stop()
    expect(board.connected).toBe(true)
    const opened = await startConductor({ board: 'memory:', persistence: 'memory:', flows: [fine] })
    await opened.stop()
    expect(opened.state).toBe('stopped')
  })
})

test('a conductor shows itself on the board, and two of one name on two boards are refused', async () => {
  const [board, other] = await boards('a', 'b')
  const fine = singleTaskFlow('fine', () => 1)
  await startTestConductor({ board, persistence: 'memory:', flows: [fine], name: 'twin' })
  const [entity] = await other.entities('conductor')
  expect(entity).toMatchObject({ name: 'twin', metadata: { pid: process.pid, flows: ['fine'] } })
  const twin = startConductor({ board: other, persistence: 'memory:', flows: [fine], name: 'twin' })
  await expect(twin).rejects.toBeInstanceOf(Duplicate)
})
