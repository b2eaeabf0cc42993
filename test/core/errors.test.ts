import { describe, expect, test, vi } from 'vitest'
import * as errors from '../../src/core/errors.ts'
import { describeError, describeFailure, failureOf, WrappedFailure } from '../../src/core/failure.ts'
import * as zookeeperErrors from '../../src/zookeeper/protocol/errors.ts'

const CLASSES = [
  ...Object.entries(errors),
  ...Object.entries(zookeeperErrors),
  ['WrappedFailure', WrappedFailure] as const,
]
  .filter(([, value]) => typeof value === 'function' && value.prototype instanceof Error)
  .map(([name, value]) => ({ name, code: (value as unknown as { code: string }).code }))

describe('every error', () => {
  test('has a code of its own', () => {
    const codes = CLASSES.map(({ code }) => code)
    expect(new Set(codes).size).toBe(codes.length)
    expect(codes.length).toBeGreaterThan(20)
  })

  test.each(CLASSES.filter(({ name }) => name !== 'JobboardError'))('$name: its code is its name', ({ name, code }) => {
    const words = name
      .replace(/Error$/, '')
      .replaceAll(/(?<=[a-z])[A-Z]/g, '_$&')
      .toUpperCase()
    expect(code.replaceAll('_', '')).toMatch(new RegExp(`^JOBBOARD(ZOOKEEPER)?${words.replaceAll('_', '')}$`))
  })
})

describe('instanceof', () => {
  test('goes along the lineage, and not across it', () => {
    const lost = new errors.Fenced('fenced', { newestRun: 3 })
    expect(
      [errors.ClaimLost, errors.JobFailure, errors.JobboardError, Error].every((type) => lost instanceof type),
    ).toBe(true)
    expect(lost instanceof errors.NotFound).toBe(false)
    expect(
      [null, undefined, 'text', {}, new Error('plain')].some(
        (value) => (value as object) instanceof errors.JobboardError,
      ),
    ).toBe(false)
  })

  test('knows the errors of another copy of the library', async () => {
    vi.resetModules()
    const another = await import('../../src/core/errors.ts')
    expect(another.NotFound).not.toBe(errors.NotFound)
    expect(new another.NotFound('x') instanceof errors.NotFound).toBe(true)
    expect(new another.NotFound('x') instanceof errors.Timeout).toBe(false)
  })

  test('a subclass of a user is distinguished from its parent', () => {
    class Hopeless extends errors.NonRetryable {}
    expect(new Hopeless('x') instanceof errors.NonRetryable).toBe(true)
    expect(new errors.NonRetryable('x') instanceof Hopeless).toBe(false)
  })
})

describe('failures', () => {
  test('keep the chain of causes, codes, and whether trying again helps', () => {
    const cause = Object.assign(new Error('no such file'), { code: 'ENOENT' })
    const failure = failureOf(new errors.NonRetryable('the file is gone', { cause }))
    expect(failure).toMatchObject({
      name: 'NonRetryable',
      nonRetryable: true,
      causes: [{ message: 'no such file', code: 'ENOENT' }],
    })
    expect(describeError(new errors.NonRetryable('gone', { cause }))).toBe(
      'NonRetryable: gone, because of Error: no such file',
    )
    const inner = new errors.NotConnected('refused')
    const repeated = new errors.NonRetryable('no hosts', {
      cause: new errors.MissingDependencies('no hosts', { cause: new errors.NotConnected('down', { cause: inner }) }),
    })
    expect(describeError(repeated)).toBe('NonRetryable: no hosts, because of NotConnected: down, because of refused')
    expect(failureOf(new Error('outside', { cause: new errors.NonRetryable('inside') }))).toMatchObject({
      nonRetryable: true,
    })
  })

  test.each([
    undefined,
    null,
    'text',
    42n,
    Symbol('s'),
    {
      toString: () => {
        throw new Error('no')
      },
    },
  ])('are made of anything', (thrown) => {
    expect(failureOf(thrown)).toMatchObject({ name: 'Error', message: expect.any(String) })
  })

  test('are made of errors whose properties are anything, or throw', () => {
    const odd = Object.assign(new Error('x'), { message: { status: 500 }, name: 7, stack: null })
    expect(failureOf(odd)).toEqual({ name: '7', message: '{"status":500}' })
    const hostile = Object.defineProperty(new Error('x'), 'message', {
      get: () => {
        throw new Error('no')
      },
    })
    expect(describeError(hostile)).toMatch(/^Error: /)
    expect(describeFailure({ name: undefined, message: null } as never)).toBe('undefined: null')
  })

  test('end, however deep or long', () => {
    const loop = new Error('loop')
    loop.cause = loop
    expect(JSON.stringify(failureOf(loop)).length).toBeLessThan(200_000)
    expect(failureOf(new Error('x'.repeat(100_000))).message.length).toBeLessThan(10_000)
  })

  test('a WrappedFailure of one is that one', () => {
    const failure = failureOf(new TypeError('one'))
    expect(failureOf(new WrappedFailure([failure]))).toEqual(failure)
    expect(failureOf(new WrappedFailure([failure, failure])).causes).toHaveLength(2)
  })
})
