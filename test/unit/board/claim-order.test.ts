import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClaimOrder, compareClaimOrder, type Ordered } from '../../../src/board/claim-order.ts'
import { PRIORITIES } from '../../../src/board/priority.ts'

const item = fc.record({
  id: fc.integer({ min: 0, max: 60 }).map((number) => `job${number}`),
  priority: fc.constantFrom(...PRIORITIES),
  order: fc.bigInt({ min: 0n, max: 3n }),
}) satisfies fc.Arbitrary<Ordered>

const step = fc.record({ add: fc.boolean(), item })

test('is what a sorted array without doubles would be, after any additions and removals', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const order = new ClaimOrder()
      let model: Ordered[] = []
      for (const { add, item: one } of steps) {
        const there = model.some((other) => compareClaimOrder(other, one) === 0)
        if (add) {
          order.add(one)
          if (!there) model = [...model, one].sort(compareClaimOrder)
        } else {
          expect(order.delete(one)).toBe(there)
          model = model.filter((other) => compareClaimOrder(other, one) !== 0)
        }
        expect(order.size).toBe(model.length)
      }
      expect([...order]).toEqual(model)
    }),
  )
})

test('keeps its order over many chunks, filled from either end or at random, and emptied again', () => {
  const COUNT = 5_000
  const items = Array.from({ length: COUNT }, (_, number) => ({
    id: `job${String(number).padStart(10, '0')}`,
    priority: PRIORITIES[number % PRIORITIES.length] ?? ('NORMAL' as const),
    order: BigInt(Math.floor(number / 3)),
  }))
  const sorted = items.toSorted(compareClaimOrder)
  const shuffled = items.toSorted(
    (a, b) => (a.id.at(-1) ?? '').localeCompare(b.id.at(-1) ?? '') || (a.id < b.id ? 1 : -1),
  )
  for (const filling of [sorted, sorted.toReversed(), shuffled]) {
    const order = new ClaimOrder()
    for (const one of filling) order.add(one)
    expect([...order]).toEqual(sorted)
    for (const one of shuffled) expect(order.delete(one)).toBe(true)
    expect([...order]).toEqual([])
    expect(order.size).toBe(0)
  }
})

test('ids count by their number, also when there are more digits', () => {
  const at = (id: string): Ordered => ({ id, priority: 'NORMAL', order: 1n })
  const order = new ClaimOrder()
  for (const id of ['job10000000000', 'job9999999999', 'job0000000001']) order.add(at(id))
  expect([...order].map(({ id }) => id)).toEqual(['job0000000001', 'job9999999999', 'job10000000000'])
})
