/** Jobs that wait for limits: which may start, in which order, and that the others cost nothing. */
import { describe, expect } from 'vitest'
import type { JobEntry } from '../../../src/board/model/entry.ts'
import type { LimitRule, LimitRules } from '../../../src/board/model/limits.ts'
import type { ClaimQueue } from '../../../src/board/queue/queue.ts'
import { usual as test, variant } from '../../variant.ts'
import { change, claimable, createEntry, createQueue, type EntryOptions, entryNames, everything } from './entries.ts'

const NOW = 1_800_000_000_000
const INTERVAL_MS = 1_000

const rulesOf = (rules: Readonly<Record<string, LimitRule>>): LimitRules => ({
  isEmpty: Object.keys(rules).length === 0,
  isFair: Object.values(rules).some(({ fair }) => fair !== undefined),
  ruleOf: (key) => rules[key],
})

function limited(name: string, limits: EntryOptions['limits'] & object, options: EntryOptions = {}): JobEntry {
  return createEntry({ name, limits, ...options })
}

function queueOf(rules: Readonly<Record<string, LimitRule>>, entries: readonly JobEntry[]): ClaimQueue {
  const queue = createQueue(...entries)
  queue.advance(NOW)
  queue.setLimits(rulesOf(rules), entries)
  return queue
}

function namesOf(names: string, limits: EntryOptions['limits'] & object): JobEntry[] {
  return names.split('').map((name) => limited(name, limits))
}

describe('slots', () => {
  test('so many jobs can be claimed as there are slots, first come, first served', () => {
    const entries = namesOf('abcd', ['k'])
    const queue = queueOf({ k: { concurrency: 2 } }, entries)
    expect(claimable(queue)).toEqual(['a', 'b'])
    const [a, b] = entries
    if (!a || !b) throw new Error('no entries')
    change(queue, a, { claimed: true })
    expect(claimable(queue)).toEqual(['b'])
    change(queue, b, { claimed: true })
    expect(claimable(queue)).toEqual([])
    change(queue, a, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['c'])
  })

  test('jobs of which a claim is tried have their slots, until the trial has ended', () => {
    const queue = queueOf({ k: { concurrency: 2 } }, namesOf('abcd', ['k']))
    const tried = queue.reserveNext({ ...everything, max: 1 })
    expect(entryNames(tried)).toEqual(['a'])
    expect(claimable(queue)).toEqual(['b'])
    queue.endTrials(tried)
    queue.unreserve(tried)
    expect(claimable(queue)).toEqual(['a', 'b'])
  })

  test('a job of a higher priority that comes later goes first', () => {
    const queue = queueOf({ k: { concurrency: 1 } }, namesOf('ab', ['k']))
    queue.update(limited('urgent', ['k'], { priority: 'HIGH' }))
    expect(claimable(queue)).toEqual(['urgent'])
  })

  test('with two keys a job needs both, and waits for one without keeping the other', () => {
    const entries = [limited('a', ['x']), limited('xy', ['x', 'y']), limited('b', ['y']), createEntry({ name: 'free' })]
    const queue = queueOf({ x: { concurrency: 1 }, y: { concurrency: 1 } }, entries)
    expect(claimable(queue)).toEqual(['a', 'b', 'free'])
    const [a, , b] = entries
    if (!a || !b) throw new Error('no entries')
    change(queue, a, { claimed: true })
    change(queue, b, { claimed: true })
    expect(claimable(queue)).toEqual(['free'])
    change(queue, b, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['free'])
    change(queue, a, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['xy', 'free'])
  })

  test('a job that nobody here accepts keeps no other of its key waiting', () => {
    const entries = [
      ...Array.from({ length: 50 }, (_, n) => limited(`x${n}`, ['k', `own/${n}`])),
      limited('wanted', ['k']),
    ]
    const rules = Object.fromEntries(entries.map((_, n) => [`own/${n}`, { concurrency: 1 }]))
    const queue = queueOf({ ...rules, k: { concurrency: 1 } }, entries)
    const accept = ({ name }: { name: string }) => name === 'wanted'
    expect(claimable(queue, { accept })).toEqual(['wanted'])
    // Also after all of them were found without room.
    const holder = limited('holder', ['k'])
    change(queue, holder, { claimed: true })
    expect(claimable(queue)).toEqual([])
    change(queue, holder, { ended: 'COMPLETE' })
    expect(claimable(queue, { accept })).toEqual(['wanted'])
  })
})

