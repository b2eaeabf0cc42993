/** What is left when a retry gives up, and what retries know; TaskFlow's tests where it has one. */
import { describe, expect, test } from 'vitest'
import {
  type AnyRetry,
  alwaysRevert,
  alwaysRevertAll,
  backOff,
  forEach,
  type History,
  input,
  linear,
  parameterizedForEach,
  retry,
  task,
  times,
  unordered,
} from '../../src/flow/index.ts'
import { broken, done, failing, progressing, tell, undone } from './traces.ts'
import { fails, TaskRecorder } from './workshop.ts'

const theirs = { deferReverts: false }

/** Notes what it is given and fails. */
function using(seen: unknown[]) {
  return task('use', {
    requires: ['x'],
    execute: ({ x }: { x: unknown }) => {
      seen.push(x)
      return fails('Woot!')()
    },
  })
}

describe('giving up', () => {
  const inner = (retries: AnyRetry) =>
    linear({ name: 'inner', retry: retries }, input(), progressing('b'), failing('c'))

  test.each([
    { deferReverts: false, reverted: ['c', 'b', 'r'] },
    { deferReverts: true, reverted: ['c', 'b', 'r', 'a'] },
  ])('with deferReverts: $deferReverts reverts $reverted', async ({ deferReverts, reverted }) => {
    await using shop = new TaskRecorder()
    const flow = linear('f', input(), progressing('a'), inner(times(1, { name: 'r' })))
    const { moves, ending } = await tell(shop, flow, { deferReverts })
    const before = ['flow RUNNING', ...done('a'), ...done('r', 1), ...done('b'), ...broken('c')]
    expect(moves).toEqual([...before, ...undone(...reverted), 'flow REVERTED'])
    expect(ending).toMatchObject({ state: 'REVERTED', error: { message: 'Woot!' } })
  })

  test.each([
    ['alwaysRevert', alwaysRevert({ name: 'r' }), 'a SUCCESS'],
    ['alwaysRevertAll', alwaysRevertAll({ name: 'r' }), 'a REVERTED'],
    ['times', times(1, { name: 'r' }), 'a SUCCESS'],
    ['times with revertAll', times(1, { name: 'r', revertAll: true }), 'a REVERTED'],
    ['forEach', forEach([1, 2], { name: 'r' }), 'a SUCCESS'],
    ['forEach with revertAll', forEach([1, 2], { name: 'r', revertAll: true }), 'a REVERTED'],
    ['backOff', backOff({ name: 'r', attempts: 1 }), 'a SUCCESS'],
  ])('as %s of a flow within, by TaskFlow’s default', async (_what, retries, left) => {
    await using shop = new TaskRecorder()
    await tell(shop, linear('f', input(), progressing('a'), inner(retries)), theirs)
    const states = await shop.states()
    expect(states).toContain(left)
    expect(states).toMatch(/^REVERTED/)
  })

  test.each([false, true])('with values from outside and revertAll: %s', async (revertAll) => {
    await using shop = new TaskRecorder()
    const retries = parameterizedForEach({ name: 'r', revertAll })
    const within = linear({ name: 'inner', retry: retries }, input<{ values: unknown[] }>(), failing('c'))
    const flow = linear('f', input<{ values: unknown[] }>(), progressing('a'), within)
    await tell(shop, flow, { ...theirs, store: { values: [1, 2] } })
    expect(await shop.states()).toContain(revertAll ? 'a REVERTED' : 'a SUCCESS')
  })

  test('for good is not overridden by a retry further out', async () => {
    await using shop = new TaskRecorder()
    const outer = { name: 'f', retry: times(3, { name: 'r1' }) }
    const { moves } = await tell(shop, linear(outer, input(), progressing('a'), inner(alwaysRevertAll())))
    expect(moves).not.toContain('r1 RETRYING')
    expect(moves.slice(-1)).toEqual(['flow REVERTED'])
    expect(moves).toContain('a REVERTED')
  })

  test.each([1, 16])(
    'for good, in one of two flows side by side, wins over the other’s next attempt: %i',
    async (n) => {
      await using shop = new TaskRecorder()
      const one = linear({ name: 'one', retry: alwaysRevertAll() }, input(), failing('t1'))
      const two = linear({ name: 'two', retry: times(5) }, input(), failing('t2'))
      const flow = linear('f', input(), progressing('first'), unordered('both', input(), one, two))
      const { ending } = await tell(shop, flow, { concurrency: n })
      expect(ending.state).toBe('REVERTED')
      const { atoms } = await shop.detail()
      expect(atoms.map(({ state }) => state).filter((state) => state !== 'PENDING' && state !== 'REVERTED')).toEqual([])
      expect(atoms[0]).toMatchObject({ name: 'first', state: 'REVERTED' })
    },
  )
})

test('a flow that was REVERTED executes and fails again when it is run again', async () => {
  await using shop = new TaskRecorder()
  const flow = linear({ name: 'f', retry: times(2, { name: 'r' }) }, input(), progressing('a'), failing('b'))
  for (const _time of [1, 2]) {
    const { moves, ending } = await tell(shop, flow)
    expect(ending).toMatchObject({ state: 'REVERTED', error: { message: 'Woot!' } })
    expect(moves.filter((move) => move === 'b RUNNING')).toHaveLength(2)
  }
})

