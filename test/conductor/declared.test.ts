/** A conductor never runs a job without the resources and limits that its flow declares, however the job was posted. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { JobBoard } from '../../src/board/api/job-board.ts'
import { MemoryBackend, MemorySpace } from '../../src/board/backends/memory/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { LimitReached, Unclaimable, UnsupportedCapability } from '../../src/core/errors.ts'
import {
  type Conductor,
  input,
  linear,
  type PostingDefaults,
  runFlow,
  type Settled,
  schedule,
  task,
} from '../../src/index.ts'
import { rejectionOf } from '../board/events.ts'
import { boards, listTrash, startTestConductor } from './conducting.ts'

type Store = { repo: string }

/** A board without resources and limits, like a board that is shared with TaskFlow. */
class BareBackend extends MemoryBackend {
  override readonly shared = true
}

/** A flow whose task does `run`, and what it declares. */
const publishing = (posting: PostingDefaults<Store>, run: (store: Store) => unknown = () => undefined) => {
  const only = task('only', { requires: ['repo'], execute: async (store: Store) => void (await run(store)) })
  return linear({ name: 'publish', posting }, input<Store>(), only)
}

const DECLARED: PostingDefaults<Store> = {
  resources: ({ repo }) => ({ exclusive: [repo] }),
  limits: ({ repo }) => [`repo/${repo}`],
}

async function conductors(flow: ReturnType<typeof publishing>, board: JobBoard) {
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [flow], log })
  return { conductor, lines, settled: settledBy(conductor) }
}

function settledBy(conductor: Conductor): Settled[] {
  const settled: Settled[] = []
  conductor.on('settled', (event) => settled.push(event.settled))
  return settled
}

test('a job that was posted by name is given back once, and runs with its locks, uncharged', async () => {
  const [board, other] = await boards('conductor', 'other')
  await other.limits.set('repo/*', { concurrency: 1 })
  const refused: unknown[] = []
  const flow = publishing(DECLARED, async ({ repo }) => {
    const wants = [{ resources: { exclusive: [repo] } }, { limits: [`repo/${repo}`] }]
    for (const options of wants) refused.push(await rejectionOf(other.claim(await other.post('loop', {}, options))))
  })
  const { conductor, lines, settled } = await conductors(flow, board)
  const job = await other.post('publish', { repo: 'fedora' })
  expect(await job.wait()).toBe('COMPLETE')
  expect(refused).toEqual([expect.any(Unclaimable), expect.any(LimitReached)])
  await conductor.stop()
  expect(settled).toEqual(['abandoned', 'consumed'])
  expect(lines).toMatchObject([
    {
      job: job.uuid,
      because: 'it was posted without resources or limits that its flow declares',
      msg: expect.stringContaining('job is given back'),
    },
  ])
})

test('a job that was posted with the code of the flow runs at once', async () => {
  const [board] = await boards('conductor')
  const flow = publishing(DECLARED)
  const { conductor, settled } = await conductors(flow, board)
  expect(await (await board.post(flow, { repo: 'fedora' })).wait()).toBe('COMPLETE')
  await conductor.stop()
  expect(settled).toEqual(['consumed'])
})

test('while another job holds the resource, a job that was posted by name waits for it', async () => {
  const [board, other] = await boards('conductor', 'other')
  const held = await other.claim(await other.post('hold', {}, { resources: { exclusive: ['fedora'] } }))
  let runs = 0
  const { conductor } = await conductors(
    publishing(DECLARED, () => {
      runs += 1
    }),
    board,
  )
  const job = await other.post('publish', { repo: 'fedora' }, { limits: 'none' })
  await new Promise((resolve) => conductor.on('settled', resolve))
  await other.find(job.uuid)
  using _view = await other.view()
  expect(await other.waitingFor(job)).toMatchObject({ kind: 'resource' })
  expect(runs).toBe(0)
  await held.consume()
  expect(await job.wait()).toBe('COMPLETE')
  expect(runs).toBe(1)
})

test('the declarations are those for the store as the schema returns it', async () => {
  const [board, other] = await boards('conductor', 'other')
  const held: unknown[] = []
  const store = z.object({ repo: z.string().default('fedora') })
  const flow = linear(
    { name: 'publish', posting: { resources: ({ repo }) => ({ exclusive: [repo] }) } },
    input(store),
    task('only', {
      requires: ['repo'],
      execute: async (_: { repo: string }, { job }) => void held.push((await other.find(job?.uuid ?? '')).resources),
    }),
  )
  await startTestConductor({ board, persistence: 'memory:', flows: [flow] })
  expect(await (await other.post('publish', {})).wait()).toBe('COMPLETE')
  expect(held).toEqual([{ exclusive: ['fedora'] }])
})

test('a function with a new result at each claim: the job is trashed after some, with the reason', async () => {
  const [board] = await boards('conductor')
  let number = 0
  const flow = publishing({
    resources: () => {
      number += 1
      return { exclusive: [`r${number}`] }
    },
  })
  const { conductor, settled } = await conductors(flow, board)
  expect(await (await board.post(flow, { repo: 'fedora' })).wait()).toBe('TRASHED')
  await conductor.stop()
  expect(settled).toEqual([...Array.from({ length: 8 }, () => 'abandoned'), 'trashed'])
  const [trashed] = await listTrash(board)
  expect(trashed?.reason).toContain('flow publish declares other resources or limits at each claim')
})