describe('a slot that is free', () => {
  test('goes to the first job with room in all of its keys, behind any number that wait for others', () => {
    const own = Array.from({ length: 20 }, (_, n) => `own/${n}`)
    const holders = [limited('holder', ['k']), ...own.map((key) => limited(`holder of ${key}`, [key]))]
    const entries = [...own.map((key) => limited(key, ['k', key])), limited('wanted', ['k'])]
    const rules = Object.fromEntries(['k', ...own].map((key) => [key, { concurrency: 1 }]))
    const queue = queueOf(rules, entries)
    for (const entry of holders) change(queue, entry, { claimed: true })
    expect(claimable(queue)).toEqual([])
    const [holder] = holders
    if (holder) change(queue, holder, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['wanted'])
  })
})

describe('rules', () => {
  test('that change take effect at once', () => {
    const entries = namesOf('abc', ['k'])
    const queue = queueOf({}, entries)
    expect(claimable(queue)).toEqual(['a', 'b', 'c'])
    queue.setLimits(rulesOf({ k: { concurrency: 1 } }), entries)
    expect(claimable(queue)).toEqual(['a'])
    queue.setLimits(rulesOf({ k: { concurrency: 2 } }), entries)
    expect(claimable(queue)).toEqual(['a', 'b'])
    queue.setLimits(rulesOf({ k: { concurrency: 0 } }), entries)
    expect(claimable(queue)).toEqual([])
    queue.setLimits(rulesOf({}), entries)
    expect(claimable(queue)).toEqual(['a', 'b', 'c'])
  })

  test('that change while jobs are tried leave nothing reserved, and nothing too little', () => {
    const daily = { k: { rate: { intervalMs: 86_400_000, burst: 1 } } }
    const quick = { k: { rate: { intervalMs: 10, burst: 2 } } }
    for (const [before, after, free] of [
      [daily, quick, ['a', 'b']],
      [quick, daily, ['a']],
    ] as const) {
      const entries = namesOf('ab', ['k'])
      const queue = queueOf(before, entries)
      const tried = queue.reserveNext({ ...everything, max: 1 })
      queue.setLimits(rulesOf(after), entries)
      queue.endTrials(tried)
      queue.unreserve(tried)
      expect(claimable(queue)).toEqual(free)
    }
  })

  test('a key that is stopped keeps no job that was cancelled, and other keys keep it as before', () => {
    const hold = { id: 'k', by: 'ada', at: 0 }
    const entries = [limited('a', ['k']), limited('b', ['k', 'full']), limited('c', ['zero']), limited('d', ['k'])]
    const rules = { k: { heldUntil: Number.POSITIVE_INFINITY, hold }, full: { heldUntil: NOW + 500 } }
    const queue = queueOf({ ...rules, zero: { concurrency: 0 } }, entries)
    expect(claimable(queue)).toEqual([])
    for (const entry of entries.slice(0, 3)) change(queue, entry, { cancelRequested: true })
    expect(claimable(queue)).toEqual(['a', 'c'])
    queue.setLimits(rulesOf({ k: { heldUntil: Number.POSITIVE_INFINITY } }), entries)
    // Without a readable hold it is a setting of a newer release, which is kept.
    expect(claimable(queue)).toEqual(['c'])
  })

  test('a key that is held starts nothing before its time', () => {
    const queue = queueOf({ k: { heldUntil: NOW + 500 } }, namesOf('a', ['k']))
    expect(claimable(queue)).toEqual([])
    expect(queue.nextDue).toBe(NOW + 500)
    queue.advance(NOW + 500)
    expect(claimable(queue)).toEqual(['a'])
  })
})

