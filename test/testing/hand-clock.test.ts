import { expect, test } from 'vitest'
import { ManualClock } from '../../src/testing/index.ts'

const START = new Date('2030-01-01T00:00:00Z')

test('stands still until it is turned', () => {
  const clock = new ManualClock({ now: START })
  expect(clock.now()).toBe(START.getTime())
  clock.advance('1.5h')
  expect(clock.now() - START.getTime()).toBe(5_400_000)
  expect(clock.monotonic()).toBe(clock.now())
})

test('wakes in order, each at its time, and those that are set meanwhile', () => {
  const clock = new ManualClock({ now: new Date(0) })
  const rang: [string, number][] = []
  const ring = (name: string) => () => rang.push([name, clock.now()])
  clock.alarm(20, { kind: 'pause', ring: ring('second') })
  clock.alarm(10, {
    kind: 'delay',
    ring: () => {
      ring('first')()
      clock.alarm(30, { kind: 'pause', ring: ring('third') })
      clock.alarm(31, { kind: 'pause', ring: ring('too late') })
    },
  })
  clock.alarm(15, { kind: 'deadline', ring: ring('never') })[Symbol.dispose]()
  expect(clock.alarms).toEqual([
    { at: new Date(10), kind: 'delay' },
    { at: new Date(20), kind: 'pause' },
  ])
  clock.advance(40)
  expect(rang).toEqual([
    ['first', 10],
    ['second', 20],
    ['third', 40],
  ])
  expect(clock.alarms).toEqual([{ at: new Date(41), kind: 'pause' }])
})

test('turns on to the next of a kind', () => {
  const clock = new ManualClock({ now: new Date(0) })
  const rang: string[] = []
  for (const kind of ['deadline', 'delay'] as const) clock.alarm(10, { kind, ring: () => rang.push(kind) })
  clock.alarm(20, { kind: 'delay', ring: () => rang.push('later') })
  expect(clock.advanceToNext('pause')).toBe(false)
  expect(clock.now()).toBe(0)
  expect(clock.advanceToNext('delay')).toBe(true)
  expect(rang).toEqual(['deadline', 'delay'])
  expect(clock.advanceToNext()).toBe(true)
  expect([clock.now(), clock.advanceToNext()]).toEqual([20, false])
})

test('reports when a caller waits, and gives up waiting for that', async () => {
  const clock = new ManualClock()
  const waiting = clock.awaited('pause')
  clock.alarm(5, { kind: 'deadline', ring: () => undefined })
  clock.alarm(7, { kind: 'pause', ring: () => undefined })
  expect(await waiting).toBe(7)
  expect(await clock.awaited('pause')).toBe(7)
  await expect(clock.awaited('delay', { within: 1 })).rejects.toThrow(
    'not within 1 ms: no alarm of kind delay is set (set: deadline, pause)',
  )
})

test('skips a kind for as long as it is asked to', async () => {
  const clock = new ManualClock({ now: new Date(0) })
  const rung: number[] = []
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      clock.alarm(ms, { kind: 'pause', ring: () => resolve(void rung.push(clock.now())) })
    })
  {
    const before = pause(100)
    using _skipping = clock.skip('pause')
    using _twice = clock.skip('pause')
    await before
    await Promise.all([pause(50), pause(10)])
  }
  expect(rung).toEqual([100, 110, 150])
  void pause(1)
  await new Promise((resolve) => setImmediate(resolve))
  expect(clock.now()).toBe(150)
})

test.each([
  ['advance: "soon" is not a duration', () => new ManualClock().advance('soon' as '1s')],
  ['a ManualClock: now has to be a Date', () => new ManualClock({ now: new Date('never') })],
])('refuses what makes no sense: %s', (message, misuse) => {
  expect(misuse).toThrow(message)
})
