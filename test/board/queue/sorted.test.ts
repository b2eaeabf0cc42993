import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { SortedList } from '../../../src/board/queue/sorted.ts'
import { Threshold, type ThresholdBound } from '../../../src/board/queue/threshold.ts'
import { compareNumbers } from '../../../src/core/time.ts'
import { usual as test, variant } from '../../variant.ts'

interface Item {
  readonly key: number
}

const compare = (a: Item, b: Item) => a.key - b.key
const item = fc.record({ key: fc.integer({ min: 0, max: 60 }) })

describe('a sorted list', () => {
  test('is what a sorted array without doubles would be, after any additions and removals', () => {
    const step = fc.record({ add: fc.boolean(), item })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: 'max' }), item, (steps, start) => {
        const sorted = new SortedList(compare)
        let model: Item[] = []
        for (const { add, item: one } of steps) {
          const there = model.some((other) => other.key === one.key)
          if (add) {
            sorted.add(one)
            if (!there) model = [...model, one].sort(compare)
          } else {
            expect(sorted.delete(one)).toBe(there)
            model = model.filter((other) => other.key !== one.key)
          }
          expect(sorted.size).toBe(model.length)
          expect(sorted.first).toBe(model[0])
        }
        expect([...sorted]).toEqual(model)
        expect([...sorted.from(start)]).toEqual(model.filter(({ key }) => key >= start.key))
      }),
    )
  })

  test('refuses an item that has no place in the order, and keeps its own', () => {
    const sorted = new SortedList(compare)
    const nowhere = { key: Number.NaN }
    expect(() => sorted.add(nowhere)).toThrow(RangeError)
    for (const key of [2, 1]) sorted.add({ key })
    expect(() => sorted.add(nowhere)).toThrow(RangeError)
    expect([...sorted].map(({ key }) => key)).toEqual([1, 2])
    expect(() => compareNumbers(Number.NaN, 1)).toThrow(RangeError)
  })

  test('keeps its order over many chunks, filled from either end or mixed, and emptied again', () => {
    const COUNT = 5_000
    const inOrder = Array.from({ length: COUNT }, (_, key) => ({ key }))
    const mixed = inOrder.toSorted((a, b) => (a.key % 10) - (b.key % 10) || b.key - a.key)
    for (const filling of [inOrder, inOrder.toReversed(), mixed]) {
      const sorted = new SortedList(compare)
      for (const one of filling) sorted.add(one)
      expect([...sorted]).toEqual(inOrder)
      for (const key of [-1, 0, 511, 512, 2_500, COUNT - 1, COUNT]) {
        expect([...sorted.from({ key })]).toEqual(inOrder.slice(Math.max(key, 0)))
      }
      for (const one of mixed) expect(sorted.delete(one)).toBe(true)
      expect([...sorted]).toEqual([])
      expect(sorted.first).toBeUndefined()
      sorted.add({ key: 7 })
      expect([...sorted]).toEqual([{ key: 7 }])
    }
  })
})

describe('a threshold', () => {
  variant('lets pass what is before its bound, and reports each change once, wherever the bound goes', () => {
    const bound: fc.Arbitrary<ThresholdBound<Item>> = fc.oneof(item, fc.constantFrom('all' as const, 'none' as const))
    const step = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), item }),
      fc.record({ kind: fc.constant('delete' as const), item }),
      fc.record({ kind: fc.constant('move' as const), bound }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
        const threshold = new Threshold<Item>(compare)
        const passing = new Map<number, boolean>()
        let now: ThresholdBound<Item> = 'none'
        const passes = (key: number) => now === 'all' || (now !== 'none' && key < now.key)
        for (const one of steps) {
          if (one.kind === 'add') passing.set(one.item.key, threshold.add(one.item))
          else if (one.kind === 'delete') {
            threshold.delete(one.item)
            passing.delete(one.item.key)
          } else {
            now = one.bound
            threshold.move(one.bound, ({ key }, does) => {
              expect(passing.get(key), 'told without a change').toBe(!does)
              passing.set(key, does)
            })
          }
          for (const [key, does] of passing) expect(does).toBe(passes(key))
          expect(threshold.size).toBe(passing.size)
        }
      }),
    )
  })
})
