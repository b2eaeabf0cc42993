/** Records: changed by compare-and-set, together with posts or not at all, and delivered to those who watch their kind. */
import { describe, expect, test } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { makePosting } from '../../../src/board/model/posting/post-options.ts'
import { MAX_POSTING_BYTES } from '../../../src/board/model/posting/posting-codec.ts'
import { MAX_RECORD_BYTES } from '../../../src/board/model/record.ts'
import type { BoardRecord, ReadRecord, RecordKind } from '../../../src/board/records/record-store.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { IncompatibleVersion, InvalidArgument, InvalidPosting, PayloadTooLarge } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { namesOn } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

interface Counter {
  readonly count: number
  readonly text?: string
}

const COUNTERS: RecordKind<Counter> = {
  name: 'counter',
  format: 1,
  parse: (value) => {
    const { count } = value as Counter
    if (typeof count !== 'number') throw new InvalidPosting('count must be a number')
    return value as Counter
  },
}

const post = (name: string, options: { key?: string; details?: { store: object } } = {}) => ({
  posting: makePosting({ details: {}, name, ...options }),
})

const ODD_IDS = ['a/b', '..', '.', '%2F', 'ü ñ', '~', 'a\nb', '\u202e', '__proto__', 'x'.repeat(512), ' ']

