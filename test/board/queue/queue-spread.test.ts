import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Priority, pickAtRandom } from '../../../src/board/model/claim-order.ts'
import { randomly } from '../../support/random.ts'
import { claimable, createEntry, createQueue, entryNames, everything } from './entries.ts'

function queueOfNumbers(counts: Partial<Record<Priority, number>>) {
  const names = Object.entries(counts).flatMap(([priority, count]) => {
    return Array.from({ length: count }, (_, at) =>
      createEntry({ name: `${priority} ${at}`, priority: priority as Priority }),
    )
  })
  return createQueue(...names)
}

describe('spreading', () => {
  test('picks among the first of the first priority, every one of them sometimes, and keeps claim order', () => {
    const queue = queueOfNumbers({ HIGH: 20, NORMAL: 20 })
    const random = randomly()
    const seen = new Set<string>()
    for (let round = 0; round < 200; round += 1) {
      const names = claimable(queue, { max: 2, spread: 2.5, random: random.next })
      expect(names).toHaveLength(2)
      expect(names).toEqual(names.toSorted())
      for (const name of names) seen.add(name)
    }
    expect([...seen].toSorted(), `seed ${random.seed}`).toEqual([0, 1, 2, 3, 4].map((at) => `HIGH ${at}`))
  })

  test('rounds up how many it picks among', () => {
    const queue = queueOfNumbers({ NORMAL: 3 })
    const picked = [0, 0.5, 0.99].map((chance) => claimable(queue, { max: 1, spread: 1.1, random: () => chance })[0])
    expect(new Set(picked)).toEqual(new Set(['NORMAL 0', 'NORMAL 1']))
  })

  test('does not reach into the next priority while the first one has enough', () => {
    const queue = queueOfNumbers({ HIGH: 3, NORMAL: 20 })
    const random = randomly()
    for (let round = 0; round < 50; round += 1) {
      for (const name of claimable(queue, { max: 2, spread: 10, random: random.next })) expect(name).toMatch(/^HIGH/)
    }
  })

  test('goes on in order where the first priority has not enough', () => {
    const queue = queueOfNumbers({ HIGH: 2, NORMAL: 1, LOW: 20 })
    const random = randomly()
    for (let round = 0; round < 50; round += 1) {
      expect(claimable(queue, { max: 5, spread: 4, random: random.next })).toEqual([
        'HIGH 0',
        'HIGH 1',
        'NORMAL 0',
        'LOW 0',
        'LOW 1',
      ])
    }
  })

  test('counts what is accepted only', () => {
    const queue = queueOfNumbers({ HIGH: 4, NORMAL: 4 })
    const names = claimable(queue, { max: 4, spread: 3, accept: ({ name }) => !name.startsWith('HIGH') })
    expect(names).toEqual(['NORMAL 0', 'NORMAL 1', 'NORMAL 2', 'NORMAL 3'])
  })

  test('without it, what comes first is taken, whatever chance says', () => {
    const queue = queueOfNumbers({ NORMAL: 5 })
    expect(claimable(queue, { max: 2, random: () => 0.99 })).toEqual(['NORMAL 0', 'NORMAL 1'])
  })

  test('takes everything where there is no limit', () => {
    expect(claimable(queueOfNumbers({ HIGH: 2, LOW: 2 }), { spread: 2 })).toHaveLength(4)
  })

  test('gives one suspect at most, and keeps those that it passed over', () => {
    const queue = createQueue(
      ...Array.from({ length: 6 }, (_, at) => createEntry({ name: `${at}`, deaths: at < 3 ? 2 : 0 })),
    )
    const random = randomly()
    for (let round = 0; round < 50; round += 1) {
      const places = queue.reserveNext({ ...everything, max: 3, spread: 2, random: random.next })
      expect(entryNames(places).filter((name) => Number(name) < 3).length).toBeLessThanOrEqual(1)
      queue.unreserve(places)
    }
    expect(claimable(queue)).toEqual(['0', '3', '4', '5'])
  })
})

test('picking at random gives so many different ones of those that are there', () => {
  const chance = fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 1 })
  fc.assert(
    fc.property(fc.nat(30), fc.nat(30), chance, (size, count, draws) => {
      const items = Array.from({ length: size }, (_, at) => at)
      let drawn = 0
      const random = () => draws[drawn++ % draws.length] ?? 0
      const picked = pickAtRandom(items, { count, random })
      expect(new Set(picked).size).toBe(Math.min(size, count))
      for (const one of picked) expect(items).toContain(one)
      expect(items).toHaveLength(size)
    }),
  )
})

test('picking one at random gives each of them the same chance', () => {
  const items = ['a', 'b', 'c', 'd']
  const picked = items.map((_, at) => pickAtRandom(items, { count: 1, random: () => (at + 0.5) / items.length }))
  expect(picked).toEqual(items.map((one) => [one]))
})
