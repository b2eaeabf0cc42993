/**
 * `directory:` logbooks where a writer stops between any two of its steps in the file system, others run meanwhile, and it
 * goes on: nothing that was acknowledged is lost.
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, vi } from 'vitest'
import { ClaimLost, Fenced, NotFound } from '../../../src/core/errors.ts'
import { type FlowDetail, openPersistence, type Persistence } from '../../../src/persistence/index.ts'
import { count } from '../../support/counts.ts'
import { usual as test, testRows, variant } from '../../variant.ts'
import { atom, atomNames, requestOf } from '../flows.ts'
import { filesBelow, testDirectory } from './directories.ts'
import { type Listing, StepwiseProcess } from './file-steps.ts'

vi.mock('node:fs/promises', async (original) => {
  const { stepwise } = await import('./file-steps.ts')
  return stepwise(await original<typeof import('node:fs/promises')>())
})

const LISTINGS: readonly Listing[] = ['stable', 'all', 'first']
const LISTING_ROWS = LISTINGS.map((listing) => [listing] as const)
const isStable = ([listing]: readonly [Listing]) => listing === 'stable'

/**
 * Calls `setup` with each number of steps after which its actor stops, up to the one that it does not reach; with `every` only
 * with one of so many numbers, beginning with `first`.
 */
async function afterEachStep(
  setup: (stopBefore: number) => Promise<'stopped' | 'finished'>,
  { every = 1, first = 0 }: { every?: number; first?: number } = {},
): Promise<number> {
  for (let stopBefore = first; ; stopBefore += every) if ((await setup(stopBefore)) === 'finished') return stopBefore
}

/**
 * Which steps a setup is stopped at that is played with each kind of listing: in `npm test` each kind has a third of them, so
 * that together they have all.
 */
function stepsOf(listing: Listing): { every: number; first: number } {
  const every = count({ test: LISTINGS.length, long: 1 })
  return { every, first: LISTINGS.indexOf(listing) % every }
}

/** A folder of logbooks, and books in it that are numbered. */
async function logbooks(): Promise<{ persistence: Persistence; directory: string; newBook: () => string }> {
  const directory = join(await testDirectory(), 'logbooks')
  const persistence = await openPersistence(`directory:${directory}`)
  let books = 0
  return { persistence, directory, newBook: () => `book-${books++}` }
}

async function filesOfBook(directory: string, uuid: string): Promise<string[]> {
  const files = await filesBelow(directory)
  return files.filter((file) => file.includes(`/${uuid}/`)).map((file) => file.slice(file.lastIndexOf('/') + 1))
}

/** The keys of all changes that were acknowledged are in the book. */
async function expectMeta(
  persistence: Persistence,
  uuid: string,
  keys: readonly string[],
  where: string,
): Promise<void> {
  const { meta } = await persistence.getBook(uuid)
  expect(Object.keys(meta).toSorted(), where).toEqual([...keys].toSorted())
}

testRows(LISTING_ROWS, isStable)(
  'a change of a book that stops anywhere while others change it is not lost (listings: %s)',
  async (listing) => {
    const { persistence, directory, newBook } = await logbooks()
    const change = (uuid: string, key: string) => persistence.updateBook(uuid, { meta: { [key]: 1 } })
    for (const changesBefore of [0, 1]) {
      const steps = await afterEachStep(async (stopBefore) => {
        const uuid = newBook()
        const before = Array.from({ length: changesBefore }, (_, number) => `before-${number}`)
        await persistence.createBook({ uuid, name: 'book' })
        for (const key of before) await change(uuid, key)
        const { at, end } = await new StepwiseProcess({ stopBefore, listing }).begin(() => change(uuid, 'slow'))
        const others = ['first', 'second', 'third']
        for (const key of others) await change(uuid, key)
        expect((await end()).error).toBeUndefined()
        const where = `stopped before step ${stopBefore}, after ${changesBefore} changes`
        await expectMeta(persistence, uuid, ['slow', ...before, ...others], where)
        await change(uuid, 'last')
        await expectMeta(persistence, uuid, ['slow', 'last', ...before, ...others], where)
        const records = (await filesOfBook(directory, uuid)).filter((name) => /^book\.\d+\.record$/.test(name))
        expect(records, where).toHaveLength(1)
        expect(await filesOfBook(directory, uuid), where).toHaveLength(3)
        return at
      }, stepsOf(listing))
      expect(steps).toBeGreaterThan(10)
    }
  },
)

