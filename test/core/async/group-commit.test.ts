import { expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { type CommitResult, GroupCommit } from '../../../src/core/async/group-commit.ts'

/** Commits when it is told to, and remembers what it was given. */
function held(options: { items?: number; bytes?: number; keys?: boolean } = {}) {
  const batches: {
    items: readonly string[]
    answer: (outcomes: CommitResult<string>[]) => void
    fail: (e: Error) => void
  }[] = []
  let tell = createDeferred()
  const group = new GroupCommit<string, string>({
    commit: (items) => {
      const answered = createDeferred<CommitResult<string>[]>()
      batches.push({ items, answer: answered.resolve, fail: answered.reject })
      tell.resolve()
      tell = createDeferred()
      return answered.promise
    },
    bytesOf: (item) => item.length,
    limits: { items: options.items ?? 100, bytes: options.bytes ?? 1_000 },
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

test('a commit that fails fails what waits behind it, and what comes later is tried anew', async () => {
  const { group, next, done } = held()
  const adding = [group.add('a')]
  const one = await next(1)
  adding.push(group.add('b'))
  one.fail(new Error('away'))
  expect((await Promise.allSettled(adding)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const later = group.add('c')
  const two = await next(2)
  expect(two.items).toEqual(['c'])
  two.answer(done(two.items))
  expect(await later).toBe('c!')
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
