/** What every persistence must do. Each backend's test calls {@link persistenceContract} with how to get at one. */
import { randomBytes, randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { encodePlain } from '../../src/core/codec.ts'
import { ClaimLost, Fenced, InvalidArgument, InvalidState, NotFound } from '../../src/core/errors.ts'
import { Engine } from '../../src/engine/index.ts'
import { History, input, linear, task, times } from '../../src/flow/index.ts'
import type { BookQuery, FlowLog, Meta, Persistence, Transition } from '../../src/persistence/index.ts'
import { atom, atomNames, requestOf, written } from '../persistence/flows.ts'
import { count } from '../support/counts.ts'

export interface PersistenceBackend {
  readonly name: string
  /** An empty place for logbooks. */
  storage(): Promise<PersistenceStorage>
}

export interface PersistenceStorage extends AsyncDisposable {
  /** Another object on the same storage, opened: what another process would have. */
  open(): Promise<Persistence>
}

const RACES = count({ test: 50, long: 1_000 })

export function persistenceContract(backend: PersistenceBackend): void {
  describe(`persistence contract on ${backend.name}`, () => {
    let storage: PersistenceStorage
    let here: Persistence
    let there: Persistence

    beforeEach(async () => {
      storage = await backend.storage()
      here = await storage.open()
      there = await storage.open()
    })

    afterEach(async () => {
      await here.close()
      await there.close()
      await storage[Symbol.asyncDispose]()
    })

    test('a flow that fails very often, with long messages, writes records of bounded size', {
      timeout: 600_000,
    }, async () => {
      const attempts = count({ test: 120, long: 2_000 })
      const poll = task('poll', {
        execute: (_args, { run }) => Promise.reject(new RangeError(`${run} ${'x'.repeat(10_000)}`)),
      })
      const flow = linear({ name: 'flow', retry: times(attempts, { name: 'retry' }) }, input(), poll)
      const uuid = randomUUID()
      const log = await here.acquire(requestOf(uuid, 1))
      const sizes: number[] = []
      const write = (transition: Transition) => {
        sizes.push(encodePlain(transition, 'msgpack').length)
        return log.write(transition)
      }
      const noted = { flow: log.flow, write, close: () => log.close(), [Symbol.asyncDispose]: () => log.close() }
      expect(await new Engine({ flow, log: noted }).run()).toMatchObject({ state: 'REVERTED' })
      await log.close()
      expect(Math.max(...sizes)).toBeLessThan(50_000)
      const [read] = (await there.getBook(uuid)).flows
      expect(encodePlain(read, 'msgpack').length).toBeLessThan(60_000)
      const history = new History(read?.atoms.find(({ name }) => name === 'retry')?.history ?? [])
      expect(history.length).toBe(attempts)
      expect(history.provided).toEqual(Array.from({ length: attempts }, (_, n) => n + 1))
      expect([history.causedBy('RangeError'), history.causedBy('TypeError')]).toEqual([true, false])
    })

    describe('books', () => {
      test('a book is made once, and found by others', async () => {
        const uuid = randomUUID()
        expect(await here.createBook({ uuid, name: 'first', meta: { from: 'here' } })).toBe(true)
        expect(await there.createBook({ uuid, name: 'second' })).toBe(false)
        const book = await there.getBook(uuid)
        const times = { createdAt: expect.any(Date), updatedAt: expect.any(Date) }
        expect(book).toEqual({ uuid, name: 'first', meta: { from: 'here' }, ...times, flows: [] })
      })

      test('of many who make the same book at once one does', async () => {
        const uuid = randomUUID()
        const makers = [here, there, here, there]
        const made = await Promise.all(makers.map((by) => by.createBook({ uuid, name: 'book' })))
        expect(made.filter(Boolean)).toHaveLength(1)
      })

      test('the acquire, or the flow, that makes a book keeps its meta, and no later one changes it', async () => {
        const meta = { board: 'a board', at: new Date(7) }
        const bookOf = (uuid: string, more: Meta) => ({ uuid, name: 'book', meta: more })
        const [acquired, made, bare] = [randomUUID(), randomUUID(), randomUUID()]
        await here.acquire({ ...requestOf(acquired, 1), book: bookOf(acquired, meta) })
        const { flow } = requestOf(made, 1)
        await here.createFlow({ book: bookOf(made, meta), flow, meta: { of: 'the flow' } })
        await here.createBook(bookOf(bare, meta))
        for (const uuid of [acquired, made, bare]) {
          const log = await there.acquire({ ...requestOf(uuid, 2), book: bookOf(uuid, { board: 'another', more: 1 }) })
          await log.write({ state: 'SUCCESS' })
          const book = await here.getBook(uuid)
          expect(book.meta).toEqual(meta)
          expect(book.flows.map((each) => each.meta)).toEqual([uuid === made ? { of: 'the flow' } : {}])
        }
        const listed: Meta[] = []
        for await (const book of there.listBooks({ finished: true })) listed.push(book.meta)
        expect(listed).toEqual([meta, meta, meta])
      })

      test('of acquires at once that make one book, each with its meta, one has made it', async () => {
        const uuid = randomUUID()
        const requests = Array.from({ length: 8 }, (_, number) => {
          const { flow, ...request } = requestOf(uuid, 1)
          const book = { uuid, name: 'book', meta: { [`by-${number}`]: number } }
          return { ...request, book, flow: { ...flow, uuid: `flow-${number}` } }
        })
        await Promise.all(requests.map((request, number) => (number % 2 ? here : there).acquire(request)))
        const { meta, flows } = await here.getBook(uuid)
        expect(Object.keys(meta)).toHaveLength(1)
        expect(flows).toHaveLength(8)
      })

      test('listing gives every book without its flows', async () => {
        const uuids = Array.from({ length: 20 }, () => randomUUID())
        for (const uuid of uuids) await here.acquire(requestOf(uuid, 1))
        const listed: string[] = []
        for await (const book of there.listBooks()) {
          expect(book).not.toHaveProperty('flows')
          listed.push(book.uuid)
        }
        expect(listed.toSorted()).toEqual(uuids.toSorted())
      })

      test('a destroyed book is gone with its flows, and can be made anew', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 7))
        await log.write({ atoms: [atom('old')] })
        await there.destroyBook(uuid)
        await expect(here.getBook(uuid)).rejects.toThrow(NotFound)
        await expect(log.write({ atoms: [atom('late')] })).rejects.toThrow(ClaimLost)
        const anew = await here.acquire(requestOf(uuid, 1))
        expect(anew.flow).toMatchObject({ run: 1, atoms: [] })
        await expect(log.write({ atoms: [atom('later')] })).rejects.toThrow(ClaimLost)
        await anew.write({ atoms: [atom('new')] })
        expect(atomNames(await there.getBook(uuid))).toEqual(['new'])
      })

      test('the meta of a book is changed key by key, also by several at once', async () => {
        const uuid = randomUUID()
        await here.createBook({ uuid, name: 'book', meta: { kept: 1, changed: 1 } })
        const { createdAt } = await here.getBook(uuid)
        await there.updateBook(uuid, { meta: { changed: 2, at: new Date(7) } })
        const numbers = Array.from({ length: 10 }, (_, number) => number)
        const changes = numbers.map((n) => (n % 2 ? here : there).updateBook(uuid, { meta: { [`n${n}`]: n } }))
        await Promise.all(changes)
        const book = await here.getBook(uuid)
        const added = Object.fromEntries(numbers.map((n) => [`n${n}`, n]))
        expect(book).toMatchObject({
          name: 'book',
          meta: { kept: 1, changed: 2, at: new Date(7), ...added },
          createdAt,
        })
        expect(book.updatedAt.getTime()).toBeGreaterThanOrEqual(createdAt.getTime())
        for await (const { meta } of there.listBooks()) expect(meta).toEqual(book.meta)
      })

      test('what is not there is NotFound', async () => {
        await expect(here.getBook(randomUUID())).rejects.toThrow(NotFound)
        await expect(here.updateBook(randomUUID(), { meta: {} })).rejects.toThrow(NotFound)
        await expect(here.destroyBook(randomUUID())).rejects.toThrow(NotFound)
      })

      test('any text is a uuid but the empty one and half characters', async () => {
        const texts = [
          '../x',
          '..',
          '.',
          '/etc/passwd',
          'a/b',
          'A',
          'a',
          'book',
          'book.record',
          '%2e',
          '\0',
          'ü',
          'x'.repeat(999),
        ]
        for (const text of texts) {
          const log = await here.acquire(requestOf(text, 1))
          await log.write({ meta: { text } })
        }
        for (const text of texts) {
          const book = await there.getBook(text)
          expect(book.uuid).toBe(text)
          expect(book.flows.map(({ uuid, meta }) => [uuid, meta['text']])).toEqual([[text, text]])
        }
        for (const text of ['', '\ud800', 'x'.repeat(1_001), 'ü'.repeat(501)]) {
          await expect(here.createBook({ uuid: text, name: 'book' })).rejects.toThrow(InvalidArgument)
          await expect(here.acquire(requestOf(text, 1))).rejects.toThrow(InvalidArgument)
        }
      })
    })

    describe('listing', () => {
      const uuids = Array.from({ length: 12 }, (): string => randomUUID())

      beforeEach(async () => {
        for (const [index, uuid] of uuids.entries()) {
          const request = { ...requestOf(uuid, 1), book: { uuid, name: index % 2 ? 'odd' : 'even' } }
          if (index === 11) await here.createBook(request.book)
          else if (index === 10) await here.createFlow(request)
          else {
            const log = await here.acquire(request)
            await log.write({ state: 'RUNNING' })
            if (index < 4) await log.write({ state: index < 2 ? 'SUCCESS' : 'FAILURE' })
          }
        }
      })

      const listed = async (query: BookQuery) => {
        const found: number[] = []
        for await (const { uuid } of there.listBooks(query)) found.push(uuids.indexOf(uuid))
        return found.sort((a, b) => a - b)
      }

      test('by name', async () => {
        expect(await listed({ name: 'odd' })).toEqual([1, 3, 5, 7, 9, 11])
        expect(await listed({ name: 'other' })).toEqual([])
      })

      test('by the states of flows', async () => {
        expect(await listed({ state: 'SUCCESS' })).toEqual([0, 1])
        expect(await listed({ state: ['FAILURE', 'PENDING'] })).toEqual([2, 3, 10])
        expect(await listed({ finished: true })).toEqual([0, 1, 2, 3])
        expect(await listed({ finished: false, name: 'odd' })).toEqual([5, 7, 9, 11])
        const second = requestOf(uuids[0] ?? '', 1)
        await here.acquire({ ...second, flow: { ...second.flow, uuid: 'second' } })
        expect(await listed({ finished: true })).toEqual([1, 2, 3])
        expect(await listed({ state: 'SUCCESS' })).toEqual([0, 1])
      })

      test('by age', async () => {
        const { updatedAt } = (await here.getBook(uuids[0] ?? '')).flows[0] ?? { updatedAt: new Date(0) }
        expect(await listed({ unchangedSince: new Date(updatedAt.getTime() - 60_000) })).toEqual([])
        expect(await listed({ unchangedSince: new Date(Date.now() + 60_000) })).toHaveLength(12)
        expect(await listed({ unchangedSince: updatedAt })).toContain(0)
      })

      test('page by page each book comes once, also when books go meanwhile', async () => {
        const pages: string[][] = []
        for (let after: string | undefined; ; after = pages.at(-1)?.at(-1)) {
          const page: string[] = []
          for await (const { uuid } of there.listBooks({ limit: 5, ...(after === undefined ? {} : { after }) })) {
            page.push(uuid)
          }
          if (page.length === 0) break
          pages.push(page)
          // The next page begins behind what is not there any more.
          await here.destroyBook(page.at(-1) ?? '')
        }
        expect(pages.map(({ length }) => length)).toEqual([5, 5, 2])
        expect(pages.flat().toSorted()).toEqual(uuids.toSorted())
      })

      test('what cannot be asked is refused', async () => {
        await expect(listed({ limit: 0 })).rejects.toThrow(InvalidArgument)
        await expect(listed({ unchangedSince: new Date(Number.NaN) })).rejects.toThrow(InvalidArgument)
        const misspelt: object = { states: 'SUCCESS' }
        await expect(listed(misspelt)).rejects.toThrow('has no option "states"')
      })
    })

    describe('removing', () => {
      test('what has changed since is left alone', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        const before = new Date(Date.now() - 60_000)
        expect(await there.destroyBook(uuid, { unchangedSince: before })).toBe(false)
        await log.write({ atoms: [atom('kept')] })
        expect(atomNames(await there.getBook(uuid))).toEqual(['kept'])
        expect(await there.destroyBook(uuid, { unchangedSince: new Date(Date.now() + 60_000) })).toBe(true)
        await expect(there.getBook(uuid)).rejects.toThrow(NotFound)
      })
    })

    test('books that are destroyed by several while runs come and go are destroyed or there, and nothing else', async () => {
      const uuid = randomUUID()
      const faults: unknown[] = []
      const expected = (error: unknown) => {
        if (![ClaimLost, Fenced, NotFound].some((kind) => error instanceof kind)) faults.push(error)
      }
      const run = async (by: Persistence, number: number) => {
        await using log = await by.acquire(requestOf(uuid, number))
        await log.write({ state: 'RUNNING', atoms: [atom('one')] })
        await log.write({ state: 'SUCCESS' })
      }
      const look = async (by: Persistence) => {
        for await (const book of by.listBooks({ finished: true })) await by.getBook(book.uuid)
      }
      for (let round = 1; round <= RACES; round++) {
        const destroying = [{}, { unchangedSince: new Date() }].map((options) => there.destroyBook(uuid, options))
        const racing = [
          run(here, 2 * round),
          run(there, 2 * round + 1),
          here.destroyBook(uuid),
          look(here),
          look(there),
        ]
        await Promise.all([...destroying, ...racing].map((each) => each.catch(expected)))
      }
      expect(faults).toEqual([])
    })

    describe('flows before their first run', () => {
      test('are made once, pending, and handed to the first run', async () => {
        const uuid = randomUUID()
        const { run: _none, claim: _nobody, ...request } = requestOf(uuid, 1)
        expect(await here.createFlow({ ...request, meta: { from: 'poster' } })).toBe(true)
        expect(await there.createFlow({ ...request, meta: { from: 'another' } })).toBe(false)
        const [made] = (await there.getBook(uuid)).flows
        expect(made).toMatchObject({ state: 'PENDING', run: 0, meta: { from: 'poster' }, atoms: [] })
        const log = await there.acquire(requestOf(uuid, 1))
        expect(log.flow).toMatchObject({ ...made, run: 1, claim: 'claim of run 1', updatedAt: expect.any(Date) })
      })

      test('are no way to change a flow that has been acquired', async () => {
        const uuid = randomUUID()
        const { run: _none, claim: _nobody, ...request } = requestOf(uuid, 1)
        const log = await here.acquire(requestOf(uuid, 1))
        expect(await there.createFlow({ ...request, meta: { late: true } })).toBe(false)
        await log.write({ atoms: [atom('one')] })
        expect((await there.getBook(uuid)).flows[0]).toMatchObject({ run: 1, meta: {} })
      })

      test('of many who make the same flow and a run that acquires it, the run has it', async () => {
        for (let round = 0; round < RACES; round++) {
          const uuid = randomUUID()
          const { run: _none, claim: _nobody, ...request } = requestOf(uuid, 1)
          const making = [here, there, here].map((by) => by.createFlow({ ...request, meta: { made: true } }))
          const log = await there.acquire(requestOf(uuid, 1))
          expect((await Promise.all(making)).filter(Boolean).length).toBeLessThanOrEqual(1)
          await log.write({ atoms: [atom('one')] })
          const [flow] = (await here.getBook(uuid)).flows
          expect(flow).toMatchObject({ run: 1, meta: log.flow.meta, atoms: [{ name: 'one' }] })
        }
      })
    })

    describe('what was', () => {
      test('a flow and its atoms record the states they went through, when and in which run', async () => {
        const uuid = randomUUID()
        const first = await here.acquire(requestOf(uuid, 1))
        await first.write({ state: 'RUNNING', atoms: [atom('one', { state: 'RUNNING' })] })
        await first.write({ state: 'RUNNING', atoms: [atom('one', { state: 'RUNNING', meta: { progress: 1 } })] })
        const second = await there.acquire(requestOf(uuid, 2))
        expect(second.flow.states.map(({ state, run }) => [state, run])).toEqual([
          ['PENDING', 0],
          ['RUNNING', 1],
        ])
        await second.write({ state: 'SUCCESS', atoms: [atom('one'), atom('two')] })
        const [flow] = (await here.getBook(uuid)).flows
        expect(flow?.states.map(({ state, run }) => `${state} ${run}`)).toEqual(['PENDING 0', 'RUNNING 1', 'SUCCESS 2'])
        const [one, two] = flow?.atoms ?? []
        expect(one?.states?.map(({ state, run }) => `${state} ${run}`)).toEqual(['RUNNING 1', 'SUCCESS 2'])
        expect(two?.states?.map(({ state, run }) => `${state} ${run}`)).toEqual(['SUCCESS 2'])
        const times = [...(flow?.states ?? []), ...(one?.states ?? [])].map(({ at }) => at)
        expect(times.every((at) => at instanceof Date)).toBe(true)
        expect(one?.createdAt).toEqual(one?.states?.[0]?.at)
        expect(flow?.createdAt).toEqual(flow?.states[0]?.at)
        expect(flow?.updatedAt).toEqual(flow?.states.at(-1)?.at)
      })

      test('what a writer says of it is not believed, and of a great many states the newest are kept', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        const lie = { createdAt: new Date(0), states: [{ state: 'REVERTED', at: new Date(0), run: 99 }] } as const
        await log.write({ atoms: [atom('one', lie)] })
        for (let time = 0; time < 30; time++) {
          for (const state of ['RUNNING', 'FAILURE'] as const) await log.write({ atoms: [atom('one', { state })] })
        }
        const [one] = (await there.getBook(uuid)).flows[0]?.atoms ?? []
        expect(one?.createdAt?.getTime()).toBeGreaterThan(0)
        expect(one?.states).toHaveLength(50)
        expect(one?.states?.at(-1)).toMatchObject({ state: 'FAILURE', run: 1 })
      })
    })

    describe('writing', () => {
      test('a new flow is pending, and what is written is there for others', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 3))
        expect(log.flow).toMatchObject({ uuid, name: 'flow', version: '1.0', state: 'PENDING', run: 3, atoms: [] })
        await log.write({ state: 'RUNNING', meta: { a: 1, b: 1 } })
        await log.write({ atoms: [atom('one', { state: 'RUNNING' }), atom('two')] })
        await log.write({ meta: { b: 2 }, atoms: [atom('one', { result: 'done' })] })
        const [flow] = (await there.getBook(uuid)).flows
        expect(flow).toMatchObject({ state: 'RUNNING', meta: { a: 1, b: 2 }, run: 3, claim: 'claim of run 3' })
        expect(flow?.atoms.map(written)).toEqual([atom('one', { result: 'done' }), atom('two')])
        expect(flow?.updatedAt.getTime()).toBeGreaterThanOrEqual(flow?.createdAt.getTime() ?? Number.NaN)
      })

      test('results come back as they were', async () => {
        const result = {
          date: new Date(1_234_567_890_123),
          big: 2n ** 62n,
          bytes: new Uint8Array([0, 1, 255]),
          list: [1, -1.5, 'text ü', '', null, true, [], {}],
          deep: { er: { still: [{ here: 'x' }] } },
        }
        const failure = { name: 'TypeError', message: 'no', causes: [{ name: 'Error', message: 'why' }] }
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        await log.write({ atoms: [atom('done', { result }), atom('nothing'), atom('failed', { failure })] })
        const [done, nothing, failed] = (await there.getBook(uuid)).flows[0]?.atoms ?? []
        expect(done?.result).toEqual(result)
        expect(nothing).not.toHaveProperty('result')
        expect(failed?.failure).toEqual(failure)
      })

      test('the checkpoint of an atom and its message come back, to others and to the next owner, until a write has none', async () => {
        const value = { row: 1_200, date: new Date(7), big: 2n ** 62n, bytes: new Uint8Array([0, 255]), none: null }
        const reported = {
          state: 'RUNNING',
          progressMessage: 'page 3 ü',
          checkpoint: { value, at: new Date(9) },
        } as const
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        await log.write({ atoms: [atom('plain', { state: 'RUNNING' }), atom('import', { state: 'RUNNING' })] })
        await log.write({ atoms: [atom('import', reported)] })
        const expected = [atom('plain', { state: 'RUNNING' }), atom('import', reported)]
        expect((await there.getBook(uuid)).flows[0]?.atoms.map(written)).toEqual(expected)
        const nextOwner = await there.acquire(requestOf(uuid, 2))
        expect(nextOwner.flow.atoms.map(written)).toEqual(expected)
        await nextOwner.write({ atoms: [atom('import')] })
        const [plain, cleared] = (await here.acquire(requestOf(uuid, 3))).flow.atoms
        for (const field of ['checkpoint', 'progressMessage']) {
          expect(plain).not.toHaveProperty(field)
          expect(cleared).not.toHaveProperty(field)
        }
      })

      test('large checkpoints of a flow are written one by one, the newest of each atom', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        const names = Array.from({ length: 20 }, (_, number) => `a${number}`)
        const saved = (name: string, turn: number) => {
          const value = { turn, rest: randomBytes(63 * 1_024) }
          return log.write({ atoms: [atom(name, { state: 'RUNNING', checkpoint: { value, at: new Date() } })] })
        }
        for (const turn of [1, 2]) await Promise.all(names.map((name) => saved(name, turn)))
        const { flow } = await there.acquire(requestOf(uuid, 2))
        expect(flow.atoms.map(({ checkpoint }) => Object(checkpoint?.value).turn)).toEqual(names.map(() => 2))
      })

      test('what is no plain data is refused, and the log goes on', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        const loop: unknown[] = []
        loop.push(loop)
        for (const result of [() => 1, Symbol('x'), new Map(), new Set(), new Error('x'), 2n ** 70n, loop]) {
          await expect(log.write({ atoms: [atom('bad', { result })] })).rejects.toThrow(InvalidArgument)
          const checkpoint = { value: result, at: new Date() }
          await expect(log.write({ atoms: [atom('bad', { checkpoint })] })).rejects.toThrow(InvalidArgument)
        }
        await log.write({ atoms: [atom('good')] })
        expect(atomNames(await there.getBook(uuid))).toEqual(['good'])
      })

      test('what was written or handed out can be changed without harm', async () => {
        const uuid = randomUUID()
        const result = { list: [1], bytes: new Uint8Array([1]) }
        const log = await here.acquire(requestOf(uuid, 1))
        const writing = log.write({ atoms: [atom('one', { result })] })
        result.list.push(2)
        await writing
        result.bytes[0] = 2
        const read = (await here.getBook(uuid)).flows[0]?.atoms[0]?.result as typeof result
        read.list.push(3)
        read.bytes[0] = 3
        const again = (await here.getBook(uuid)).flows[0]?.atoms[0]?.result as typeof result
        expect([again.list, [...again.bytes]]).toEqual([[1], [1]])
      })

      test('writes made at once are recorded in the order of the calls', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        const settled: number[] = []
        const numbers = Array.from({ length: 100 }, (_, number) => number)
        await Promise.all(
          numbers.map(async (number) => {
            await log.write({ meta: { last: number }, atoms: [atom(`a${number}`)] })
            settled.push(number)
          }),
        )
        expect(settled).toEqual(numbers)
        const book = await there.getBook(uuid)
        expect(atomNames(book)).toEqual(numbers.map((number) => `a${number}`))
        expect(book.flows[0]?.meta).toEqual({ last: 99 })
      })

      test('a book holds several flows, each with its own run', async () => {
        const uuid = randomUUID()
        for (const flow of ['one', 'two', 'three']) {
          const request = requestOf(uuid, flow.length)
          const log = await here.acquire({ ...request, flow: { ...request.flow, uuid: flow } })
          await log.write({ meta: { flow } })
        }
        const { flows } = await there.getBook(uuid)
        expect(Object.fromEntries(flows.map((flow) => [flow.uuid, [flow.run, flow.meta]]))).toEqual({
          one: [3, { flow: 'one' }],
          two: [3, { flow: 'two' }],
          three: [5, { flow: 'three' }],
        })
      })
    })

    describe('runs', () => {
      test('a next owner is handed everything that was acknowledged', async () => {
        const uuid = randomUUID()
        for (let run = 1; run <= 5; run++) {
          const log = await (run % 2 ? here : there).acquire(requestOf(uuid, run))
          expect(log.flow).toMatchObject({ run, claim: `claim of run ${run}` })
          expect(log.flow.atoms.map(({ name }) => name)).toEqual(['r1', 'r2', 'r3', 'r4', 'r5'].slice(0, run - 1))
          await log.write({ atoms: [atom(`r${run}`)] })
        }
      })

      test('an older run is refused for good, and changes nothing', async () => {
        const uuid = randomUUID()
        const zombie = await here.acquire(requestOf(uuid, 1))
        await zombie.write({ atoms: [atom('before')] })
        const nextOwner = await there.acquire(requestOf(uuid, 5))
        for (const _ of [1, 2]) await expect(zombie.write({ atoms: [atom('late')] })).rejects.toThrow(ClaimLost)
        await nextOwner.write({ atoms: [atom('after')] })
        await expect(zombie.write({ state: 'FAILURE' })).rejects.toThrow(ClaimLost)
        const book = await here.getBook(uuid)
        expect(atomNames(book)).toEqual(['before', 'after'])
        expect(book.flows[0]).toMatchObject({ state: 'PENDING', run: 5 })
      })

      test('an older run can save no checkpoint, also when it races with the next owner that acquires', async () => {
        const saving = (value: unknown) => ({
          atoms: [atom('import', { state: 'RUNNING', checkpoint: { value, at: new Date(0) } })],
        })
        for (let round = 0; round < RACES; round++) {
          const uuid = randomUUID()
          const zombie = await here.acquire(requestOf(uuid, 1))
          await zombie.write(saving('first'))
          const [late, nextOwner] = await Promise.all([
            zombie.write(saving('second')).catch((error: unknown) => error),
            there.acquire(requestOf(uuid, 2)),
          ])
          const found = nextOwner.flow.atoms[0]?.checkpoint?.value
          // A save that was reported as done is what the next owner finds.
          if (late === undefined) expect(found).toBe('second')
          else expect(late).toBeInstanceOf(ClaimLost)
          await expect(zombie.write(saving('third'))).rejects.toThrow(ClaimLost)
          expect((await here.getBook(uuid)).flows[0]?.atoms[0]?.checkpoint?.value).toBe(found)
          for (const log of [zombie, nextOwner]) await log.close()
        }
      })

      test('a run that is not above the newest is fenced, with the number of the newest', async () => {
        const uuid = randomUUID()
        const owner = await here.acquire(requestOf(uuid, 5))
        for (const run of [1, 4, 5]) {
          const refusal = await there.acquire(requestOf(uuid, run, 'another claim')).catch((error: unknown) => error)
          expect(refusal).toBeInstanceOf(Fenced)
          expect(refusal).toMatchObject({ newestRun: 5 })
        }
        await owner.write({ atoms: [atom('mine')] })
        expect(atomNames(await there.getBook(uuid))).toEqual(['mine'])
      })

      test('the same claim may ask again, and again', async () => {
        const uuid = randomUUID()
        const logs: FlowLog[] = []
        for (let time = 0; time < 4; time++) {
          const log = await (time % 2 ? here : there).acquire(requestOf(uuid, 2))
          expect(log.flow.atoms.map(({ name }) => name)).toEqual(['t0', 't1', 't2'].slice(0, time))
          await log.write({ atoms: [atom(`t${time}`)] })
          logs.push(log)
        }
        expect(atomNames(await here.getBook(uuid))).toEqual(['t0', 't1', 't2', 't3'])
        await here.acquire(requestOf(uuid, 3))
        for (const log of logs) await expect(log.write({ state: 'FAILURE' })).rejects.toThrow(ClaimLost)
        await expect(there.acquire(requestOf(uuid, 2))).rejects.toThrow(Fenced)
      })

      test('of two claims with one run one has it', async () => {
        for (let round = 0; round < RACES; round++) {
          const uuid = randomUUID()
          const claims = ['a', 'b', 'c']
          const acquiring = claims.map((claim, at) => (at % 2 ? here : there).acquire(requestOf(uuid, 1, claim)))
          const outcomes = await Promise.allSettled(acquiring)
          expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
          for (const outcome of outcomes) {
            if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ newestRun: 1 })
            else await outcome.value.close()
          }
        }
      })

      test('of many runs that acquire at once, each that succeeds is handed everything', async () => {
        for (let round = 0; round < RACES; round++) {
          const uuid = randomUUID()
          await (await here.acquire(requestOf(uuid, 1))).write({ atoms: [atom('kept')] })
          const runs = [2, 3, 4, 5, 6, 7, 8, 9]
          const acquiring = runs.map((run) => (run % 2 ? here : there).acquire(requestOf(uuid, run)))
          const outcomes = await Promise.allSettled(acquiring)
          expect(outcomes.at(-1)?.status).toBe('fulfilled')
          for (const outcome of outcomes) {
            if (outcome.status === 'fulfilled') expect(outcome.value.flow.atoms.map(written)).toEqual([atom('kept')])
            else expect(outcome.reason).toBeInstanceOf(Fenced)
          }
        }
      })

      test('runs that race leave nothing behind that was not acknowledged before the next owner, and lose nothing', async () => {
        for (let round = 0; round < RACES; round++) {
          const uuid = randomUUID()
          const older = await here.acquire(requestOf(uuid, 1))
          const acknowledged: string[] = []
          const writing = writeUntilRefused(older, { prefix: 'old', acknowledged })
          // An empty write is acknowledged after those that were made before it.
          while (acknowledged.length < round % 5) await Promise.race([writing, older.write({})])
          const [second, third] = await Promise.allSettled([
            there.acquire(requestOf(uuid, 2)),
            here.acquire(requestOf(uuid, 3)),
          ])
          if (third.status === 'rejected') throw third.reason
          if (second.status === 'fulfilled') {
            await expect(second.value.write({ atoms: [atom('second')] })).rejects.toThrow(ClaimLost)
          } else expect(second.reason).toMatchObject({ code: Fenced.code, newestRun: 3 })
          expect(await writing).toBeInstanceOf(ClaimLost)
          const handed = third.value.flow.atoms.map(({ name }) => name)
          expect(handed.slice(0, acknowledged.length)).toEqual(acknowledged)
          expect(atomNames(await there.getBook(uuid))).toEqual(handed)
          for (const log of [older, third.value]) await log.close()
        }
      })
    })

    describe('closing', () => {
      test('is idempotent, and nothing can be done afterwards', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        const closed = await here.acquire(requestOf(randomUUID(), 1))
        await Promise.all([closed.close(), closed.close()])
        await expect(closed.write({})).rejects.toThrow(InvalidState)
        await Promise.all([here.close(), here.close()])
        await expect(log.write({})).rejects.toThrow(InvalidState)
        await expect(here.getBook(uuid)).rejects.toThrow(InvalidState)
        await expect(here.acquire(requestOf(uuid, 2))).rejects.toThrow(InvalidState)
      })

      test('waits for the writes under way', async () => {
        const uuid = randomUUID()
        const log = await here.acquire(requestOf(uuid, 1))
        const writes = ['a', 'b', 'c'].map((name) => log.write({ atoms: [atom(name)] }))
        await here.close()
        await Promise.all(writes)
        expect(atomNames(await there.getBook(uuid))).toEqual(['a', 'b', 'c'])
      })

      test('leaves the run the newest', async () => {
        const uuid = randomUUID()
        await using _ = await here.acquire(requestOf(uuid, 4))
        await here.close()
        await expect(there.acquire(requestOf(uuid, 4, 'another claim'))).rejects.toThrow(Fenced)
      })
    })
  })
}

/** Writes one atom after the other; resolves to the refusal. */
async function writeUntilRefused(
  log: FlowLog,
  { prefix, acknowledged }: { prefix: string; acknowledged: string[] },
): Promise<unknown> {
  for (let number = 0; ; number++) {
    const name = `${prefix}${number}`
    try {
      await log.write({ atoms: [atom(name)] })
      acknowledged.push(name)
    } catch (error) {
      return error
    }
  }
}