/** Calls `setup` with each pair of numbers of steps after which its two actors stop; one of `every` of them. */
async function afterEachPair(
  { every }: { every: number },
  setup: (stops: { first: number; second: number }) => Promise<{ at: readonly ('stopped' | 'finished')[] }>,
): Promise<void> {
  await afterEachStep(async (first) => {
    let firstAt: 'stopped' | 'finished' = 'finished'
    for (let second = first % every; ; second += every) {
      const [one = 'finished', two] = (await setup({ first, second })).at
      firstAt = one
      if (two === 'finished') return firstAt
    }
  })
}

variant('two changes of a book that stop anywhere, each at its own step, are not lost', async () => {
  const { persistence, newBook } = await logbooks()
  const change = (uuid: string, key: string) => persistence.updateBook(uuid, { meta: { [key]: 1 } })
  await afterEachPair({ every: count({ test: 4, long: 1 }) }, async ({ first, second }) => {
    const uuid = newBook()
    await persistence.createBook({ uuid, name: 'book', meta: { made: 1 } })
    await change(uuid, 'before')
    const one = await new StepwiseProcess({ stopBefore: first }).begin(() => change(uuid, 'one'))
    const two = await new StepwiseProcess({ stopBefore: second, listing: 'first' }).begin(() => change(uuid, 'two'))
    for (const key of ['a', 'b']) await change(uuid, key)
    expect((await one.end()).error).toBeUndefined()
    expect((await two.end()).error).toBeUndefined()
    const where = `stopped before steps ${first} and ${second}`
    await expectMeta(persistence, uuid, ['made', 'before', 'one', 'two', 'a', 'b'], where)
    return { at: [one.at, two.at] }
  })
})

testRows(LISTING_ROWS, isStable)(
  'a reader that stops anywhere finds each change that was acknowledged before it began (listings: %s)',
  async (listing) => {
    const { persistence, newBook } = await logbooks()
    const change = (uuid: string, key: string) => persistence.updateBook(uuid, { meta: { [key]: 1 } })
    for (const changesBefore of [0, 1, 2]) {
      await afterEachStep(async (stopBefore) => {
        const uuid = newBook()
        await persistence.createBook({ uuid, name: 'book', meta: { made: 1 } })
        const before = Array.from({ length: changesBefore }, (_, number) => `before-${number}`)
        for (const key of before) await change(uuid, key)
        const { at, end } = await new StepwiseProcess({ stopBefore, listing }).begin(() => persistence.getBook(uuid))
        for (const key of ['a', 'b']) await change(uuid, key)
        const { value, error } = await end()
        expect(error).toBeUndefined()
        expect(Object.keys(value?.meta ?? {}), `stopped before step ${stopBefore}`).toEqual(
          expect.arrayContaining(['made', ...before]),
        )
        return at
      })
    }
  },
)

/** Acquires the flow for a run, writes an atom and closes; what was acknowledged is added to `acknowledged`. */
async function runOnce(
  persistence: Persistence,
  {
    uuid,
    run,
    name = `run-${run}`,
    acknowledged,
  }: { uuid: string; run: number; name?: string; acknowledged: string[] },
): Promise<void> {
  const known = [...acknowledged]
  await using log = await persistence.acquire(requestOf(uuid, run))
  // What a run is handed has everything that was acknowledged before it began.
  expect(log.flow.atoms.map((each) => each.name)).toEqual(expect.arrayContaining(known))
  await log.write({ atoms: [atom(name)] })
  acknowledged.push(name)
}

function expectRefusal(error: unknown): void {
  if (error !== undefined)
    expect(
      [ClaimLost, Fenced].some((type) => error instanceof type),
      String(error),
    ).toBe(true)
}

