import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FifoQueue } from '../../../src/core/collections/fifo.ts'

test('a fifo gives back what it was given, in order, whatever the rhythm', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat({ max: 3_000 }), fc.nat({ max: 3_000 })), { maxLength: 8 }), (rounds) => {
      const fifo = new FifoQueue<number>()
      const model: number[] = []
      let next = 0
      for (const [pushes, shifts] of rounds) {
        for (let push = 0; push < pushes; push++) {
          fifo.push(next)
          model.push(next)
          next++
        }
        const taken = Array.from({ length: shifts }, () => fifo.shift())
        const expected = model.splice(0, shifts)
        expect(taken.filter((item) => item !== undefined)).toEqual(expected)
        expect(fifo.size).toBe(model.length)
      }
      expect(fifo.drain()).toEqual(model)
      expect(fifo.size).toBe(0)
    }),
    { numRuns: 50 },
  )
})