describe('tokens', () => {
  const rate = { intervalMs: INTERVAL_MS, burst: 2 }

  test('are due at known times', () => {
    const queue = queueOf({ k: { rate } }, namesOf('abcd', ['k']))
    expect(claimable(queue)).toEqual(['a', 'b'])
    queue.noteArrival('k', NOW + 2 * INTERVAL_MS)
    expect(claimable(queue)).toEqual([])
    expect(queue.nextDue).toBe(NOW + INTERVAL_MS)
    queue.advance(NOW + INTERVAL_MS)
    expect(claimable(queue)).toEqual(['a'])
  })

  test('of a key whose rate was removed do not count when another one is set', () => {
    const entries = namesOf('a', ['k'])
    const queue = queueOf({ k: { rate } }, entries)
    queue.noteArrival('k', NOW + 86_400_000)
    expect(claimable(queue)).toEqual([])
    queue.setLimits(rulesOf({ k: { concurrency: 1 } }), entries)
    queue.setLimits(rulesOf({ k: { rate } }), entries)
    expect(claimable(queue)).toEqual(['a'])
  })

  test('a refusal of the server holds the key for a moment', () => {
    const entries = namesOf('ab', ['k'])
    const queue = queueOf({ k: { rate } }, entries)
    queue.noteLimitReached('k')
    expect(claimable(queue)).toEqual([])
    const [first] = entries
    expect(first && queue.limitOf(first)).toMatchObject({ key: 'k', until: NOW + 50, used: 0 })
    queue.advance(NOW + 50)
    expect(claimable(queue)).toEqual(['a', 'b'])
  })

  test('a job that costs many is not overtaken by cheap ones of the same keys', () => {
    const queue = queueOf({ k: { rate } }, [limited('dear', [{ key: 'k', cost: 2 }]), limited('cheap', ['k'])])
    queue.noteArrival('k', NOW + INTERVAL_MS)
    expect(claimable(queue)).toEqual([])
    queue.advance(NOW + INTERVAL_MS)
    expect(claimable(queue)).toEqual(['dear'])
  })

  test('a job that costs many is not overtaken by cheap ones of other keys, however they come', () => {
    const entries = [limited('dear', [{ key: 'k', cost: 2 }]), limited('cheap', ['k', 'other'])]
    const queue = queueOf({ k: { rate }, other: { concurrency: 9 } }, entries)
    queue.noteArrival('k', NOW + INTERVAL_MS)
    expect(claimable(queue)).toEqual([])
    for (const name of ['another', 'next']) {
      queue.update(limited(name, ['k', name]))
      expect(claimable(queue)).toEqual([])
    }
    queue.update(limited('urgent', ['k', 'other'], { priority: 'HIGH' }))
    expect(claimable(queue)).toEqual(['urgent'])
    expect(queue.nextDue).toBe(NOW + INTERVAL_MS)
    queue.advance(NOW + INTERVAL_MS)
    // The tokens of the urgent one are taken before.
    queue.noteArrival('k', NOW + 2 * INTERVAL_MS)
    expect(claimable(queue, { accept: ({ name }) => name !== 'urgent' })).toEqual([])
    queue.advance(NOW + 2 * INTERVAL_MS)
    expect(claimable(queue, { accept: ({ name }) => name !== 'urgent' })).toEqual(['dear'])
  })

  test('a job that costs many and that nobody here accepts keeps no token that it could have', () => {
    const entries = [limited('dear', [{ key: 'k', cost: 2 }]), limited('cheap', ['k', 'other'])]
    const queue = queueOf({ k: { rate }, other: { concurrency: 9 } }, entries)
    const accept = ({ name }: { name: string }) => name === 'cheap'
    expect(claimable(queue, { accept })).toEqual(['cheap'])
    queue.noteArrival('k', NOW + INTERVAL_MS)
    expect(claimable(queue, { accept })).toEqual([])
    queue.advance(NOW + INTERVAL_MS)
    expect(claimable(queue, { accept })).toEqual(['cheap'])
  })

  test('a job that waits for a slot keeps no tokens', () => {
    const entries = [limited('slot', [{ key: 'k', cost: 2 }, 'full']), limited('cheap', ['k'])]
    const queue = queueOf({ k: { rate }, full: { concurrency: 0 } }, entries)
    expect(claimable(queue)).toEqual(['cheap'])
    queue.noteArrival('k', NOW + INTERVAL_MS)
    expect(claimable(queue)).toEqual(['cheap'])
  })
})