testRows(LISTING_ROWS, isStable)(
  'a run that stops anywhere while newer ones take over loses nothing of them (listings: %s)',
  async (listing) => {
    const { persistence, newBook } = await logbooks()
    for (const again of [false, true]) {
      const steps = await afterEachStep(async (stopBefore) => {
        const uuid = newBook()
        const acknowledged: string[] = []
        await runOnce(persistence, { uuid, run: 1, acknowledged })
        const slow = again ? { run: 1, name: 'slow' } : { run: 2 }
        const { at, end } = await new StepwiseProcess({ stopBefore, listing }).begin(() =>
          runOnce(persistence, { uuid, ...slow, acknowledged }),
        )
        // Of the second kind the same claim acquires the flow again and again.
        const others = again
          ? [
              { run: 1, name: 'a' },
              { run: 1, name: 'b' },
            ]
          : [{ run: 3 }, { run: 4 }]
        for (const other of others) await runOnce(persistence, { uuid, ...other, acknowledged })
        expectRefusal((await end()).error)
        const where = `stopped before step ${stopBefore}`
        expect(atomNames(await persistence.getBook(uuid)), where).toEqual(expect.arrayContaining(acknowledged))
        await runOnce(persistence, { uuid, run: 9, acknowledged })
        expect(atomNames(await persistence.getBook(uuid)), where).toEqual(expect.arrayContaining(acknowledged))
        return at
      }, stepsOf(listing))
      expect(steps).toBeGreaterThan(20)
    }
  },
)

variant('two runs that stop anywhere, each at its own step, lose nothing of the others', async () => {
  const { persistence, newBook } = await logbooks()
  await afterEachPair({ every: count({ test: 23, long: 1 }) }, async ({ first, second }) => {
    const uuid = newBook()
    const acknowledged: string[] = []
    await runOnce(persistence, { uuid, run: 1, acknowledged })
    const run = (number: number) => runOnce(persistence, { uuid, run: number, acknowledged })
    const older = await new StepwiseProcess({ stopBefore: first }).begin(() => run(2))
    await run(3)
    const newer = await new StepwiseProcess({ stopBefore: second, listing: 'first' }).begin(() => run(5))
    // Refused where the newer one has its mark already.
    await run(4).catch(expectRefusal)
    expectRefusal((await older.end()).error)
    expectRefusal((await newer.end()).error)
    const where = `stopped before steps ${first} and ${second}`
    expect(atomNames(await persistence.getBook(uuid)), where).toEqual(expect.arrayContaining(acknowledged))
    await run(9)
    return { at: [older.at, newer.at] }
  })
})

testRows(LISTING_ROWS, isStable)(
  'a reader that stops anywhere while runs take over finds what was acknowledged (listings: %s)',
  async (listing) => {
    const { persistence, newBook } = await logbooks()
    await afterEachStep(async (stopBefore) => {
      const uuid = newBook()
      const acknowledged: string[] = []
      for (const run of [1, 2]) await runOnce(persistence, { uuid, run, acknowledged })
      const known = [...acknowledged]
      // Stopped when it has its mark, and so when it has its log later than its next owners have theirs.
      const late = await new StepwiseProcess({ stopBefore: 12 }).begin(() =>
        runOnce(persistence, { uuid, run: 3, acknowledged }),
      )
      await runOnce(persistence, { uuid, run: 4, acknowledged })
      const { at, end } = await new StepwiseProcess({ stopBefore, listing }).begin(() => persistence.getBook(uuid))
      expectRefusal((await late.end()).error)
      await runOnce(persistence, { uuid, run: 5, acknowledged })
      const { value, error } = await end()
      expect(error).toBeUndefined()
      expect(value && atomNames(value), `stopped before step ${stopBefore}`).toEqual(expect.arrayContaining(known))
      return at
    })
  },
)

/** Whether so many steps of this name have come, with the one that is about to. */
function isStep(name: string, { number }: { number: number }): (steps: readonly string[]) => boolean {
  return (steps) => steps.at(-1) === name && steps.filter((each) => each === name).length === number
}

