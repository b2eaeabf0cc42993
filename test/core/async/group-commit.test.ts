import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createDeferred, type Deferred } from '../../../src/core/async/abort.ts'
import {
  type CommitResult,
  GroupCommit,
  ItemCommit,
  type QueuedRequest,
  withinLimits,
} from '../../../src/core/async/group-commit.ts'

/** Commits when it is told to, and remembers what it was given. */
function held(options: { items?: number; bytes?: number; keys?: boolean; refused?: Set<string> } = {}) {
  const batches: {
    items: readonly string[]
    answer: (outcomes: CommitResult<string>[]) => void
    fail: (e: Error) => void
  }[] = []
  let tell = createDeferred()
  const group = new ItemCommit<string, string>({
    commit: (items) => {
      const answered = createDeferred<CommitResult<string>[]>()
      batches.push({ items, answer: answered.resolve, fail: answered.reject })
      tell.resolve()
      tell = createDeferred()
      return answered.promise
    },
    bytesOf: (item) => item.length,
    limits: { items: options.items ?? 100, bytes: options.bytes ?? 1_000 },
    refusalOf: (item) => (options.refused?.has(item) ? new Error('nothing was done') : undefined),
    ...(options.keys ? { keyOf: (item: string) => item.slice(0, 1) } : {}),
  })
  const next = async (count: number) => {
    while (batches.length < count) await tell.promise
    const batch = batches[count - 1]
    if (!batch) throw new Error('it is there')
    return batch
  }
  const done = (items: readonly string[]) => items.map((item) => ({ value: `${item}!` }))
  return { group, next, done }
}

test('what comes while one commit is under way goes out with the next, in order', async () => {
  const { group, next, done } = held()
  const first = group.add('a')
  const one = await next(1)
  expect(one.items).toEqual(['a'])
  const others = ['b', 'c', 'd'].map((item) => group.add(item))
  one.answer(done(one.items))
  expect(await first).toBe('a!')
  const two = await next(2)
  expect(two.items).toEqual(['b', 'c', 'd'])
  two.answer(done(two.items))
  expect(await Promise.all(others)).toEqual(['b!', 'c!', 'd!'])
  await group.idle
})

test('each has an outcome of its own', async () => {
  const { group, next } = held()
  const adding = ['a', 'b', 'c'].map((item) => group.add(item))
  const batch = await next(1)
  batch.answer([{ value: 'fine' }, { error: new Error('refused') }, { value: 'fine' }])
  expect(await Promise.allSettled(adding)).toMatchObject([
    { value: 'fine' },
    { reason: { message: 'refused' } },
    { value: 'fine' },
  ])
})

test('a commit that fails rejects its own batch only; what was queued behind it is committed', async () => {
  const { group, next, done } = held()
  const failing = [group.add('a'), group.add('b')]
  const one = await next(1)
  const queued = [group.add('c'), group.add('d')]
  one.fail(new Error('away'))
  expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const two = await next(2)
  expect(two.items).toEqual(['c', 'd'])
  two.answer(done(two.items))
  expect(await Promise.all(queued)).toEqual(['c!', 'd!'])
  await group.idle
})

test('a commit that throws at once rejects its own batch only', async () => {
  let calls = 0
  const group = new ItemCommit<string, string>({
    commit: (items) => {
      calls += 1
      if (calls === 1) throw new Error('broken')
      return Promise.resolve(items.map((item) => ({ value: `${item}!` })))
    },
    bytesOf: () => 1,
    limits: { items: 1, bytes: 100 },
  })
  const adding = ['a', 'b'].map((item) => group.add(item))
  expect(await Promise.allSettled(adding)).toMatchObject([{ reason: { message: 'broken' } }, { value: 'b!' }])
})

test('an item that must not be committed any more is rejected when its batch would be sent', async () => {
  const refused = new Set<string>()
  const { group, next, done } = held({ refused })
  const first = group.add('a')
  const one = await next(1)
  const later = ['b', 'c'].map((item) => group.add(item))
  refused.add('b')
  one.answer(done(one.items))
  await first
  const two = await next(2)
  expect(two.items).toEqual(['c'])
  two.answer(done(two.items))
  expect(await Promise.allSettled(later)).toMatchObject([{ reason: { message: 'nothing was done' } }, { value: 'c!' }])
})

test('batches are bounded by number and by size, but for one that is too large alone', async () => {
  const { group, next, done } = held({ items: 2, bytes: 10 })
  const items = ['a', 'b', 'c', 'x'.repeat(50), 'dddddd', 'eeeeee', 'f']
  const adding = items.map((item) => group.add(item))
  const seen: (readonly string[])[] = []
  for (let count = 1; seen.flat().length < items.length; count += 1) {
    const batch = await next(count)
    seen.push(batch.items)
    batch.answer(done(batch.items))
  }
  expect(seen).toEqual([['a', 'b'], ['c'], ['x'.repeat(50)], ['dddddd'], ['eeeeee', 'f']])
  await Promise.all(adding)
})

test('of two with one key the second waits', async () => {
  const { group, next, done } = held({ keys: true })
  const adding = ['a1', 'b1', 'a2', 'c1', 'a3'].map((item) => group.add(item))
  const seen: (readonly string[])[] = []
  for (const count of [1, 2, 3]) {
    const batch = await next(count)
    seen.push(batch.items)
    batch.answer(done(batch.items))
  }
  expect(seen).toEqual([['a1', 'b1', 'c1'], ['a2'], ['a3']])
  await Promise.all(adding)
})