describe('100,000 jobs of one key without room', () => {
  const MANY = 100_000

  variant('cost the others nothing, and are not looked at', () => {
    const entries = Array.from({ length: MANY }, (_, n) => limited(`many${n}`, ['full']))
    const others = Array.from({ length: 200 }, (_, n) => limited(`other${n}`, [`own/${n % 20}`]))
    const rules = Object.fromEntries(others.map((_, n) => [`own/${n}`, { concurrency: 100 }]))
    const queue = queueOf({ ...rules, full: { concurrency: 0 } }, [...entries, ...others])
    expect(claimable(queue, { max: 1 })).toEqual(['other0'])
    let looked = 0
    const accept = () => {
      looked += 1
      return true
    }
    expect(claimable(queue, { max: 5, accept })).toHaveLength(5)
    expect(looked).toBe(5)
  })

  variant('start one after the other without a look at the rest', () => {
    const entries = Array.from({ length: MANY }, (_, n) => limited(`many${n}`, ['one']))
    const queue = queueOf({ one: { concurrency: 1 } }, entries)
    let looked = 0
    const accept = () => {
      looked += 1
      return true
    }
    for (const entry of entries.slice(0, 200)) {
      const [place] = queue.reserveNext({ ...everything, accept })
      expect(place?.entry).toBe(entry)
      change(queue, entry, { claimed: true })
      if (place) queue.unreserve([place])
      change(queue, entry, { ended: 'COMPLETE' })
    }
    expect(looked).toBe(200)
  })
})