test('a log that was linked too late is not taken for the newest by a listing that misses the newest', async () => {
  const { persistence, newBook } = await logbooks()
  const uuid = newBook()
  const acknowledged: string[] = []
  const run = (number: number) => runOnce(persistence, { uuid, run: number, acknowledged })
  const secondHalf = isStep('readdir, its second half', { number: 3 })
  await run(1)
  // It has its mark, and has read what there was. The first file that it opens is its mark's.
  const late = await new StepwiseProcess({ stopBefore: isStep('open', { number: 2 }) }).begin(() => run(2))
  await run(3)
  // The first listings are those of the book's folder.
  const reader = await new StepwiseProcess({ stopBefore: secondHalf, listing: 'first' }).begin(() =>
    persistence.getBook(uuid),
  )
  // It is about to remove what is older: the first two files that it unlinks are its own temporary ones.
  const nextOwner = await new StepwiseProcess({ stopBefore: isStep('unlink', { number: 3 }) }).begin(() => run(4))
  expect([late.at, reader.at, nextOwner.at]).toEqual(['stopped', 'stopped', 'stopped'])
  expect((await late.end()).error).toBeInstanceOf(Fenced)
  expect((await nextOwner.end()).error).toBeUndefined()
  const { value, error } = await reader.end()
  expect(error).toBeUndefined()
  expect(value && atomNames(value)).toEqual(['run-1', 'run-3', 'run-4'])
})

test('a run is refused by acquire, not by its first write, where its listing missed the newer run', async () => {
  const { persistence, newBook } = await logbooks()
  const uuid = newBook()
  const acknowledged: string[] = []
  await runOnce(persistence, { uuid, run: 1, acknowledged })
  // The listing behind the link of its log.
  const stopBefore = (steps: readonly string[]) =>
    steps.at(-1) === 'readdir, its second half' && steps.filter((each) => each === 'link').length === 2
  const slow = await new StepwiseProcess({ stopBefore }).begin(() => persistence.acquire(requestOf(uuid, 2)))
  expect(slow.at).toBe('stopped')
  await runOnce(persistence, { uuid, run: 3, acknowledged })
  expect((await slow.end()).error).toBeInstanceOf(Fenced)
})

test('flows that are made while runs acquire them are made once, and only what was made is handed on', async () => {
  const { persistence, newBook } = await logbooks()
  for (const listing of LISTINGS) {
    await afterEachStep(async (stopBefore) => {
      const uuid = newBook()
      const { book, flow } = requestOf(uuid, 1)
      const { at, end } = await new StepwiseProcess({ stopBefore, listing }).begin(() =>
        persistence.createFlow({ book, flow, meta: { from: 'slow' } }),
      )
      const acknowledged: string[] = []
      for (const run of [1, 2]) await runOnce(persistence, { uuid, run, acknowledged })
      const made = (await end()).value
      const [found] = (await persistence.getBook(uuid)).flows
      expect(atomNames(await persistence.getBook(uuid))).toEqual(acknowledged)
      // Where a run took it over in the same moment, it is the run's.
      if (made) expect(found?.meta, `stopped before step ${stopBefore}`).toEqual({ from: 'slow' })
      return at
    }, stepsOf(listing))
  }
})

test('a book that changes while it is removed for its age stays, whatever step the removal had come to', async () => {
  const { persistence, newBook } = await logbooks()
  for (const changed of ['meta', 'flow'] as const) {
    const steps = await afterEachStep(async (stopBefore) => {
      const uuid = newBook()
      const acknowledged: string[] = []
      await runOnce(persistence, { uuid, run: 1, acknowledged })
      const unchangedSince = new Date()
      await until(() => Date.now() > unchangedSince.getTime())
      const { at, end } = await new StepwiseProcess({ stopBefore }).begin(() =>
        persistence.destroyBook(uuid, { unchangedSince }),
      )
      const change =
        changed === 'meta'
          ? persistence.updateBook(uuid, { meta: { kept: 1 } })
          : runOnce(persistence, { uuid, run: 2, acknowledged: [] })
      const refusal = await change.then(
        () => undefined,
        (error: unknown) => error,
      )
      const { value: destroyed, error } = await end()
      const where = `stopped before step ${stopBefore}`
      // A removal that had taken the book was before the change.
      if (refusal !== undefined) expect(refusal, where).toBeInstanceOf(NotFound)
      else if (error === undefined && destroyed === true && changed === 'meta') throw new Error(`${where}: change lost`)
      else if (changed === 'meta') expect((await persistence.getBook(uuid)).meta, where).toEqual({ kept: 1 })
      else expect(atomNames(await persistence.getBook(uuid)), where).toContain('run-2')
      return at
    })
    expect(steps).toBeGreaterThan(10)
  }
})

