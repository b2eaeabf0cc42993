/** When a flow that no conductor knows stops blocking resources, by a clock that is turned by hand. */
import { expect, onTestFinished, test, vi } from 'vitest'
import type { BoardOptions } from '../../../src/board/api/options.ts'
import { MemoryEntities } from '../../../src/board/backends/memory/entities.ts'
import type { JobBoard, Resources } from '../../../src/board/index.ts'
import { memoryTestBackend } from '../../../src/board/internal.ts'
import type { Duration } from '../../../src/core/time.ts'
import { ManualClock } from '../../../src/testing/index.ts'
import { all, refresh } from '../jobs.ts'

const DISK: { readonly resources: Resources } = { resources: { exclusive: ['disk'] } }
const NEW = { kind: 'conductor', name: 'new', metadata: { flows: ['young'], versions: { young: ['1.0'] } } }
const OLD = { kind: 'conductor', name: 'old', metadata: { flows: ['old', 'young'] } }

interface Setup {
  readonly clock: ManualClock
  /** Posts and shows conductors; never claims. */
  readonly poster: JobBoard
  open(options?: BoardOptions): Promise<JobBoard>
  /** Turns the clock, and waits until the board has looked and knows when it will look next. */
  pass(time: Duration): Promise<void>
}

async function setup(): Promise<Setup> {
  const clock = new ManualClock()
  const place = memoryTestBackend({ clock })
  const boards: JobBoard[] = []
  const open = async (options: BoardOptions = {}) => {
    const board = await place.open(options)
    boards.push(board)
    return board
  }
  onTestFinished(async () => {
    for (const board of boards) await board.close()
  })
  const pass = async (time: Duration) => {
    clock.advance(time)
    await clock.awaited('review')
  }
  return { clock, poster: await open(), open, pass }
}

/** Names of what can be claimed now; it goes back uncharged, and with the same place. */
async function claimable(board: JobBoard): Promise<string[]> {
  await refresh(board)
  return board
    .claimNext({ max: 100, timeout: 0, accept: ({ name }) => name !== 'old' })
    .then(async (claims) => {
      for (const claim of claims) await claim.abandon()
      return claims.map(({ job }) => job.name)
    })
    .catch(() => [])
}

/** Posts an old job, and a young one behind it; the board has begun to claim. */
async function blocked({ poster, open }: Setup, options: BoardOptions = {}): Promise<JobBoard> {
  const board = await open(options)
  await poster.post('old', {}, { name: 'old', ...DISK })
  await poster.post('young', {}, { name: 'young', ...DISK })
  expect(await claimable(board)).toEqual([])
  return board
}

test('a flow that no conductor knows blocks for an hour, and is reported then, once', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const board = await blocked(place)
  const reported = vi.fn()
  board.on('unaccepted', reported)
  await place.pass('59m')
  expect(await claimable(board)).toEqual([])
  await place.pass('1m')
  expect(await claimable(board)).toEqual(['young'])
  expect(reported.mock.calls).toMatchObject([[{ flow: 'old', version: undefined, job: { name: 'old' } }]])
  await place.pass('2h')
  expect(reported).toHaveBeenCalledTimes(1)
})

test('a caller that waits for a job is woken when its time has come', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const board = await blocked(place, { unacceptedAfter: '10m' })
  const waiting = board.claimNext({ accept: ({ name }) => name === 'young' })
  place.clock.advance('10m')
  expect((await waiting)[0].job.name).toBe('young')
})

test('a flow that a conductor knows blocks for as long as one lives, and for as long again', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const old = await place.poster.registerEntity(OLD)
  const board = await blocked(place)
  for (let hour = 0; hour < 5; hour++) await place.pass('1h')
  expect(await claimable(board)).toEqual([])
  await old[Symbol.asyncDispose]()
  await place.pass('30m')
  await place.pass('59m')
  expect(await claimable(board)).toEqual([])
  await place.pass('1m')
  expect(await claimable(board)).toEqual(['young'])
})

test('also a version counts, and a conductor that says nothing of its flows knows all', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const board = await place.open()
  await place.poster.post('young', {}, { name: 'old', details: { version: '2.0' }, ...DISK })
  await place.poster.post('young', {}, { name: 'young', ...DISK })
  expect(await claimable(board)).toEqual([])
  await place.pass('1h')
  expect(await claimable(board)).toEqual(['young'])
  await place.poster.registerEntity({ kind: 'conductor', name: 'silent', metadata: {} })
  await place.pass('1m')
  expect(await claimable(board)).toEqual([])
})

test('a conductor that comes makes it block again, and its going counts from anew', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const board = await blocked(place)
  await place.pass('1h')
  const old = await place.poster.registerEntity(OLD)
  expect(await claimable(board)).toEqual(['young'])
  await place.pass('45s')
  expect(await claimable(board)).toEqual([])
  await old[Symbol.asyncDispose]()
  await place.pass('30m')
  await place.pass('59m')
  expect(await claimable(board)).toEqual([])
  await place.pass('1m')
  expect(await claimable(board)).toEqual(['young'])
})