describe('keys of a fair pattern', () => {
  const FAIR = { fair: 't/*' }

  /** Starts jobs one after the other, each as soon as `at once` of them run no more, and returns their names in this order. */
  function startAll(queue: ClaimQueue, { atOnce = Number.POSITIVE_INFINITY } = {}): string[] {
    const [started, running]: [string[], JobEntry[]] = [[], []]
    while (true) {
      const [place] = queue.reserveNext({ ...everything, max: 1 })
      if (!place) return started
      started.push(place.stored.posting.name)
      change(queue, place.entry, { claimed: true })
      queue.endTrials([place])
      queue.unreserve([place])
      running.push(place.entry)
      const [oldest] = running
      if (running.length >= atOnce && oldest) change(queue, oldest, { ended: 'COMPLETE' })
      if (running.length >= atOnce) running.shift()
    }
  }

  test('take turns: the one with the fewest running jobs goes first', () => {
    const entries = [...namesOf('abcdef', ['t/greedy']), ...namesOf('xy', ['t/other'])]
    expect(startAll(queueOf({ 't/greedy': FAIR, 't/other': FAIR }, entries)).join('')).toBe('axbycdef')
  })

  test('take turns also where each job ends at once', () => {
    const entries = [...namesOf('abcdef', ['t/greedy']), ...namesOf('xy', ['t/other']), ...namesOf('pq', ['t/third'])]
    const queue = queueOf({ 't/greedy': FAIR, 't/other': FAIR, 't/third': FAIR }, entries)
    expect(startAll(queue, { atOnce: 1 }).join('')).toBe('axpbyqcdef')
  })

  test('are looked at in one search as they are in several', () => {
    const entries = [...namesOf('abcdef', ['t/1']), ...namesOf('xy', ['t/2']), ...namesOf('pqr', ['t/3'])]
    const queue = queueOf({ 't/1': FAIR, 't/2': FAIR, 't/3': FAIR }, entries)
    expect(entryNames(queue.reserveNext({ ...everything, max: 5 })).sort()).toEqual(['a', 'b', 'p', 'x', 'y'].sort())
  })

  test('jobs of other keys wait for no job that was posted after them', () => {
    const entries = [
      ...namesOf('ab', ['t/greedy']),
      createEntry({ name: 'free' }),
      ...namesOf('cd', ['t/greedy']),
      ...namesOf('xy', ['t/other']),
    ]
    expect(startAll(queueOf({ 't/greedy': FAIR, 't/other': FAIR }, entries))).toEqual([
      ...['a', 'free', 'x', 'b', 'y', 'c', 'd'],
    ])
  })

  test('a higher priority goes first, whoever has it', () => {
    const entries = [
      ...namesOf('ab', ['t/greedy']),
      ...namesOf('x', ['t/other']),
      limited('urgent', ['t/greedy'], { priority: 'HIGH' }),
      limited('more', ['t/greedy'], { priority: 'HIGH' }),
    ]
    expect(startAll(queueOf({ 't/greedy': FAIR, 't/other': FAIR }, entries))).toEqual(['urgent', 'more', 'x', 'a', 'b'])
  })

  test('share the slots of a key that all of them need', () => {
    const entries = [
      ...'abcdefgh'.split('').map((name) => limited(name, ['t/greedy', 'api'])),
      ...'xyz'.split('').map((name) => limited(name, ['t/other', 'api'])),
    ]
    const queue = queueOf({ 't/greedy': FAIR, 't/other': FAIR, api: { concurrency: 2 } }, entries)
    expect(startAll(queue, { atOnce: 2 }).join('')).toBe('axbyczdefgh')
  })

  test('share the slots of a key also where each of their jobs has a further key of its own', () => {
    const entries = [
      ...'abcdefgh'.split('').map((name) => limited(name, ['t/greedy', 'api', `own/${name}`])),
      ...'xyz'.split('').map((name) => limited(name, ['t/other', 'api', `own/${name}`])),
    ]
    const own = Object.fromEntries('abcdefghxyz'.split('').map((name) => [`own/${name}`, { concurrency: 1 }]))
    const queue = queueOf({ ...own, 't/greedy': FAIR, 't/other': FAIR, api: { concurrency: 2 } }, entries)
    expect(startAll(queue, { atOnce: 2 }).join('')).toBe('axbyczdefgh')
  })

  test('are opened in turns when several slots of a key that all of them need become free', () => {
    const holders = namesOf('12', ['api'])
    const waiting = [
      ...'abc'.split('').map((name) => limited(name, ['t/greedy', 'api', `own/${name}`])),
      limited('x', ['t/other', 'api', 'own/x']),
    ]
    const own = Object.fromEntries('abcx'.split('').map((name) => [`own/${name}`, { concurrency: 1 }]))
    const entries = [...holders, ...waiting]
    const queue = queueOf({ ...own, 't/greedy': FAIR, 't/other': FAIR, api: { concurrency: 2 } }, entries)
    for (const holder of holders) change(queue, holder, { claimed: true })
    expect(claimable(queue)).toEqual([])
    for (const holder of holders) change(queue, holder, { ended: 'COMPLETE' })
    expect(claimable(queue, { max: 2 })).toEqual(['a', 'x'])
  })

  test('keep their turns where there are more of them than are looked at one by one', () => {
    const keys = Array.from({ length: 100 }, (_, n) => `t/${n}`)
    const entries = keys.flatMap((key) => namesOf('abc', [key]))
    const queue = queueOf(Object.fromEntries(keys.map((key) => [key, FAIR])), entries)
    expect(startAll(queue, { atOnce: 7 }).join('')).toBe('a'.repeat(100) + 'b'.repeat(100) + 'c'.repeat(100))
  })

  test('take turns from the moment on at which that is set, and no longer when it is removed', () => {
    const entries = [...namesOf('abc', ['t/greedy']), ...namesOf('xy', ['t/other'])]
    const queue = queueOf({ 't/greedy': { concurrency: 9 }, 't/other': { concurrency: 9 } }, entries)
    expect(claimable(queue).join('')).toBe('abcxy')
    queue.setLimits(rulesOf({ 't/greedy': FAIR, 't/other': FAIR }), entries)
    expect(claimable(queue).join('')).toBe('axbyc')
    queue.setLimits(rulesOf({ 't/greedy': { concurrency: 9 } }), entries)
    expect(claimable(queue).join('')).toBe('abcxy')
  })

  test('of very many keys only those are looked at whose turn may have come', () => {
    const rules = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`t/${n}`, FAIR]))
    const entries = Array.from({ length: 10_000 }, (_, n) => limited(`job ${n}`, [`t/${n % 5_000}`]))
    const queue = queueOf(rules, entries)
    let looks = 0
    const accept = () => {
      looks += 1
      return true
    }
    for (let n = 0; n < 1_000; n += 1) {
      const [place] = queue.reserveNext({ ...everything, accept, max: 1 })
      expect(place?.stored.posting.name).toBe(`job ${n}`)
      if (place) change(queue, place.entry, { claimed: true })
    }
    expect(looks).toBe(1_000)
  })
})