export function recordsContract({ open, expire }: Place, { keys }: { readonly keys: boolean }): void {
  async function create(board: JobBoard, id: string, count = 0): Promise<number> {
    const written = await boardInternals(board)
      .records.of(COUNTERS)
      .write([{ id, revision: undefined, value: { count } }])
    if (!written.done) throw new Error(`${id} is there already`)
    return written.revisions[0] ?? Number.NaN
  }

  async function read(board: JobBoard, id: string): Promise<BoardRecord<Counter>> {
    const found = await boardInternals(board).records.of(COUNTERS).get(id)
    if (!found || !('value' in found)) throw new Error(`${id} cannot be read`)
    return found
  }

  test('a record that one board has written is read by another, alone and in a list', async () => {
    const [here, there] = await Promise.all([open(), open()])
    for (const [index, id] of ['b', 'a', 'c'].entries()) await create(here, id, index)
    expect(await read(there, 'a')).toEqual({ id: 'a', revision: expect.any(Number), value: { count: 1 } })
    const listed = await boardInternals(there).records.of(COUNTERS).list()
    expect(listed).toMatchObject([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    expect(
      await boardInternals(there)
        .records.of({ ...COUNTERS, name: 'other' })
        .list(),
    ).toEqual([])
    expect(await boardInternals(there).records.of(COUNTERS).get('d')).toBeUndefined()
  })

  test('any text is an id', async () => {
    const board = await open()
    for (const id of ODD_IDS) await create(board, id)
    const listed = await boardInternals(board).records.of(COUNTERS).list()
    expect(listed.map(({ id }) => id).sort()).toEqual([...ODD_IDS].sort())
    for (const id of ODD_IDS) expect((await read(board, id)).id).toBe(id)
  })

  test.each([
    ['no character', ''],
    ['513 characters', 'x'.repeat(513)],
  ])('an id of %s is refused', async (_, id) => {
    const board = await open()
    expect(await rejectionOf(create(board, id))).toBeInstanceOf(InvalidArgument)
    expect(await rejectionOf(boardInternals(board).records.of(COUNTERS).get(id))).toBeInstanceOf(InvalidArgument)
  })

  describe('a change', () => {
    test('at another revision is refused', async () => {
      const board = await open()
      const store = boardInternals(board).records.of(COUNTERS)
      const first = await create(board, 'a')
      const conflict = { done: false, conflict: { kind: 'counter', id: 'a' } }
      expect(await store.write([{ id: 'a', revision: undefined, value: { count: 9 } }])).toEqual(conflict)
      const second = await store.write([{ id: 'a', revision: first, value: { count: 1 } }])
      expect(second).toMatchObject({ done: true, posted: [] })
      expect(await store.write([{ id: 'a', revision: first, value: { count: 9 } }])).toEqual(conflict)
      expect(await store.write([{ id: 'a', revision: first, value: undefined }])).toEqual(conflict)
      expect((await read(board, 'a')).value).toEqual({ count: 1 })
    })

    test('of several records is done for all of them or for none', async () => {
      const board = await open()
      const store = boardInternals(board).records.of(COUNTERS)
      const [a, b] = [await create(board, 'a'), await create(board, 'b')]
      const value = { count: 1 }
      const refused = await store.write([
        { id: 'a', revision: a, value },
        { id: 'b', revision: a === b ? b + 1 : a, value },
        { id: 'c', revision: undefined, value },
      ])
      expect(refused.done).toBe(false)
      expect((await store.list()).map((each) => 'value' in each && each.value.count)).toEqual([0, 0])
      const done = await store.write([
        { id: 'a', revision: a, value },
        { id: 'b', revision: b, value: undefined },
        { id: 'c', revision: undefined, value },
      ])
      expect(done).toMatchObject({ done: true, revisions: [expect.any(Number), undefined, expect.any(Number)] })
      expect((await store.list()).map(({ id }) => id)).toEqual(['a', 'c'])
    })

    test('by somebody who knew the record before it was removed and created again is refused', async () => {
      const board = await open()
      const store = boardInternals(board).records.of(COUNTERS)
      const seen = new Set<number>()
      for (let round = 0; round < 5; round += 1) {
        let revision = await create(board, 'a')
        for (let change = 0; change < 3; change += 1) {
          expect(seen).not.toContain(revision)
          seen.add(revision)
          const written = await store.write([{ id: 'a', revision, value: { count: change } }])
          if (!written.done) throw new Error('nobody else writes')
          revision = written.revisions[0] ?? 0
        }
        for (const old of seen)
          if (old !== revision)
            expect((await store.write([{ id: 'a', revision: old, value: { count: 9 } }])).done).toBe(false)
        await store.write([{ id: 'a', revision, value: undefined }])
        seen.add(revision)
        expect(await store.get('a')).toBeUndefined()
        expect(await store.list()).toEqual([])
      }
    })

    test('twice of one record in a write is refused', async () => {
      const board = await open()
      const change = { id: 'a', revision: undefined, value: { count: 0 } }
      expect(await rejectionOf(boardInternals(board).records.of(COUNTERS).write([change, change]))).toBeInstanceOf(
        InvalidArgument,
      )
    })
  })

  describe('a post', () => {
    test('is done with the change, and can be claimed', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const value = { count: 1 }
      const written = await boardInternals(here)
        .records.of(COUNTERS)
        .write([{ id: 'a', revision: undefined, value }], [post('one'), post('two')])
      expect(written).toMatchObject({ done: true, posted: [{ created: true }, { created: true }] })
      const [claim] = await there.claimNext()
      expect(claim.job.name).toBe('one')
      expect((await namesOn(here)).sort()).toEqual(['one', 'two'])
    })

    test('is not done when the change is refused', async () => {
      const board = await open()
      await create(board, 'a')
      const change = { id: 'a', revision: undefined, value: { count: 1 } }
      expect(
        (
          await boardInternals(board)
            .records.of(COUNTERS)
            .write([change], [post('one')])
        ).done,
      ).toBe(false)
      expect(await board.countJobs()).toBe(0)
    })

    const taken = async () => {
      const board = await open()
      await board.post('flow', {}, { key: 'once' })
      const store = boardInternals(board).records.of(COUNTERS)
      const change = { id: 'a', revision: undefined, value: { count: 1 } }
      expect(await store.write([change], [post('one'), post('two', { key: 'once' })])).toEqual({
        done: false,
        conflict: { key: 'once' },
      })
      expect([await store.get('a'), await board.countJobs()]).toEqual([undefined, 1])
      expect(await store.write([change], [post('two', { key: 'other' })])).toMatchObject({ done: true })
      await board.post('flow', {}, { key: 'other' })
      expect(await board.countJobs()).toBe(2)
    }
    if (keys) test('whose key is taken refuses the change', taken)

    test('of many boards at once: each increment is done once, with its job', async () => {
      const boards = await Promise.all(Array.from({ length: 4 }, () => open()))
      const [first] = boards
      if (!first) throw new Error('no board')
      await create(first, 'a')
      const INCREMENTS = 10
      const increment = async (board: JobBoard, name: string): Promise<void> => {
        while (true) {
          const { revision, value } = await read(board, 'a')
          const change = { id: 'a', revision, value: { count: value.count + 1 } }
          if (
            (
              await boardInternals(board)
                .records.of(COUNTERS)
                .write([change], [post(name)])
            ).done
          )
            return
        }
      }
      await Promise.all(
        boards.map(async (board, index) => {
          for (let n = 0; n < INCREMENTS; n += 1) await increment(board, `${index}-${n}`)
        }),
      )
      expect((await read(first, 'a')).value.count).toBe(boards.length * INCREMENTS)
      const names = (await Promise.all([namesOn(first)])).flat()
      expect(new Set(names).size).toBe(boards.length * INCREMENTS)
      expect(names).toHaveLength(boards.length * INCREMENTS)
    })

    test('of one board many times at once: each write is refused or done as a whole', async () => {
      const board = await open()
      const revision = await create(board, 'a')
      const writes = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          boardInternals(board)
            .records.of(COUNTERS)
            .write([{ id: 'a', revision, value: { count: n } }], [post(`${n}`)]),
        ),
      )
      const done = writes.flatMap((written, n) => (written.done ? [n] : []))
      expect(done).toHaveLength(1)
      expect(await namesOn(board)).toEqual([`${done[0]}`])
      expect((await read(board, 'a')).value.count).toBe(done[0])
    })
  })

  describe('who watches a kind', () => {
    async function watching(board: JobBoard) {
      const waiting = new Set<() => void>()
      const view = await boardInternals(board).records.view(COUNTERS, () => {
        for (const check of waiting) check()
      })
      const until = (isSo: (records: ReadonlyMap<string, ReadRecord<Counter>>) => boolean) => {
        const met = createDeferred()
        const check = () => isSo(view.records) && met.resolve()
        waiting.add(check)
        check()
        return met.promise.finally(() => waiting.delete(check))
      }
      return { view, until }
    }
    const countOf = (records: ReadonlyMap<string, ReadRecord<Counter>>, id: string) => {
      const found = records.get(id)
      return found && 'value' in found ? found.value.count : undefined
    }

    test('has its records, and receives the changes of others', async () => {
      const [here, there] = await Promise.all([open(), open()])
      await create(here, 'a', 1)
      const { view, until } = await watching(there)
      expect([...view.records.keys()]).toEqual(['a'])
      const { revision } = await read(here, 'a')
      await boardInternals(here)
        .records.of({ ...COUNTERS, name: 'other' })
        .write([{ id: 'z', revision: undefined, value: { count: 0 } }])
      const store = boardInternals(here).records.of(COUNTERS)
      await store.write([{ id: 'a', revision, value: { count: 2 } }])
      await until((records) => countOf(records, 'a') === 2)
      await create(here, 'b', 5)
      await until((records) => countOf(records, 'b') === 5)
      const b = await read(here, 'b')
      await store.write([{ id: 'b', revision: b.revision, value: undefined }])
      await until((records) => !records.has('b'))
      expect([...view.records.keys()]).toEqual(['a'])
      await view[Symbol.asyncDispose]()
    })

    test('has missed nothing after its session was lost', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const a = await create(here, 'a', 1)
      await create(here, 'b', 1)
      const { view, until } = await watching(there)
      await expire(there)
      await boardInternals(here)
        .records.of(COUNTERS)
        .write([
          { id: 'a', revision: a, value: undefined },
          { id: 'c', revision: undefined, value: { count: 3 } },
        ])
      await until((records) => countOf(records, 'c') === 3 && !records.has('a'))
      expect([...view.records.keys()].sort()).toEqual(['b', 'c'])
      await view[Symbol.asyncDispose]()
    })

    test('receives nothing more once it has stopped, and others go on', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const [one, two] = [await watching(there), await watching(there)]
      await one.view[Symbol.asyncDispose]()
      await create(here, 'a', 1)
      await two.until((records) => countOf(records, 'a') === 1)
      expect(one.view.records.size).toBe(0)
      await two.view[Symbol.asyncDispose]()
    })
  })

  test('the largest record is written with the largest posting, and a larger one is refused', async () => {
    const board = await open()
    const store = boardInternals(board).records.of(COUNTERS)
    const text = 'x'.repeat(MAX_RECORD_BYTES - 64)
    const details = { store: { data: 'x'.repeat(MAX_POSTING_BYTES - 1_024) } }
    const change = { id: 'a', revision: undefined, value: { count: 1, text } }
    expect((await store.write([change], [post('large', { details })])).done).toBe(true)
    expect((await read(board, 'a')).value.text).toHaveLength(text.length)
    const larger = { id: 'b', revision: undefined, value: { count: 1, text: 'x'.repeat(MAX_RECORD_BYTES) } }
    expect(await rejectionOf(store.write([larger]))).toBeInstanceOf(PayloadTooLarge)
  })

  test('a record of a newer format, or that is none, is listed with its error, and can be replaced', async () => {
    const board = await open()
    const newer = boardInternals(board).records.of({ ...COUNTERS, format: 2 })
    await newer.write([{ id: 'newer', revision: undefined, value: { count: 2 } }])
    const odd = boardInternals(board).records.of<object>({
      name: 'counter',
      format: 1,
      parse: (value) => value as object,
    })
    await odd.write([{ id: 'odd', revision: undefined, value: { count: 'many' } }])
    await create(board, 'plain')
    const listed = await boardInternals(board).records.of(COUNTERS).list()
    expect(listed).toMatchObject([
      { id: 'newer', error: expect.any(IncompatibleVersion) },
      { id: 'odd', error: expect.any(InvalidPosting) },
      { id: 'plain', value: { count: 0 } },
    ])
    const [, found] = listed
    const change = { id: 'odd', revision: found?.revision, value: { count: 1 } }
    expect((await boardInternals(board).records.of(COUNTERS).write([change])).done).toBe(true)
  })
}
