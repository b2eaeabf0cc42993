/** TaskFlow's five points at which a process may die between a failure and what follows from it, and two more. */
import { describe, expect, test } from 'vitest'
import { input, linear, times, unordered } from '../../src/flow/index.ts'
import type { AtomDetail } from '../../src/persistence/index.ts'
import { done, failing, progressing, tell, undone } from './traces.ts'
import { TaskRecorder } from './workshop.ts'

const failure = { name: 'Error', message: 'Woot!' }
const attempt = { value: 1, failures: [] }
const failed = { value: 1, failures: [{ atom: 't2', failure }] }

function record(name: string, facts: Partial<AtomDetail>): AtomDetail {
  const kind = name === 'r' ? 'retry' : 'task'
  return {
    name,
    kind,
    version: '1.0',
    state: 'PENDING',
    intention: 'EXECUTE',
    meta: {},
    updatedAt: new Date(),
    ...facts,
  }
}

const r = (facts: Partial<AtomDetail>) => record('r', { state: 'SUCCESS', result: 1, history: [failed], ...facts })
const t1 = (facts: Partial<AtomDetail>) => record('t1', { state: 'SUCCESS', result: 5, ...facts })
const t2 = (facts: Partial<AtomDetail>) => record('t2', { state: 'FAILURE', failure, ...facts })
const undo = { intention: 'REVERT' } as const

const secondAttempt = [...done('r', 2), ...done('t1'), ...done('t2'), 'flow SUCCESS']
const retried = ['r RETRYING', 't1 PENDING', 't2 PENDING', ...secondAttempt]

describe.each([
  ['the task had failed', [r({ history: [attempt] }), t1({}), t2({})], [...undone('t2', 't1'), ...retried]],
  ['its retry was asked', [r({}), t1({}), t2({})], [...undone('t2', 't1'), ...retried]],
  ['its retry was to try again', [r({ intention: 'RETRY' }), t1({}), t2({})], [...undone('t2', 't1'), ...retried]],
  [
    'the tasks were to be reverted',
    [r({ intention: 'RETRY' }), t1(undo), t2(undo)],
    [...undone('t2', 't1'), ...retried],
  ],
  [
    'the revert was under way',
    [r({ intention: 'RETRY' }), t1(undo), t2({ ...undo, state: 'REVERTING' })],
    ['t2 REVERTED', ...undone('t1'), ...retried],
  ],
  [
    'all was reverted',
    [r({ intention: 'RETRY' }), t1({ ...undo, state: 'REVERTED' }), t2({ ...undo, state: 'REVERTED' })],
    retried,
  ],
  [
    'it was trying again',
    [r({ state: 'RETRYING', intention: 'RETRY' }), t1({}), t2({ ...undo, state: 'REVERTED' })].map((atom) =>
      atom.name === 't1' ? record('t1', {}) : atom,
    ),
    ['t2 PENDING', ...secondAttempt],
  ],
] as const)('killed when %s', (_when, atoms, follows) => {
  test('the next engine goes on as the last one would have', async () => {
    await using shop = new TaskRecorder()
    const flow = linear({ name: 'f', retry: times(3, { name: 'r' }) }, input(), progressing('t1'), failing('t2', 0))
    await shop.forge(flow, { state: 'RUNNING', atoms })
    const { moves, ending } = await tell(shop, flow)
    expect(moves.slice(moves.indexOf('flow RUNNING') + 1)).toEqual(follows)
    expect(ending.failures).toEqual([])
    expect((await shop.detail()).atoms[0]?.history).toMatchObject([
      { value: 1, failures: [{ atom: 't2' }] },
      { value: 2 },
    ])
  })
})

test('without deferReverts a flow within that was given up is all that is reverted, also by the next engine', async () => {
  await using shop = new TaskRecorder()
  const inner = linear({ name: 'inner', retry: times(1, { name: 'r' }) }, input(), progressing('t1'), failing('t2'))
  const flow = unordered('f', input(), progressing('beside'), inner)
  const beside = record('beside', { state: 'SUCCESS', result: 5 })
  await shop.forge(flow, { state: 'RUNNING', atoms: [beside, r(undo), t1(undo), t2({ ...undo, state: 'REVERTED' })] })
  const { ending } = await tell(shop, flow, { deferReverts: false })
  expect(ending.state).toBe('REVERTED')
  expect(await shop.states()).toBe('REVERTED, beside SUCCESS, r REVERTED, t1 REVERTED, t2 REVERTED')
})