test('a function that throws is broken code, not a bad job: the job is tried again', async () => {
  const [board] = await boards('conductor')
  let isBroken = true
  const flow = publishing({
    resources: ({ repo }) => {
      if (isBroken) throw new TypeError('not yet')
      return { shared: [repo] }
    },
  })
  const job = await board.post('publish', { repo: 'fedora' }, { backOff: { first: 1 } })
  const { conductor, settled } = await conductors(flow, board)
  conductor.on('settled', ({ failure }) => {
    if (isBroken) expect(failure?.message).toContain('flow publish: posting.resources has thrown')
    isBroken = false
  })
  expect(await job.wait()).toBe('COMPLETE')
  await conductor.stop()
  expect(settled).toEqual(['abandoned', 'abandoned', 'consumed'])
})

test('more resources than a job can own: it is trashed, with the reason', async () => {
  const [board] = await boards('conductor')
  const many = Array.from({ length: 256 }, (_, number) => `r${number}`)
  await conductors(publishing(DECLARED), board)
  const job = await board.post('publish', { repo: 'fedora' }, { resources: { exclusive: many } })
  expect(await job.wait()).toBe('TRASHED')
  expect((await listTrash(board))[0]?.reason).toContain('resources has 257 names')
})

test('a board that has no resources: the job is trashed, with the reason', async () => {
  const backend = new BareBackend({ uri: 'memory:', space: new MemorySpace() })
  await using board = new JobBoard(backend)
  await boardInternals(board).open()
  let runs = 0
  const flow = publishing(DECLARED, () => {
    runs += 1
  })
  await conductors(flow, board)
  expect(await rejectionOf(board.post(flow, { repo: 'fedora' }))).toBeInstanceOf(UnsupportedCapability)
  expect(await (await board.post('publish', { repo: 'fedora' })).wait()).toBe('TRASHED')
  const [trashed] = await listTrash(board)
  expect(trashed?.reason).toContain('the resources or limits that its flow declares cannot be added: ')
  expect(trashed?.reason).toContain('memory: does not support resources')
  expect(runs).toBe(0)
})

test('runFlow on a board holds the resources, and keeps no limits', async () => {
  const [board] = await boards('one')
  await board.limits.set('repo/*', { concurrency: 0 })
  const refused: unknown[] = []
  const flow = publishing(DECLARED, async ({ repo }) => {
    const job = await board.post('loop', {}, { resources: { exclusive: [repo] } })
    refused.push(await rejectionOf(board.claim(job)))
  })
  await runFlow(flow, { repo: 'fedora' }, { board })
  expect(refused).toEqual([expect.any(Unclaimable)])
})

test('runFlow without a board says that it holds no resources', async () => {
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  await runFlow(publishing(DECLARED), { repo: 'fedora' }, { log })
  await runFlow(publishing({}), { repo: 'fedora' }, { log })
  expect(lines).toMatchObject([{ flow: 'publish', msg: expect.stringContaining('give runFlow a board') }])
})

test('a flow with a mutex runs one job at once: posted with its code, by name, and by two schedules', async () => {
  const [board, other] = await boards('conductor', 'other')
  const [begun, goOn] = [createDeferred(), createDeferred()]
  let [running, most] = [0, 0]
  const flow = publishing({ mutex: true }, async () => {
    running += 1
    most = Math.max(most, running)
    begun.resolve()
    await goOn.promise
    running -= 1
  })
  const { conductor } = await conductors(flow, board)
  const held = await other.post(flow, { repo: 'fedora' })
  await begun.promise
  for (const id of ['one', 'two']) await other.schedules.put(schedule(id, { every: '1d' }, flow, { repo: id }))
  const uuids = [await other.schedules.trigger('one'), await other.schedules.trigger('two')]
  const jobs = [
    held,
    await other.post('publish', { repo: 'debian' }),
    await other.post(flow, { repo: 'suse' }),
    ...(await Promise.all(uuids.map((uuid) => other.find(uuid)))),
  ]
  expect((await other.waitingFor(jobs[2] ?? held))?.text).toContain(held.uuid)
  goOn.resolve()
  for (const job of jobs) expect(await job.wait()).toBe('COMPLETE')
  await conductor.stop()
  expect(most).toBe(1)
  expect(held.resources).toEqual({ exclusive: ['mutex/publish'] })
})

test('a mutex with a name is shared by flows, and added to other resources', async () => {
  const [board] = await boards('board')
  const flows = (['one', 'two'] as const).map((name) =>
    linear(
      { name, posting: { mutex: 'disk', resources: { shared: [name] } } },
      input(),
      task('only', { execute: () => undefined }),
    ),
  )
  const resources = []
  for (const flow of flows) resources.push((await board.post(flow, {})).resources)
  expect(resources).toEqual([
    { exclusive: ['mutex/disk'], shared: ['one'] },
    { exclusive: ['mutex/disk'], shared: ['two'] },
  ])
  expect(() => publishing({ mutex: 7 as never })).toThrow(
    'flow publish: posting.mutex must be true, false, or a name that flows share',
  )
})
