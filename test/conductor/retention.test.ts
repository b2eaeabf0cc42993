/** Retention: old jobs in the trash, and logbooks by the ages of their flows. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { boardInternals } from '../../src/board/internal.ts'
import { removeFinished, retain } from '../../src/conductor/retention.ts'
import { toFlowAges } from '../../src/conductor/runs/book-owner.ts'
import { removeOldTrash, retainTrash } from '../../src/conductor/trash-retention.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { InvalidArgument } from '../../src/core/errors.ts'
import { type Logger, silentLog } from '../../src/core/log.ts'
import {
  input,
  type JobBoard,
  linear,
  openBoard,
  openPersistence,
  type Persistence,
  runFlow,
  startConductor,
  task,
} from '../../src/index.ts'
import { all, namesOn } from '../board/jobs.ts'

const HOUR_MS = 3_600_000
const noop = task('noop', { execute: () => undefined })

/** A log that collects the lines about removals. */
function removalLog(): {
  readonly log: Logger
  readonly lines: { removed: number; message: string }[]
  readonly first: Promise<void>
} {
  const lines: { removed: number; message: string }[] = []
  const { promise, resolve } = createDeferred<void>()
  const log: Logger = Object.assign(Object.create(silentLog), {
    child: () => log,
    info: ({ removed }: { removed?: number }, message: string) => {
      if (removed === undefined) return
      lines.push({ removed, message })
      resolve()
    },
  })
  return { log, lines, first: promise }
}

async function trash(board: JobBoard, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await board.post('flow', {}, { name })
    const [claim] = await board.claimNext()
    await claim.trash({ reason: 'for now' })
  }
}

const namesIn = async (board: JobBoard) => (await all(board.trashed())).map(({ name }) => name)

describe('the trash', () => {
  test('loses what is older than the age, and nothing else', async () => {
    await using board = await openBoard('memory:')
    await trash(board, ['a', 'b'])
    expect(await removeOldTrash({ board, age: HOUR_MS })).toBe(0)
    expect(await namesIn(board)).toEqual(['a', 'b'])
    expect(await removeOldTrash({ board, age: -1 })).toBe(2)
    expect(await namesIn(board)).toEqual([])
  })

  test('is emptied by several conductors at once: each entry is counted once', async () => {
    const uri = `memory:${randomUUID()}`
    await using one = await openBoard(uri)
    await using other = await openBoard(uri)
    await trash(
      one,
      Array.from({ length: 120 }, (_, number) => `${number}`),
    )
    const removed = await Promise.all([one, other, one].map((board) => removeOldTrash({ board, age: -1 })))
    expect(removed.reduce((sum, each) => sum + each)).toBe(120)
    expect(await namesIn(one)).toEqual([])
  })

  test('keeps a job that was restored while its entry was read: it is on the board', async () => {
    await using board = await openBoard('memory:')
    await trash(board, ['kept', 'gone'])
    const slow = new Proxy(board, {
      get: (target, key) => {
        const found: unknown = Reflect.get(target, key, target)
        if (key !== 'trashed') return typeof found === 'function' ? found.bind(target) : found
        return async function* () {
          for (const entry of await all(target.trashed())) {
            yield entry
            if (entry.name === 'kept') await target.restore(entry)
          }
        }
      },
    })
    expect(await removeOldTrash({ board: slow, age: -1 })).toBe(1)
    expect(await namesOn(board)).toEqual(['kept'])
  })

  test('an entry of a clock that is ahead does not keep the others', async () => {
    await using board = await openBoard('memory:')
    await trash(board, ['ahead', 'old'])
    const [first] = await all(board.trashed())
    vi.spyOn(boardInternals(board), 'readClock').mockImplementation(async () => Date.now() + HOUR_MS)
    const shifted = new Proxy(board, {
      get: (target, key) => {
        const found: unknown = Reflect.get(target, key, target)
        if (key !== 'trashed') return typeof found === 'function' ? found.bind(target) : found
        return async function* () {
          for (const entry of await all(target.trashed())) {
            if (entry.name !== first?.name) yield entry
            else
              yield new Proxy(entry, {
                get: (of, name) => (name === 'at' ? new Date(Date.now() + 2 * HOUR_MS) : Reflect.get(of, name, of)),
              })
          }
        }
      },
    })
    expect(await removeOldTrash({ board: shifted, age: HOUR_MS / 2 })).toBe(1)
    expect(await namesIn(board)).toEqual(['ahead'])
  })

  test('is looked after by conductors with the option, with one line in the log', async () => {
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:')
    await trash(board, ['a', 'b', 'c'])
    const { log, lines, first } = removalLog()
    const flow = linear('any', input(), noop)
    await using _ = await startConductor({ board, persistence, flows: [flow], removeTrashAfter: 0, log })
    await first
    expect(lines).toEqual([{ removed: 3, message: 'old jobs in the trash removed' }])
    expect(await namesIn(board)).toEqual([])
  })

  test('the settings of a flow say when its jobs are removed', async () => {
    await using board = await openBoard('memory:')
    for (const flow of ['short', 'long', 'other']) {
      await board.post(flow, {}, { name: flow })
      const [claim] = await board.claimNext()
      await claim.trash({ reason: 'for now' })
    }
    using _view = await board.view()
    await board.flowSettings.set('long', { removeTrashAfter: '1h' })
    expect(await removeOldTrash({ board, age: undefined })).toBe(0)
    await board.flowSettings.set('short', { removeTrashAfter: 0 })
    expect(await removeOldTrash({ board, age: undefined })).toBe(1)
    expect(await namesIn(board)).toEqual(['long', 'other'])
    expect(await removeOldTrash({ board, age: -1 })).toBe(1)
    expect(await namesIn(board)).toEqual(['long'])
  })

  test('a conductor without the option begins to remove once a setting says so', async () => {
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:')
    await board.flowSettings.set('*', { removeTrashAfter: 0 })
    await trash(board, ['a', 'b'])
    const { log, first } = removalLog()
    await using _ = await startConductor({ board, persistence, flows: [linear('any', input(), noop)], log })
    await first
    expect(await namesIn(board)).toEqual([])
  })

  test('a board that is away is tried again later', async () => {
    const board = await openBoard('memory:')
    await trash(board, ['a'])
    const stop = new AbortController()
    const warned = createDeferred<void>()
    const log: Logger = Object.assign(Object.create(silentLog), { warn: () => warned.resolve() })
    vi.spyOn(boardInternals(board), 'readClock').mockRejectedValue(new Error('away'))
    const retaining = retainTrash({ board, age: 0, log }, stop.signal)
    await warned.promise
    stop.abort()
    await retaining
    expect(await namesIn(board)).toEqual(['a'])
    await board.close()
  })

  test.each([-1, Number.NaN, '1 fortnight'])('the age %s is refused', async (age) => {
    await using board = await openBoard('memory:')
    const flow = linear('any', input(), noop)
    const starting = startConductor({ board, persistence: 'memory:', flows: [flow], removeTrashAfter: age as '1s' })
    await expect(starting).rejects.toThrow(InvalidArgument)
    await expect(starting).rejects.toThrow('removeTrashAfter')
  })
})

