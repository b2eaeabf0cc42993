/** Slots that several boards share: who is asked next, and what becomes of slots whose board goes away. */
import { describe, expect, test } from 'vitest'
import { type Lane, Slots, type SlotsOptions } from '../../../src/conductor/claiming/slots.ts'

/** Lanes whose boards are there and wait for their turn. */
function lanesOf(options: Partial<SlotsOptions>, weights: readonly (number | undefined)[]) {
  const isWeighted = weights.some((weight) => weight !== undefined)
  const slots = new Slots({ count: 1, burst: false, isWeighted, ...options })
  const lanes = weights.map((weight) => slots.addLane({ weight }))
  for (const lane of lanes) slots.setConnection(lane, 'there')
  return { slots, lanes }
}

/** Asks for a turn; resolves with undefined while it is not this board's turn. */
async function ask(slots: Slots, lane: Lane): Promise<number | undefined> {
  const stop = new AbortController()
  const turn = slots.turn(lane, { canAsk: () => true, signal: stop.signal })
  const granted = await Promise.race([
    turn,
    new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined))),
  ])
  if (granted === undefined) {
    turn.catch(() => undefined)
    stop.abort()
  }
  return granted
}

describe('in order', () => {
  test('a later board is asked once the earlier ones had nothing', async () => {
    const { slots, lanes } = lanesOf({ count: 3 }, [undefined, undefined])
    const [first, second] = lanes as [Lane, Lane]
    first.state = 'ready'
    const waiting = slots.turn(second, { canAsk: () => true, signal: new AbortController().signal })
    expect(await ask(slots, first)).toBe(3)
    slots.begin(first)
    slots.endTurn(first)
    expect(await ask(slots, first)).toBe(2)
    slots.setIdle(first)
    expect(await waiting).toBe(2)
  })

  test('a board that is away holds up nobody, and gives its slots back', async () => {
    const { slots, lanes } = lanesOf({ count: 2 }, [undefined, undefined])
    const [first, second] = lanes as [Lane, Lane]
    expect(await ask(slots, first)).toBe(2)
    expect(await ask(slots, second)).toBeUndefined()
    slots.setConnection(first, 'away')
    expect(await ask(slots, second)).toBe(2)
  })

  test('a claim that is granted after its slot went to another board is given back', async () => {
    const { slots, lanes } = lanesOf({ count: 2 }, [undefined, undefined])
    const [first, second] = lanes as [Lane, Lane]
    await ask(slots, first)
    slots.setConnection(first, 'away')
    await ask(slots, second)
    expect([1, 2].map(() => slots.begin(second))).toEqual([true, true])
    slots.setConnection(first, 'there')
    expect(slots.begin(first)).toBe(false)
    expect(slots.running).toBe(2)
  })

  test('a claim that is granted late takes a slot that is free', async () => {
    const { slots, lanes } = lanesOf({ count: 2 }, [undefined, undefined])
    const [first] = lanes as [Lane, Lane]
    await ask(slots, first)
    slots.setConnection(first, 'away')
    expect(slots.begin(first)).toBe(true)
    expect(slots.running).toBe(1)
  })
})

describe('by weight', () => {
  test.each([
    { weights: [3, 1], order: 'ABAAABAA' },
    { weights: [2, 1, 1], order: 'ABCAABCA' },
    { weights: [1, undefined], order: 'ABABABAB' },
  ])('claims are shared $weights', async ({ weights, order }) => {
    const { slots, lanes } = lanesOf({}, weights)
    const loops = lanes.map(async (lane, index) => {
      const stop = new AbortController()
      return { name: 'ABC'[index] ?? '', lane, stop }
    })
    const boards = await Promise.all(loops)
    // Each board has jobs all the time.
    for (const { lane } of boards) lane.state = 'ready'
    let asked = ''
    while (asked.length < order.length) {
      for (const { name, lane } of boards) {
        if ((await ask(slots, lane)) === undefined) continue
        slots.begin(lane)
        slots.endTurn(lane)
        slots.noteEnded()
        asked += name
        break
      }
    }
    expect(asked).toBe(order)
  })

  test('free slots are divided at once', async () => {
    const { slots, lanes } = lanesOf({ count: 8 }, [3, 1])
    const [first, second] = lanes as [Lane, Lane]
    first.state = 'ready'
    second.state = 'ready'
    expect([await ask(slots, second), await ask(slots, first)]).toEqual([2, 6])
  })

  test('a board that had nothing does not catch up', async () => {
    const { slots, lanes } = lanesOf({ count: 100 }, [1, 1])
    const [first, second] = lanes as [Lane, Lane]
    await ask(slots, first)
    for (let n = 0; n < 50; n += 1) slots.begin(first)
    slots.endTurn(first)
    first.state = 'ready'
    expect(await ask(slots, second)).toBe(25)
  })
})

describe('the end', () => {
  const signal = new AbortController().signal

  test('with maxJobs, no board gets more slots than jobs are left', async () => {
    const { slots, lanes } = lanesOf({ count: 8, maxJobs: 3 }, [1, 1])
    const [first, second] = lanes as [Lane, Lane]
    const over = slots.whenOver(signal)
    expect(await ask(slots, first)).toBe(3)
    const claims = [1, 2, 3]
    for (const _ of claims) slots.begin(first)
    slots.endTurn(first)
    expect(await ask(slots, second)).toBeUndefined()
    for (const _ of claims) slots.noteEnded()
    expect(await over).toBe('it has claimed maxJobs (3) jobs')
  })

  test('with burst, it is over when nothing is left on any board that is there', async () => {
    const { slots, lanes } = lanesOf({ burst: true }, [undefined, undefined, undefined])
    const [first, second, third] = lanes as [Lane, Lane, Lane]
    slots.setConnection(third, 'lost')
    const over = slots.whenOver(signal)
    await ask(slots, first)
    slots.setIdle(first)
    slots.noteExhausted(first)
    await ask(slots, second)
    slots.begin(second)
    slots.setIdle(second)
    slots.noteExhausted(second)
    // Its end may have made others claimable.
    const woken = Promise.all([first.wake.wait(), second.wake.wait()])
    slots.noteEnded()
    await woken
    expect([first.isExhausted, second.isExhausted]).toEqual([false, false])
    slots.noteExhausted(first)
    slots.noteExhausted(second)
    expect(await over).toBe('no job is left to claim, and burst is set')
  })
})