describe('answers that are delayed', () => {
  /** Commits at once. The answers of each group wait until the test lets them go. */
  function delayed() {
    const committed: (readonly string[])[] = []
    const waits: Deferred<void>[] = []
    const group = new ItemCommit<string, string>({
      commit: async (items) => {
        committed.push(items)
        if (items.includes('bad')) throw new Error('refused')
        return items.map((item) => ({ value: `${item}!` }))
      },
      bytesOf: () => 1,
      limits: { items: 10, bytes: 100 },
      beforeAnswers: () => {
        const wait = createDeferred()
        waits.push(wait)
        return wait.promise
      },
    })
    return { group, committed, waits }
  }

  test('wait, while the next group is committed', async () => {
    const { group, committed, waits } = delayed()
    let isAnswered = false
    const first = group.add('a').finally(() => {
      isAnswered = true
    })
    await group.idle
    const second = group.add('b')
    await group.idle
    expect(committed).toEqual([['a'], ['b']])
    expect(isAnswered).toBe(false)
    waits[1]?.resolve()
    expect(await second).toBe('b!')
    expect(isAnswered).toBe(false)
    waits[0]?.resolve()
    expect(await first).toBe('a!')
  })

  test('wait as well where the commit failed', async () => {
    const { group, waits } = delayed()
    let isAnswered = false
    const failing = group.add('bad').catch((error: unknown) => {
      isAnswered = true
      return error
    })
    await group.idle
    expect(isAnswered).toBe(false)
    waits[0]?.resolve()
    expect(await failing).toMatchObject({ message: 'refused' })
  })

  test('are the error for which they waited in vain', async () => {
    const { group, waits } = delayed()
    const adding = [group.add('a'), group.add('b')]
    await group.idle
    for (const wait of waits) wait.reject(new Error('no more changes'))
    expect(await Promise.allSettled(adding)).toMatchObject([
      { reason: { message: 'no more changes' } },
      { reason: { message: 'no more changes' } },
    ])
  })
})

describe('a group commit that sends its batches in its own way', () => {
  interface Request extends QueuedRequest {
    readonly name: string
  }

  function sending(send: (names: readonly string[]) => Promise<readonly string[]>, isReady = () => true) {
    const outcomes: string[] = []
    const group: GroupCommit<Request> = new GroupCommit<Request>({
      send: async (batch) => {
        const again = await send(batch.map(({ name }) => name))
        group.requeue(batch.filter(({ name }) => again.includes(name)))
        for (const { name } of batch) if (!again.includes(name)) outcomes.push(name)
      },
      admits: withinLimits({ bytesOf: () => 1, limits: { items: 2, bytes: 100 } }),
      isReady,
    })
    const enqueue = (name: string) => group.enqueue({ name, reject: (error) => outcomes.push(`${name}: ${error}`) })
    return { group, outcomes, enqueue }
  }

  test('sends what it queues again before what is behind it', async () => {
    const sent: (readonly string[])[] = []
    const { group, outcomes, enqueue } = sending(async (names) => {
      sent.push(names)
      return sent.length === 1 ? ['b'] : []
    })
    for (const name of ['a', 'b', 'c']) enqueue(name)
    await group.idle
    expect(sent).toEqual([
      ['a', 'b'],
      ['b', 'c'],
    ])
    expect(outcomes).toEqual(['a', 'b', 'c'])
  })

  test('does not send again what it has rejected because its batch failed', async () => {
    const sent: (readonly string[])[] = []
    const rejected: string[] = []
    const group: GroupCommit<Request> = new GroupCommit<Request>({
      send: async (batch) => {
        sent.push(batch.map(({ name }) => name))
        if (sent.length > 1) return
        group.requeue(batch)
        throw new Error('broken')
      },
      admits: withinLimits({ bytesOf: () => 1, limits: { items: 1, bytes: 100 } }),
    })
    for (const name of ['a', 'b']) group.enqueue({ name, reject: () => rejected.push(name) })
    await group.idle
    expect(sent).toEqual([['a'], ['b']])
    expect(rejected).toEqual(['a'])
  })

  test('waits until it is ready, and can reject meanwhile what is queued', async () => {
    let ready = false
    const { group, outcomes, enqueue } = sending(
      async () => [],
      () => ready,
    )
    for (const name of ['a', 'b']) enqueue(name)
    await new Promise((resolve) => setImmediate(resolve))
    expect(outcomes).toEqual([])
    expect(group.isIdle).toBe(false)
    group.rejectQueued(({ name }) => (name === 'a' ? new Error('away') : undefined))
    expect(outcomes).toEqual(['a: Error: away'])
    ready = true
    group.resume()
    await group.idle
    expect(outcomes).toEqual(['a: Error: away', 'b'])
  })

  test('sends the next group before the callers of an answered group go on', async () => {
    const log: string[] = []
    const group: GroupCommit<Request & { resolve: () => void }> = new GroupCommit<Request & { resolve: () => void }>({
      send: async (batch) => {
        const names = batch.map(({ name }) => name).join()
        log.push(`${names} is sent`)
        await nextTurn()
        group.next()
        for (const { resolve } of batch) resolve()
      },
      admits: withinLimits({ bytesOf: () => 1, limits: { items: 2, bytes: 100 } }),
    })
    const request = (name: string) =>
      new Promise<void>((resolve, reject) => group.enqueue({ name, resolve, reject })).then(() => {
        log.push(`${name} goes on`)
      })
    const [first] = ['a', 'b', 'c'].map(request)
    const last = first?.then(() => request('d'))
    await Promise.all([last, group.idle])
    expect(log).toEqual(['a,b is sent', 'c is sent', 'a goes on', 'b goes on', 'd is sent', 'c goes on', 'd goes on'])
    group.next()
    expect(group.isIdle).toBe(true)
  })
})