describe('for each', () => {
  test.each([
    ['a list, equal values once each', [3, 2, 3, 5], [3, 2, 3, 5]],
    ['a set', new Set([3, 2, 5]), [3, 2, 5]],
    ['values that are no scalars', [{ a: [1] }, { a: [2] }, { a: [1] }], [{ a: [1] }, { a: [2] }, { a: [1] }]],
    ['undefined', [undefined, 1], [undefined, 1]],
  ])('tries %s', async (_what, values: Iterable<unknown>, tried) => {
    await using shop = new TaskRecorder()
    const seen: unknown[] = []
    const flow = linear({ name: 'f', retry: forEach(values, { provides: 'x' }) }, input(), using(seen))
    expect((await tell(shop, flow)).ending.state).toBe('REVERTED')
    expect(seen).toEqual(tried)
  })

  test('of nothing fails with NotFound', async () => {
    await using shop = new TaskRecorder()
    const seen: unknown[] = []
    const flow = linear({ name: 'f', retry: forEach([], { provides: 'x' }) }, input(), using(seen))
    const { ending } = await tell(shop, flow)
    expect(ending.failures).toMatchObject([{ code: 'JOBBOARD_NOT_FOUND' }])
    expect(seen).toEqual([])
  })

  test('takes its values from what is provided, under their own name or another', async () => {
    const own = (seen: unknown[]) =>
      linear({ name: 'f', retry: parameterizedForEach({ provides: 'x' }) }, input<{ values: unknown[] }>(), using(seen))
    const bound = (seen: unknown[]) =>
      linear(
        { name: 'f', retry: parameterizedForEach({ from: 'hosts', provides: 'x' }) },
        input<{ hosts: unknown[] }>(),
        using(seen),
      )
    for (const [make, name] of [
      [own, 'values'],
      [bound, 'hosts'],
    ] as const) {
      const seen: unknown[] = []
      await using shop = new TaskRecorder()
      await tell(shop, make(seen), { store: { [name]: [3, 2, 3] } })
      expect(seen).toEqual([3, 2, 3])
      await using empty = new TaskRecorder()
      const { ending } = await tell(empty, make(seen), { store: { [name]: [] } })
      expect(ending.failures).toMatchObject([{ code: 'JOBBOARD_NOT_FOUND' }])
    }
  })
})

describe('a retry that fails', () => {
  test('in execute has no attempt in its history, and its failure', async () => {
    await using shop = new TaskRecorder()
    const histories: History[] = []
    const bad = retry('r', {
      provides: 'x',
      execute: () => Promise.reject(new TypeError('bad retry')),
      onFailure: () => 'RETRY',
      revert: (_args, { history }) => histories.push(history),
    })
    const { moves, ending } = await tell(shop, linear({ name: 'f', retry: bad }, input(), progressing('a')))
    expect(moves).toEqual(['flow RUNNING', ...broken('r'), ...undone('r'), 'flow REVERTED'])
    expect(ending.error).toBeInstanceOf(TypeError)
    const [history] = histories
    expect([history?.length, history?.failure?.message]).toEqual([0, 'bad retry'])
    expect(history?.causedBy('TypeError', { includeRetry: true })).toBe(true)
    expect(history?.causedBy('TypeError')).toBe(false)
  })

  test('in revert ends the flow as FAILURE', async () => {
    await using shop = new TaskRecorder()
    const bad = retry('r', { execute: () => 1, onFailure: () => 'REVERT', revert: fails('stuck') })
    const { ending } = await tell(shop, linear({ name: 'f', retry: bad }, input(), failing('a')))
    expect(ending).toMatchObject({ state: 'FAILURE', revertFailures: [{ message: 'stuck' }] })
  })

  test.each([
    ['no decision', 'RETRYY', 'onFailure must return one of RETRY, REVERT, REVERT_ALL'],
    ['a wait that is none', { decision: 'RETRY', after: 'soon' }, 'the wait of retry r: "soon" is not a duration'],
  ])('by answering %s gives up, and says why', async (_what, answer, message) => {
    await using shop = new TaskRecorder()
    const bad = retry('r', { execute: () => 1, onFailure: () => answer as never })
    const { ending } = await tell(shop, linear({ name: 'f', retry: bad }, input(), failing('a')))
    expect(ending.state).toBe('REVERTED')
    expect(ending.failures).toContainEqual(expect.objectContaining({ message: expect.stringContaining(message) }))
  })

  test('in onFailure gives up, and says why', async () => {
    await using shop = new TaskRecorder()
    const bad = retry('r', { execute: () => 1, onFailure: fails('no idea') })
    const { ending } = await tell(shop, linear({ name: 'f', retry: bad }, input(), failing('a')))
    expect(ending.state).toBe('REVERTED')
    expect(ending.failures.map(({ message }) => message).sort()).toEqual(['Woot!', 'no idea'])
  })
})

test('a history has each attempt with its value and the first failure of each atom', async () => {
  await using shop = new TaskRecorder()
  const seen: unknown[] = []
  const asking = retry('r', {
    provides: 'x',
    execute: (_args, { history }) => history.length * 10,
    onFailure: (_args, { history, failure, atom }) => {
      seen.push([history.provided, history.attempts.map(({ failures }) => failures.map((known) => known.atom)), atom])
      return failure.message === 'Woot!' && history.length < 2 ? 'RETRY' : 'REVERT'
    },
  })
  await tell(shop, linear({ name: 'f', retry: asking }, input(), failing('a')))
  expect(seen).toEqual([
    [[0], [['a']], 'a'],
    [[0, 10], [['a'], ['a']], 'a'],
  ])
  const [record] = (await shop.detail()).atoms
  expect(record?.history).toMatchObject([
    { value: 0, failures: [{ atom: 'a', failure: { message: 'Woot!' } }] },
    { value: 10, failures: [{ atom: 'a' }] },
  ])
})
