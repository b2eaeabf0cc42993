/** What the command line, the dashboard and the doctor compute of a board in one place. */
import { expect, test } from 'vitest'
import { JobBoard } from '../../src/board/api/job-board.ts'
import { MemoryBackend, MemorySpace } from '../../src/board/backends/memory/index.ts'
import { type LimitView, openBoard } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { Redactor } from '../../src/core/redaction.ts'
import {
  batchView,
  conductorViews,
  countSlots,
  currentRun,
  describeDeclaration,
  isLate,
  limitView,
  readBatchView,
  readOpenJob,
  scheduleView,
  waitingView,
} from '../../src/views/index.ts'
import { InfoReader, longestRunning } from '../../src/views/internal.ts'
import { overrideRole } from '../board/override-role.ts'

const AT = new Date('2027-03-28T00:00:00Z')
const CONDUCTOR = { kind: 'conductor', instance: '1' } as const

test('the reason of a job that waits names what is in its way', async () => {
  await using board = await openBoard('memory:')
  const [first, second] = [
    await board.post('import', {}, { resources: { exclusive: ['disk'] } }),
    await board.post('import', {}, { resources: { exclusive: ['disk'] } }),
  ]
  await board.claim(first)
  const reason = await board.waitingFor(second)
  if (!reason) throw new Error('the second job waits for nothing')
  expect(waitingView(reason)).toEqual({ kind: 'resource', text: reason.text, key: 'disk', jobs: [first.uuid] })
  expect(waitingView({ kind: 'delay', text: 'it rests', until: AT })).toEqual({
    kind: 'delay',
    text: 'it rests',
    until: AT,
  })
  expect(waitingView({ kind: 'flow', text: 'nobody has it', flow: 'import' })).toEqual({
    kind: 'flow',
    text: 'nobody has it',
    flow: 'import',
  })
  expect(waitingView({ kind: 'queue', text: 'nobody serves it', queue: 'bulk' })).toEqual({
    kind: 'queue',
    text: 'nobody serves it',
    queue: 'bulk',
  })
  const many = Array.from({ length: 12 }, () => second)
  expect(waitingView({ kind: 'job', text: 'it waits', jobs: many }).jobs).toHaveLength(10)
})

test('the reads of a job on the board name its claim, its dependents and its record, and are none once it has left', async () => {
  await using board = await openBoard('memory:')
  const first = await board.post('import', {})
  const second = await board.post('report', {}, { after: [first] })
  const read = () => readOpenJob(first, { board, record: Promise.resolve('its record') })
  expect(await read()).toMatchObject({ isClaimed: false, record: 'its record', dependents: [second.uuid] })
  expect(currentRun(first)).toBeUndefined()
  const claim = await board.claim(first)
  expect(await read()).toMatchObject({ isClaimed: true, cancellation: undefined, waits: undefined })
  expect(currentRun(first)?.who).toBe(board.who)
  await claim.consume()
  expect(await read()).toBeUndefined()
})

test('the jobs that have been running longest come first, and those of unknown starts last', () => {
  const jobs = Array.from({ length: 12 }, (_, index) => {
    return { uuid: String(index), name: 'import', since: new Date(AT.getTime() - index) }
  })
  const shown = longestRunning([{ uuid: 'unknown', name: 'import' }, ...jobs])
  expect(shown.map(({ uuid }) => uuid)).toEqual(['11', '10', '9', '8', '7', '6', '5', '4', '3', '2'])
  expect(longestRunning([{ uuid: 'unknown', name: 'import' }, ...jobs.slice(0, 1)]).at(-1)?.uuid).toBe('unknown')
})

test('the trash is counted, and not listed', async () => {
  const backend = new MemoryBackend({ uri: 'memory:', space: new MemorySpace() })
  let read = 0
  overrideRole(backend, 'trash', (original) => ({
    async *list(listing) {
      for await (const entry of original.list(listing)) {
        read += 1
        yield entry
      }
    },
  }))
  const board = new JobBoard(backend, { who: 'who' })
  await boardInternals(board).open()
  for (let index = 0; index < 20; index += 1) await board.cancel(await board.post('import', {}))
  using reader = new InfoReader(board)
  expect((await reader.read()).trashed).toBe(20)
  expect(read).toBeLessThan(2)
  await board.close()
})

test('conductors are in the order of their names, and their slots are added up', () => {
  const conductors = conductorViews([
    { ...CONDUCTOR, name: 'b', metadata: { running: 1, concurrency: 4 } },
    { ...CONDUCTOR, name: 'a', metadata: { running: 2, concurrency: 2 } },
    { ...CONDUCTOR, name: 'c', metadata: {} },
  ])
  expect(conductors.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  expect(countSlots(conductors)).toEqual({ busy: 3, all: 6 })
})

test('an error of a limit or a schedule is its text, and of a store the names are shown', () => {
  const limit: LimitView = { key: 'api', concurrency: 2, declared: { owner: 'billing', version: 3 } }
  expect(limitView(limit)).toEqual(limit)
  expect(limitView({ key: 'api', error: new Error('of a newer release') })).toEqual({
    key: 'api',
    error: 'of a newer release',
  })
  expect(describeDeclaration(limit)).toBe('billing, version 3')
  const schedule = { id: 'nightly', state: 'active', rule: 'every day', store: { password: 'x' } } as const
  expect(scheduleView(schedule)).toEqual({ id: 'nightly', state: 'active', rule: 'every day', inputs: ['password'] })
  expect([{}, { lateMs: 60_000 }, { lateMs: 60_001 }].map(isLate)).toEqual([false, false, true])
})

test('the secret values of a batch are hidden', async () => {
  await using board = await openBoard('memory:')
  const batch = await board.batch({ name: 'import', meta: { password: 'hunter2', file: 'a' } })
  const view = await readBatchView(batch)
  const redacted = batchView({ ...view, reason: 'password=hunter2' }, new Redactor(['password']))
  expect(redacted).toMatchObject({ meta: { password: '[redacted]', file: 'a' }, reason: 'password=[redacted]' })
  expect(batchView(view, new Redactor([]))).toEqual(view)
})
