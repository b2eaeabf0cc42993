import { describe, expect, test } from 'vitest'
import { decide, type RunEnding, type Verdict } from '../../../src/conductor/runs/decide.ts'
import { Cancelled, InvalidArgument, NonRetryable, StorageFailure } from '../../../src/core/errors.ts'
import { failureOf } from '../../../src/core/failure.ts'

const broken = failureOf(new TypeError('broken'))
const stuck = failureOf(new Error('stuck'))
const flow = (state: 'SUCCESS' | 'REVERTED' | 'FAILURE' | 'SUSPENDED'): RunEnding => {
  return { kind: 'flow', state, failures: [broken], revertFailures: [stuck] }
}

const ROWS: readonly [string, RunEnding, Partial<Verdict>][] = [
  ['the claim is lost', { kind: 'lost' }, { settle: 'nothing' }],
  ['SUCCESS', flow('SUCCESS'), { settle: 'consume' }],
  ['SUSPENDED by a shutdown', flow('SUSPENDED'), { settle: 'abandon' }],
  ['shutdown before it began', { kind: 'shutdown' }, { settle: 'abandon' }],
  ['logbooks away', { kind: 'storage-away', error: new StorageFailure('away') }, { settle: 'abandon' }],
  [
    'posted without the resources of its flow',
    { kind: 'undeclared', added: { resources: { shared: ['disk'] } } },
    { settle: 'abandon', added: { resources: { shared: ['disk'] } } },
  ],
  ['fenced', { kind: 'fenced', newestRun: 7 }, { settle: 'abandon', newestRun: 7 }],
  ['fenced in the middle', { kind: 'fenced', newestRun: undefined }, { settle: 'abandon' }],
  ['REVERTED', flow('REVERTED'), { settle: 'fail', failure: broken }],
  ['FAILURE', flow('FAILURE'), { settle: 'trash' }],
  [
    'cancelled, and undone',
    { ...flow('REVERTED'), cancelled: new Cancelled('by ada') } as RunEnding,
    { settle: 'trash', reason: 'by ada' },
  ],
  [
    'cancelled when it was done',
    { ...flow('SUCCESS'), cancelled: new Cancelled('by ada') } as RunEnding,
    { settle: 'consume' },
  ],
  [
    'cannot work',
    { kind: 'unworkable', error: new InvalidArgument('no flow') },
    { settle: 'trash', reason: 'no flow' },
  ],
  ['a defect', { kind: 'defect', error: new TypeError('oops') }, { settle: 'fail' }],
]

describe('each row of the table', () => {
  test.each(ROWS)('%s', (_, ending, verdict) => {
    expect(decide(ending)).toMatchObject(verdict)
  })
})

test('a FAILURE keeps what failed and what kept it from being undone', () => {
  const verdict = decide(flow('FAILURE'))
  expect(verdict).toMatchObject({ settle: 'trash', failure: { causes: [{ message: 'broken' }, { message: 'stuck' }] } })
})

test('one NonRetryable among several failures makes the whole final', () => {
  const failures = [broken, failureOf(new NonRetryable('never again'))]
  const verdict = decide({ kind: 'flow', state: 'REVERTED', failures, revertFailures: [] })
  expect(verdict).toMatchObject({ settle: 'fail', failure: { nonRetryable: true } })
})

test("onFailure 'consume' is TaskFlow's way, and does not hide what could not be undone", () => {
  expect(decide(flow('REVERTED'), { onFailure: 'consume' })).toEqual({ settle: 'consume' })
  expect(decide(flow('FAILURE'), { onFailure: 'consume' })).toMatchObject({ settle: 'trash' })
})