test('a claim of one of its jobs proves that a conductor takes them', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const [board, loop] = await Promise.all([place.open(), place.open()])
  for (const name of ['old', 'later']) await place.poster.post('old', {}, { name, ...DISK })
  await place.poster.post('young', {}, { name: 'young', ...DISK })
  expect(await claimable(board)).toEqual([])
  await place.pass('1h')
  expect(await claimable(board)).toEqual(['young'])
  const [claim] = await loop.claimNext({ accept: ({ name }) => name === 'old' })
  await claim.consume()
  expect(await claimable(board)).toEqual(['later'])
})

test('where there are no conductors nothing is known to be missing', async () => {
  const place = await setup()
  const board = await blocked(place)
  for (let hour = 0; hour < 3; hour++) await place.pass('1h')
  expect(await claimable(board)).toEqual([])
  // One that comes after an outage of all of them is not there yet alone.
  await place.poster.registerEntity(NEW)
  await place.pass('30m')
  expect(await claimable(board)).toEqual([])
})

test('a process that has just begun lets the others come for a minute, and then goes by how long the job has waited', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  await place.poster.post('old', {}, { name: 'old', ...DISK })
  await place.poster.post('young', {}, { name: 'young', ...DISK })
  place.clock.advance('3h')
  const board = await place.open()
  expect(await claimable(board)).toEqual([])
  await place.pass('59s')
  expect(await claimable(board)).toEqual([])
  await place.pass('1s')
  expect(await claimable(board)).toEqual(['young'])
})

test('a job that rests does not wait: its time counts from the end of its delay', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  await place.poster.post('old', {}, { name: 'old', priority: 'HIGH', delay: '2h', ...DISK })
  await place.poster.post('young', {}, { name: 'young', ...DISK })
  const board = await place.open()
  expect(await claimable(board)).toEqual(['young'])
  place.clock.advance('2h')
  expect(await claimable(board)).toEqual([])
  await place.pass('59m')
  expect(await claimable(board)).toEqual([])
  await place.pass('1m')
  expect(await claimable(board)).toEqual(['young'])
})

test('with 0 it blocks only until the conductors were looked at', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const board = await blocked(place, { unacceptedAfter: 0 })
  await place.pass(0)
  expect(await claimable(board)).toEqual(['young'])
})

test('no change reads conductors, and who only posts, looks and listens to the usual events never does', async () => {
  const entities = vi.spyOn(MemoryEntities.prototype, 'list')
  onTestFinished(() => entities.mockRestore())
  const place = await setup()
  await place.poster.registerEntity(NEW)
  await place.poster.registerEntity(OLD)
  place.poster.on('claimed', () => undefined)
  const board = await place.open()
  for (let number = 0; number < 50; number++) {
    await place.poster.post(number % 2 === 0 ? 'old' : 'young', {}, DISK)
    await (await board.claimNext())[0].consume()
  }
  await blocked(place)
  place.clock.advance('20m')
  expect(entities).not.toHaveBeenCalled()
  await place.pass('40m')
  // Two boards have begun to claim.
  expect(entities).toHaveBeenCalledTimes(2)
})

test('what a job waits for says that no conductor knows the flow before it, and when that ends', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const board = await blocked(place)
  const [old, young] = await all(board.jobs())
  if (!old || !young) throw new Error('two jobs were posted')
  for (const each of [board, place.poster])
    expect(await each.waitingFor(young)).toMatchObject({
      ...{ kind: 'resource', resource: 'disk', job: { name: 'old' } },
      text: expect.stringMatching(
        /^resource disk is wanted before it by job .* \(old\); no conductor here knows flow old: after 3600000 ms without one, others no longer wait for it$/,
      ),
    })
  await place.pass('1h')
  expect(await board.waitingFor(young)).toBeUndefined()
  expect(await board.waitingFor(old)).toMatchObject({ kind: 'flow', flow: 'old' })
  // A look that somebody takes for another reason counts, too.
  await place.poster.registerEntity(OLD)
  expect(await board.waitingFor(young)).toMatchObject({
    text: expect.stringMatching(/disk is wanted before it by job .* \(old\)$/),
  })
  expect(await claimable(board)).toEqual([])
})

test('conductors that cannot be read are asked again', async () => {
  const place = await setup()
  await place.poster.registerEntity(NEW)
  const board = await blocked(place)
  const errors: Error[] = []
  board.on('error', ({ error }) => errors.push(error))
  const entities = vi.spyOn(MemoryEntities.prototype, 'list').mockRejectedValueOnce(new Error('odd'))
  onTestFinished(() => entities.mockRestore())
  await place.pass('1h')
  expect(await claimable(board)).toEqual([])
  expect(errors).toMatchObject([{ message: 'odd' }])
  await place.pass('1m')
  expect(await claimable(board)).toEqual(['young'])
})
