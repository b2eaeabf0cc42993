/** A job that was told to stop, and whose task goes on: the conductor says so, once. */
import { expect, vi } from 'vitest'
import { examineJobs } from '../../../src/cli/doctor/jobs.ts'
import type { Conductor } from '../../../src/conductor/index.ts'
import type { StopIgnored } from '../../../src/conductor/runs/unstopped-jobs.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { input, linear, task, track } from '../../../src/index.ts'
import { workbench } from '../../../src/testing/index.ts'
import { usual as test, variant } from '../../variant.ts'
import { boards, singleTaskFlow, startTestConductor } from '../conducting.ts'

function nextStopIgnored(conductor: Conductor): Promise<StopIgnored> {
  return new Promise((resolve) => conductor.on('stopIgnored', resolve))
}

test('a task past its deadline, or cancelled, that does not stop is reported with its name and why', async () => {
  const [begun, free] = [createDeferred(), createDeferred()]
  const hang = task('hang', {
    execute: async () => {
      begun.resolve()
      await free.promise
    },
  })
  const flow = linear('hang', input<object>(), hang)
  await using bench = await workbench({ flows: [flow] })
  const { board, persistence, clock } = bench
  const conductor = await startTestConductor({ board, persistence, flows: [flow] })
  const events: StopIgnored[] = []
  conductor.on('stopIgnored', (event) => events.push(event))
  const unheeded = nextStopIgnored(conductor)
  const job = await board.post(flow, {}, { deadline: '3s' })
  await begun.promise
  clock.advance('3s')
  expect(events).toEqual([])
  clock.advance('10s')
  const event = await unheeded
  expect(event).toMatchObject({ run: 1, tasks: ['hang'], reason: expect.stringContaining('not done within 3000 ms') })
  expect(event.job.uuid).toBe(job.uuid)
  clock.advance('1h')
  expect(events).toHaveLength(1)
  free.resolve()
})

variant('a slot that a task keeps after its job was released is shown until the task ends', async () => {
  const [begun, free] = [createDeferred(), createDeferred()]
  const hang = singleTaskFlow('hang', async () => {
    begun.resolve()
    await free.promise
  })
  const [here, there] = await boards('here', 'there')
  await startTestConductor({ board: there, persistence: 'memory:', flows: [hang], concurrency: 4, name: 'worker' })
  const job = await here.post('hang', { n: 1 })
  await begun.promise
  await here.pause()
  await here.release(job)
  const examine = async () => {
    const found = await examineJobs({ board: here, unreadable: [], stuckAfter: 3_600_000 })
    return found.flatMap(({ about, text }) => (about === 'slots' ? [text] : []))
  }
  const kept = `worker: tasks of jobs that it has given back or lost ignore ctx.signal, and keep 1 of 4 slots: ${job.uuid}`
  await expect.poll(examine, { timeout: 60_000 }).toEqual([kept])
  free.resolve()
  await expect.poll(examine, { timeout: 60_000 }).toEqual([])
})

test('one that heeds its signal, and reverts for long, is not reported', async () => {
  const [begun, reverting, free] = [createDeferred(), createDeferred(), createDeferred()]
  const slow = task('slow', {
    execute: async (_args, { signal }) => {
      begun.resolve()
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
    revert: async () => {
      reverting.resolve()
      await free.promise
    },
  })
  const flow = linear('slow', input<object>(), slow)
  await using bench = await workbench({ flows: [flow] })
  const { board, persistence, clock } = bench
  const conductor = await startTestConductor({ board, persistence, flows: [flow] })
  const events: StopIgnored[] = []
  conductor.on('stopIgnored', (event) => events.push(event))
  const job = await board.post(flow, {})
  await begun.promise
  await board.cancel(job)
  await reverting.promise
  clock.advance('1h')
  free.resolve()
  expect(await job.wait()).toBe('TRASHED')
  expect(events).toEqual([])
})

test.each([
  ['of conductors', { defaultDeadline: '3s' }, {}, {}],
  ['of the job', {}, { deadline: '3s' }, {}],
  ['of the task', {}, {}, { deadline: '3s' }],
] as const)(
  'a job whose task ignores a deadline %s is given back as failed; the task keeps its slot, and writes no more',
  async (_of, ofConductor, ofJob, ofTask) => {
    const ends: (() => void)[] = []
    const begun = [createDeferred(), createDeferred()] as const
    const unstoppable = task('unstoppable', {
      ...ofTask,
      provides: 'run',
      execute: async (_args, { run }) => {
        const free = createDeferred()
        ends.push(free.resolve)
        begun[run - 1]?.resolve()
        await free.promise
        return run
      },
    })
    const flow = linear('unstoppable', input<object>(), unstoppable)
    await using bench = await workbench({ flows: [flow] })
    const { board, persistence, clock } = bench
    const options = { board, persistence, flows: [flow], concurrency: 1 }
    const conductor = await startTestConductor({ ...options, ...ofConductor })
    const settled = new Promise((resolve) => conductor.on('settled', resolve))
    const events: StopIgnored[] = []
    conductor.on('stopIgnored', (event) => events.push(event))
    const job = await board.post(flow, {}, ofJob)
    await begun[0].promise
    clock.advance('3s')
    clock.advance('10s')
    expect(await settled).toMatchObject({ run: 1, settled: 'abandoned', failure: { code: 'JOBBOARD_TIMEOUT' } })
    expect([job.state, conductor.running]).toEqual(['UNCLAIMED', 1])
    expect(events).toMatchObject([{ run: 1, tasks: ['unstoppable'] }])
    // Another conductor does it, and what the first run returns in the end is not recorded.
    await startTestConductor({ ...options, name: 'other' })
    clock.advance('1h')
    await begun[1].promise
    ends[0]?.()
    await vi.waitFor(() => expect(conductor.running).toBe(0), 60_000)
    ends[1]?.()
    expect(await job.wait()).toBe('COMPLETE')
    expect(await track(job.uuid, { board, persistence })).toMatchObject({ status: 'done', results: { unstoppable: 2 } })
  },
)

test('a deadline is kept although the job was cancelled before, and its task ignores both', async () => {
  const [begun, free] = [createDeferred(), createDeferred()]
  const hang = task('hang', {
    execute: async () => {
      begun.resolve()
      await free.promise
    },
  })
  const flow = linear('hang', input<object>(), hang)
  await using bench = await workbench({ flows: [flow] })
  const { board, persistence, clock } = bench
  const conductor = await startTestConductor({ board, persistence, flows: [flow] })
  const events: StopIgnored[] = []
  conductor.on('stopIgnored', (event) => events.push(event))
  const settled = new Promise((resolve) => conductor.on('settled', resolve))
  const job = await board.post(flow, {}, { deadline: '30s' })
  await begun.promise
  await board.cancel(job)
  clock.advance('10s')
  expect(events).toHaveLength(1)
  clock.advance('20s')
  clock.advance('10s')
  expect(await settled).toMatchObject({ run: 1, failure: { code: 'JOBBOARD_TIMEOUT' } })
  expect(events).toHaveLength(1)
  free.resolve()
  await vi.waitFor(() => expect(conductor.running).toBe(0), 60_000)
})
