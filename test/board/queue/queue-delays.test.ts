import { expect, test } from 'vitest'
import { change, claimable, createEntry, createQueue, entryNames, everything } from './entries.ts'

test('a job is claimable from the instant on at which its delay is over', () => {
  const queue = createQueue(
    createEntry({ name: 'later', dueAt: 20 }),
    createEntry({ name: 'soon', dueAt: 10 }),
    createEntry(),
  )
  expect(claimable(queue)).toEqual(['job'])
  expect(queue.nextDue).toBe(10)
  expect(queue.advance(9)).toBe(false)
  expect(claimable(queue)).toEqual(['job'])
  expect(queue.advance(10)).toBe(true)
  expect(claimable(queue)).toEqual(['soon', 'job'])
  expect(queue.nextDue).toBe(20)
  expect(queue.advance(1_000)).toBe(true)
  expect(claimable(queue)).toEqual(['later', 'soon', 'job'])
  expect(queue.nextDue).toBeUndefined()
  expect(queue.advance(2_000)).toBe(false)
})

test('what comes with a delay that is over is due at once', () => {
  const queue = createQueue()
  queue.advance(100)
  queue.update(createEntry({ dueAt: 100 }))
  expect(claimable(queue)).toEqual(['job'])
  queue.update(createEntry({ dueAt: 101 }))
  expect(queue.nextDue).toBe(101)
})

test('several that are due at the same instant come together, in claim order', () => {
  const queue = createQueue(
    createEntry({ name: 'b', dueAt: 5 }),
    createEntry({ name: 'a', dueAt: 5, priority: 'HIGH' }),
  )
  queue.advance(5)
  expect(claimable(queue)).toEqual(['a', 'b'])
})

test('a new delay counts, be it longer or shorter, and so does its absence', () => {
  const entry = createEntry({ dueAt: 10 })
  const queue = createQueue(entry)
  const { stored } = entry
  if (!stored) throw new Error('it has content')
  const delayed = (dueAt: number) =>
    change(queue, entry, { stored: { ...stored, posting: { ...stored.posting, delay: dueAt } } })
  delayed(30)
  queue.advance(10)
  expect(claimable(queue)).toEqual([])
  delayed(20)
  expect(queue.nextDue).toBe(20)
  delayed(0)
  expect(claimable(queue)).toEqual(['job'])
  delayed(40)
  expect(claimable(queue)).toEqual([])
})

test('who is not due any more, claimed or gone, is not waited for', () => {
  const [claimed, gone] = [createEntry({ dueAt: 10 }), createEntry({ dueAt: 20 })]
  const queue = createQueue(claimed, gone)
  change(queue, claimed, { claimed: true })
  expect(queue.nextDue).toBe(20)
  change(queue, gone, { ended: 'TRASHED' })
  expect(queue.nextDue).toBeUndefined()
})

test('a request to cancel makes it due at once, but gives it no resources', () => {
  const resources = { exclusive: ['disk'] }
  const [held, asked] = [createEntry({ resources }), createEntry({ name: 'asked', dueAt: 10, resources })]
  const queue = createQueue(held, asked)
  change(queue, held, { claimed: true })
  change(queue, asked, { cancelRequested: true })
  expect(queue.nextDue).toBeUndefined()
  expect(claimable(queue)).toEqual([])
  expect(queue.blockedBy(asked)?.entry).toBe(held)
  change(queue, held, { ended: 'COMPLETE' })
  expect(claimable(queue)).toEqual(['asked'])
})

test('when the clock is set back, those that are due stay so, and a new delay counts from then', () => {
  const queue = createQueue(createEntry({ name: 'first', dueAt: 10 }))
  queue.advance(10)
  expect(queue.advance(5)).toBe(false)
  queue.update(createEntry({ name: 'second', dueAt: 7 }))
  expect(claimable(queue)).toEqual(['first'])
  queue.advance(7)
  expect(claimable(queue)).toEqual(['first', 'second'])
})

test('who is picked before it is due is not taken again when it becomes due', () => {
  const entry = createEntry({ dueAt: 10 })
  const queue = createQueue(entry)
  const place = queue.reserveEntry(entry)
  if (!place) throw new Error('it can be picked')
  queue.advance(10)
  expect(queue.reserveNext(everything)).toEqual([])
  queue.unreserve([place])
  expect(entryNames(queue.reserveNext(everything))).toEqual(['job'])
})