describe('logbooks', () => {
  const flowOf = (name: string, keepLogbooks?: '0ms' | '1h' | 'forever') =>
    linear({ name, ...(keepLogbooks === undefined ? {} : { keepLogbooks }) }, input(), noop)
  const flows = [flowOf('at once', '0ms'), flowOf('hour', '1h'), flowOf('forever', 'forever'), flowOf('usual')]

  async function runAll(board: JobBoard, persistence: Persistence): Promise<void> {
    await using _ = await startConductor({ board, persistence, flows })
    for (const flow of flows) await (await board.post(flow, {})).wait()
  }

  const namesOf = async (persistence: Persistence) =>
    (await all(persistence.listBooks())).map(({ name }) => name).sort()

  /** Logbooks as they are after this time. */
  const later = (persistence: Persistence, ms: number): Persistence =>
    new Proxy(persistence, {
      get: (target, key) => {
        const found: unknown = Reflect.get(target, key, target)
        const shift = (date: Date | undefined) => date && new Date(date.getTime() + ms)
        if (key === 'destroyBook')
          return (uuid: string, { unchangedSince }: { unchangedSince?: Date } = {}) => {
            const since = shift(unchangedSince)
            return target.destroyBook(uuid, since ? { unchangedSince: since } : {})
          }
        if (key === 'listBooks')
          return async function* (query: { unchangedSince?: Date }) {
            const since = shift(query.unchangedSince)
            for await (const book of target.listBooks({ ...query, ...(since ? { unchangedSince: since } : {}) }))
              yield { ...book, updatedAt: new Date(book.updatedAt.getTime() - ms) }
          }
        return typeof found === 'function' ? found.bind(target) : found
      },
    })

  test('are removed at the age of their flow, also by a conductor that does not know the flow, else at its own', async () => {
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:')
    await runAll(board, persistence)
    const at = (ms: number) => ({ board, persistence: later(persistence, ms), log: silentLog })
    // Half an hour later: only one flow has had enough of its own.
    expect(await removeFinished({ ...at(HOUR_MS / 2), age: 2 * HOUR_MS })).toBe(1)
    expect(await namesOf(persistence)).toEqual(['forever', 'hour', 'usual'])
    expect(await removeFinished({ ...at(HOUR_MS + 1_000), age: 2 * HOUR_MS })).toBe(1)
    expect(await namesOf(persistence)).toEqual(['forever', 'usual'])
    // A conductor without an age of its own leaves what says nothing.
    expect(await removeFinished(at(100 * HOUR_MS))).toBe(0)
    expect(await removeFinished({ ...at(3 * HOUR_MS), age: 2 * HOUR_MS })).toBe(1)
    expect(await namesOf(persistence)).toEqual(['forever'])
    expect(await removeFinished({ ...at(100_000 * HOUR_MS), age: 2 * HOUR_MS })).toBe(0)
  })

  test('are looked after by a conductor whose flow says so, without an option', async () => {
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:')
    await runAll(board, persistence)
    const { log, lines, first } = removalLog()
    await using _ = await startConductor({
      board,
      persistence: later(persistence, 60_000),
      flows: [flowOf('at once', '0ms')],
      log,
    })
    await first
    expect(lines).toEqual([{ removed: 1, message: 'old logbooks removed' }])
    expect(await namesOf(persistence)).toEqual(['forever', 'hour', 'usual'])
  })

  test('the first pass finds ages that the conductor does not know, and later passes use them', async () => {
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:')
    await runAll(board, persistence)
    const asked: number[] = []
    const stop = new AbortController()
    const twice = createDeferred<void>()
    const watched = new Proxy(persistence, {
      get: (target, key) => {
        const found: unknown = Reflect.get(target, key, target)
        if (key !== 'listBooks') return typeof found === 'function' ? found.bind(target) : found
        return (query: { unchangedSince: Date }) => {
          asked.push(Date.now() - query.unchangedSince.getTime())
          if (asked.length === 2) twice.resolve()
          return target.listBooks(query)
        }
      },
    })
    // The period follows from the age; nothing is old enough for it.
    const retaining = retain({ board, persistence: watched, log: silentLog, age: 1_500 }, stop.signal)
    await twice.promise
    stop.abort()
    await retaining
    expect(asked[0]).toBeLessThan(1_000)
    // `at once` is shorter than the conductor's own age.
    expect(asked[1]).toBeLessThan(1_000)
  })

  test('what the posting or the settings say replaces what the flow says', async () => {
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:')
    await board.flowSettings.set('set', { keepLogbooks: '2h' })
    await board.flowSettings.set('short', { resultTtl: '3h' })
    const flows = [flowOf('set', '1h'), flowOf('short', '1h'), flowOf('hour', '1h')]
    await using conductor = await startConductor({ board, persistence, flows })
    const jobs = [
      await board.post('set', {}),
      await board.post('short', {}),
      await board.post('hour', {}),
      await board.post('short', {}, { resultTtl: '4h' }),
    ]
    await Promise.all(jobs.map((job) => job.wait()))
    await conductor.stop()
    const ages = await Promise.all(jobs.map(async ({ uuid }) => (await persistence.getBook(uuid)).meta['keep']))
    expect(ages).toEqual([2, 3, 1, 4].map((hours) => hours * HOUR_MS))
  })

  test('conductors look as often as the results of their flows, and of settings, require', () => {
    const flow = (resultTtl: '2h' | undefined, keepLogbooks?: '1h') =>
      linear({ name: 'any', keepLogbooks, posting: resultTtl ? { resultTtl } : {} }, input(), noop)
    expect(toFlowAges([flow('2h', '1h'), flow(undefined)])).toEqual([HOUR_MS, 2 * HOUR_MS])
  })

  test('a run in the foreground writes the age, too', async () => {
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:')
    await runFlow(flowOf('hour', '1h'), {}, { board, persistence })
    await runFlow(flowOf('forever', 'forever'), {}, { board, persistence })
    const metas = (await all(persistence.listBooks())).map(({ meta }) => meta['keep'])
    expect(metas).toEqual(expect.arrayContaining([HOUR_MS, 'forever']))
  })

  test.each([-1, Number.NaN, '1 fortnight', null, {}, true])('keepLogbooks %s of a flow is refused', (keepLogbooks) => {
    const make = () => linear({ name: 'any', keepLogbooks: keepLogbooks as '1s' }, input(), noop)
    expect(make).toThrow(InvalidArgument)
    expect(make).toThrow('keepLogbooks')
  })
})
