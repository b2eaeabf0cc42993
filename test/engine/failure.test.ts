import { describe, expect, test } from 'vitest'
import { NonRetryable } from '../../src/core/errors.ts'
import { input, linear, type RevertContext, task } from '../../src/flow/index.ts'
import { fails, TaskRecorder, tracing } from './workshop.ts'

describe('a task that fails', () => {
  test('is reverted first, then everything that had succeeded, backwards; what never ran is not', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear(
      'failing',
      input(),
      tracing('a', trace),
      tracing('b', trace),
      tracing('c', trace, { during: fails('no space') }),
      tracing('d', trace),
    )
    const ending = await shop.run(flow)
    expect(trace).toEqual(['a', 'b', 'c', '-c', '-b', '-a'])
    expect(ending).toMatchObject({
      state: 'REVERTED',
      results: {},
      failures: [{ message: 'no space' }],
      revertFailures: [],
    })
    expect(await shop.states()).toBe('REVERTED, a REVERTED, b REVERTED, c REVERTED, d PENDING')
  })

  test('is on record, with what is meant to happen, before the first revert runs', async () => {
    await using shop = new TaskRecorder()
    const flow = linear(
      'failing',
      input(),
      tracing('a', []),
      tracing('b', []),
      tracing('c', [], { during: fails('x') }),
    )
    await shop.run(flow)
    expect(shop.writes).toEqual([
      'RUNNING, a RUNNING, b PENDING, c PENDING',
      'a SUCCESS="a!", b RUNNING',
      'b SUCCESS="b!", c RUNNING',
      'c REVERTING (REVERT), a SUCCESS="a!" (REVERT), b SUCCESS="b!" (REVERT)',
      'c REVERTED (REVERT), b REVERTING="b!" (REVERT)',
      'b REVERTED (REVERT), a REVERTING="a!" (REVERT)',
      'REVERTED, a REVERTED (REVERT)',
    ])
  })

  test('keeps its failure in the logbook, and its error for a caller that runs it in the foreground', async () => {
    await using shop = new TaskRecorder()
    const error = new NonRetryable('the file is gone', {
      cause: Object.assign(new Error('enoent'), { code: 'ENOENT' }),
    })
    const gone = task('gone', {
      execute: () => {
        throw error
      },
    })
    const ending = await shop.run(linear('gone', input(), gone))
    expect(ending.error).toBe(error)
    const failure = { message: 'the file is gone', nonRetryable: true, causes: [{ code: 'ENOENT' }] }
    expect(ending.failures).toMatchObject([failure])
    expect((await shop.detail()).atoms).toMatchObject([{ state: 'REVERTED', failure }])
  })

  test('without a revert passes through the states; that costs no write of its own', async () => {
    await using shop = new TaskRecorder()
    const quiet = (name: string, execute: () => unknown) => task(name, { execute })
    const flow = linear(
      'quiet',
      input(),
      quiet('a', () => 1),
      quiet('b', fails('x')),
    )
    expect((await shop.run(flow)).state).toBe('REVERTED')
    expect(shop.writes).toEqual([
      'RUNNING, a RUNNING, b PENDING',
      'a SUCCESS=1, b RUNNING',
      'REVERTED, b REVERTED (REVERT), a REVERTED (REVERT)',
    ])
  })

  test('that throws undefined has failed all the same', async () => {
    await using shop = new TaskRecorder()
    const odd = task('odd', { execute: () => Promise.reject(undefined) })
    const ending = await shop.run(linear('odd', input(), odd))
    expect(ending).toMatchObject({ state: 'REVERTED', failures: [{ message: 'undefined' }] })
    expect('error' in ending).toBe(true)
  })
})

test('a revert knows its arguments, its result, its own failure and all failures', async () => {
  await using shop = new TaskRecorder()
  const seen: [unknown, Partial<RevertContext<unknown>>][] = []
  const note = (args: unknown, { result, failure, failures, run }: RevertContext<unknown>) =>
    seen.push([args, { result, failures, run, ...(failure ? { failure } : {}) }])
  const a = task('a', {
    requires: ['path'],
    provides: 'size',
    execute: ({ path }: { path: string }) => path.length,
    revert: (args, ctx) => note(args, ctx),
  })
  const b = task('b', {
    requires: ['size', 'path'],
    execute: (_args: { size: number; path: string }): string => fails('x')(),
    revert: (args, ctx) => note(args, ctx),
  })
  const ending = await shop.run(linear('know', input<{ path: string }>(), a, b), { store: { path: '/tmp' } })
  const { failures } = ending
  expect(failures).toMatchObject([{ message: 'x' }])
  expect(seen).toEqual([
    [
      { size: 4, path: '/tmp' },
      { result: undefined, failure: failures[0], failures, run: 1 },
    ],
    [{ path: '/tmp' }, { result: 4, failures, run: 1 }],
  ])
})

describe('a revert that fails', () => {
  test('ends everything: no further revert, both failures kept, what is left stays visible', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear(
      'stuck',
      input(),
      tracing('a', trace),
      tracing('b', trace, { reverting: fails('cannot undo') }),
      tracing('c', trace, { during: fails('cannot do') }),
    )
    const ending = await shop.run(flow)
    expect(trace).toEqual(['a', 'b', 'c', '-c', '-b'])
    expect(ending).toMatchObject({
      state: 'FAILURE',
      results: { a: 'a!' },
      failures: [{ message: 'cannot do' }],
      revertFailures: [{ message: 'cannot undo' }],
      error: { message: 'cannot do' },
    })
    expect(await shop.states()).toBe('FAILURE, a SUCCESS, b REVERT_FAILURE, c REVERTED')
    expect(shop.writes.at(-1)).toBe('FAILURE, b REVERT_FAILURE="b!" (REVERT)')
  })

  test('of the very task that failed keeps both failures in one record', async () => {
    await using shop = new TaskRecorder()
    const flow = linear('both', input(), tracing('a', [], { during: fails('do'), reverting: fails('undo') }))
    expect((await shop.run(flow)).state).toBe('FAILURE')
    expect((await shop.detail()).atoms).toMatchObject([
      { failure: { message: 'do' }, revertFailure: { message: 'undo' } },
    ])
  })
})

test('what a revert returns is kept if it can be, and is never a reason to fail', async () => {
  await using shop = new TaskRecorder()
  const a = task('a', { execute: () => 1, revert: () => ({ connection: { close: () => undefined } }) })
  const b = task('b', { execute: fails('x'), revert: () => ({ removed: 3 }) })
  expect((await shop.run(linear('returns', input(), a, b))).state).toBe('REVERTED')
  const { atoms } = await shop.detail()
  expect(atoms.map((atom) => atom.revertResult)).toEqual([undefined, { removed: 3 }])
})