variant(
  'a change that is acknowledged while the book is removed for its age is in it, wherever both had stopped',
  async () => {
    const { persistence, newBook } = await logbooks()
    await afterEachPair({ every: count({ test: 3, long: 1 }) }, async ({ first, second }) => {
      const uuid = newBook()
      await persistence.createBook({ uuid, name: 'book' })
      const unchangedSince = new Date()
      await until(() => Date.now() > unchangedSince.getTime())
      const change = await new StepwiseProcess({ stopBefore: first }).begin(() =>
        persistence.updateBook(uuid, { meta: { kept: 1 } }),
      )
      const removal = await new StepwiseProcess({ stopBefore: second }).begin(() =>
        persistence.destroyBook(uuid, { unchangedSince }),
      )
      const refused = (await change.end()).error
      const { error } = await removal.end()
      const where = `stopped before steps ${first} and ${second}`
      if (refused === undefined) expect((await persistence.getBook(uuid)).meta, where).toEqual({ kept: 1 })
      else expect(refused, where).toBeInstanceOf(NotFound)
      if (error !== undefined) expect(error, where).toBeInstanceOf(NotFound)
      return { at: [change.at, removal.at] }
    })
  },
)

describe('a log that got long, whose next write starts a new file', () => {
  const value = new Uint8Array(1_024 * 1_024)
  const saved = (number: number) => ({
    atoms: [atom('import', { state: 'RUNNING', checkpoint: { value: { number, rest: value }, at: new Date(0) } })],
  })

  /** Acquires a flow, and fills its log so far that the next write leaves it. */
  async function longLog(persistence: Persistence, uuid: string) {
    const log = await persistence.acquire(requestOf(uuid, 1))
    for (let number = 1; number <= 4; number++) await log.write(saved(number))
    return log
  }

  const numberIn = (flow: FlowDetail | undefined) => Object(flow?.atoms[0]?.checkpoint?.value).number

  testRows(LISTING_ROWS, isStable)(
    'loses nothing, wherever it stops while another run takes over (listings: %s)',
    async (listing) => {
      const { persistence, newBook } = await logbooks()
      const steps = await afterEachStep(async (stopBefore) => {
        const uuid = newBook()
        const log = await longLog(persistence, uuid)
        const { at, end } = await new StepwiseProcess({ stopBefore, listing }).begin(() => log.write(saved(5)))
        const nextOwner = await persistence.acquire(requestOf(uuid, 2))
        const { error } = await end()
        const where = `stopped before step ${stopBefore}`
        if (error !== undefined) expect(error, where).toBeInstanceOf(ClaimLost)
        // A refused write is there only if the two raced.
        else expect(numberIn(nextOwner.flow), where).toBe(5)
        expect([4, 5], where).toContain(numberIn(nextOwner.flow))
        await expect(log.write(saved(6)), where).rejects.toThrow(ClaimLost)
        await nextOwner.write({ meta: { nextOwner: true } })
        expect(numberIn((await persistence.getBook(uuid)).flows[0]), where).toBe(numberIn(nextOwner.flow))
        for (const each of [log, nextOwner]) await each.close()
        return at
      }, stepsOf(listing))
      expect(steps).toBeGreaterThan(20)
    },
  )

  variant('does not enter the book that was made anew', async () => {
    const { persistence, newBook } = await logbooks()
    await afterEachStep(async (stopBefore) => {
      const uuid = newBook()
      const log = await longLog(persistence, uuid)
      const { at, end } = await new StepwiseProcess({ stopBefore }).begin(() => log.write(saved(5)))
      await persistence.destroyBook(uuid)
      const { book, flow } = requestOf(uuid, 1)
      await persistence.createFlow({ book, flow, meta: { from: 'new' } })
      const { error } = await end()
      const where = `stopped before step ${stopBefore}`
      if (error !== undefined) expect(error, where).toBeInstanceOf(ClaimLost)
      await expect(log.write(saved(6)), where).rejects.toThrow(ClaimLost)
      expect((await persistence.getBook(uuid)).flows, where).toMatchObject([
        { run: 0, meta: { from: 'new' }, atoms: [] },
      ])
      await log.close()
      return at
    })
  })

  test('takes the room of a few, however many were saved, and goes on after it was closed in order', async () => {
    const { persistence, directory, newBook } = await logbooks()
    const uuid = newBook()
    const log = await persistence.acquire(requestOf(uuid, 1))
    for (let number = 1; number <= 40; number++) await log.write(saved(number))
    const [file, ...others] = (await filesBelow(directory)).filter((name) => name.endsWith('.log'))
    expect(others).toEqual([])
    expect((await stat(join(directory, file ?? ''))).size).toBeLessThan(7 * 2 ** 20)
    await log.write({ state: 'SUCCESS', atoms: [atom('import')] })
    await log.close()
    expect((await persistence.getBook(uuid)).flows[0]).toMatchObject({ state: 'SUCCESS', run: 1 })
    await using nextOwner = await persistence.acquire(requestOf(uuid, 2))
    expect(nextOwner.flow.atoms[0]).not.toHaveProperty('checkpoint')
  })
})

