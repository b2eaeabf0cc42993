import { describe, expect, test } from 'vitest'
import { type Random, randomly } from '../../support/random.ts'
import { Model } from './lease-model.ts'

const TERMS = [
  { timeout: 10_000, tick: 2_000 },
  { timeout: 12_000, tick: 500 },
  { timeout: 1_000, tick: 500 },
]
const RUNS = 60
const DIRECTIONS = ['to the follower', 'to the client', 'to the leader', 'from the leader'] as const

/** A client that asks for all kinds of things, and a network that stops now and then. */
function arbitraryFault(model: Model, timeout: number, random: Random): () => void {
  const often = random.pick([10, 100, 1_000])
  return () => {
    const chance = random.between(1, timeout)
    if (chance <= 3) model.stall(random.pick(DIRECTIONS), random.between(0, timeout))
    else if (chance <= 3 + timeout / often) model.ask(random.pick(['read', 'read', 'sync', 'write']))
  }
}

describe('in a model of an ensemble', () => {
  test.each(TERMS)(
    'a client of %j never believes in its session for longer than the leader would if it had the last message',
    (terms) => {
      const random = randomly()
      let moved = 0
      for (let run = 0; run < RUNS; run++) {
        const model = new Model(terms, random)
        const happen = arbitraryFault(model, terms.timeout, random)
        let before = model.known
        for (let now = 0; now < 2 * terms.timeout; now++) {
          happen()
          model.step()
          if (model.believed > before) moved++
          before = model.believed
          if (before > model.granted) expect({ seed: random.seed, run, now, believed: before }).toBe(model.granted)
        }
      }
      expect(moved).toBeGreaterThan(RUNS)
    },
  )

  test.each(TERMS)('a lease of %j that is proven six times in a timeout goes on for ever', (terms) => {
    const model = new Model(terms, randomly())
    const beat = terms.timeout / 6
    for (let now = 0; now < 5 * terms.timeout; now++) {
      if (now % Math.round(beat) === 0) model.ask('sync')
      // The answer takes four ways of 10 ms at the most.
      if (now % Math.round(beat) === 50) model.ask('write')
      model.step()
      expect(model.believed).toBeGreaterThan(beat)
    }
  })
})