describe('a book that is destroyed and made anew', () => {
  variant.each(['one', 'two'] as const)(
    'keeps its changes, whatever step a change (number %s) of the former had come to',
    async (number) => {
      const { persistence, newBook } = await logbooks()
      const change = (uuid: string, key: string) => persistence.updateBook(uuid, { meta: { [key]: 1 } })
      await afterEachStep(async (stopBefore) => {
        const uuid = newBook()
        await persistence.createBook({ uuid, name: 'former' })
        if (number === 'two') await change(uuid, 'before')
        const { at, end } = await new StepwiseProcess({ stopBefore }).begin(() => change(uuid, 'slow'))
        await persistence.destroyBook(uuid)
        await persistence.createBook({ uuid, name: 'new' })
        await change(uuid, 'new')
        const { error } = await end()
        const where = `stopped before step ${stopBefore}`
        expect(error, where).toBeUndefined()
        const { name, meta } = await persistence.getBook(uuid)
        expect(name, where).toBe('new')
        expect(meta, where).toMatchObject({ new: 1 })
        return at
      })
    },
  )

  variant('keeps its flows, whatever step a run of the former had come to', async () => {
    const { persistence, newBook } = await logbooks()
    await afterEachStep(async (stopBefore) => {
      const uuid = newBook()
      const { book, flow } = requestOf(uuid, 1)
      await persistence.createFlow({ book, flow, meta: { from: 'former' } })
      await runOnce(persistence, { uuid, run: 1, acknowledged: [] })
      const { at, end } = await new StepwiseProcess({ stopBefore }).begin(() =>
        runOnce(persistence, { uuid, run: 2, acknowledged: [] }),
      )
      await persistence.destroyBook(uuid)
      await persistence.createFlow({ book, flow, meta: { from: 'new' } })
      const where = `stopped before step ${stopBefore}`
      expectRefusal((await end()).error)
      const [found] = (await persistence.getBook(uuid)).flows
      expect(found?.meta, where).toEqual({ from: 'new' })
      return at
    })
  })

  test('keeps what its runs have written, whatever step the removal had come to', async () => {
    const { persistence, newBook } = await logbooks()
    await afterEachStep(async (stopBefore) => {
      const uuid = newBook()
      await runOnce(persistence, { uuid, run: 1, acknowledged: [] })
      const { at, end } = await new StepwiseProcess({ stopBefore }).begin(() => persistence.destroyBook(uuid))
      await runOnce(persistence, { uuid, run: 2, acknowledged: [] })
      const { error } = await end()
      const where = `stopped before step ${stopBefore}`
      expect(error, where).toBeUndefined()
      const found = await persistence.getBook(uuid).catch((failure: unknown) => failure)
      if (!(found instanceof NotFound)) expect(found, where).toMatchObject({ flows: [{ atoms: [{ name: 'run-2' }] }] })
      const acknowledged: string[] = []
      await runOnce(persistence, { uuid, run: 3, acknowledged })
      expect(atomNames(await persistence.getBook(uuid)), where).toEqual(expect.arrayContaining(acknowledged))
      return at
    })
  })
})

/** Calls other work in turn until it is so; the clock goes on by itself. */
async function until(so: () => boolean): Promise<void> {
  while (!so()) await new Promise((resolve) => setImmediate(resolve))
}
