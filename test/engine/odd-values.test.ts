/** Atoms that throw, return and are given what nobody expects. */
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { type AnyTask, input, linear, mapTask, retry, task } from '../../src/flow/index.ts'
import { fails, TaskRecorder } from './workshop.ts'

const undoable = (execute: () => unknown): AnyTask => task('odd', { execute, revert: () => undefined })

describe('thrown', () => {
  const hostile = new Proxy(
    {},
    {
      getPrototypeOf: () => {
        throw new Error('hands off')
      },
    },
  )
  const unreadable = Object.defineProperty(new Error(`\ud800 ${'x'.repeat(100_000)}`), 'stack', { get: fails('no') })
  test.each([undefined, null, 0, '', 10n, Symbol('x'), () => 1, { a: 1 }, Object.create(null), hostile, unreadable])(
    'number %#: the flow is reverted',
    async (thrown) => {
      await using shop = new TaskRecorder()
      const throwing = () => {
        throw thrown
      }
      const ending = await shop.run(linear('odd', input(), undoable(throwing)))
      expect(ending).toMatchObject({ state: 'REVERTED', failures: [{ name: 'Error' }] })
      expect('error' in ending).toBe(true)
    },
  )

  test('a frozen error, and one that holds itself, with a log that is listened to', async () => {
    await using shop = new TaskRecorder()
    const knot = Object.assign(new AggregateError([], 'knot'))
    knot.errors.push(knot)
    const lines: string[] = []
    const logger = pino({ level: 'debug' }, { write: (line: string) => lines.push(line) })
    for (const thrown of [Object.freeze(new Error('ice')), knot]) {
      const engine = await shop.engine(
        linear(
          'odd',
          input(),
          undoable(() => {
            throw thrown
          }),
        ),
        { logger },
      )
      engine.on('atom', () => {
        throw thrown
      })
      expect(await engine.run()).toMatchObject({ state: 'REVERTED' })
    }
    expect(lines.join()).toContain('ice')
    expect(lines.join()).toContain('knot')
  })

  test('by execute, and by what comes after it: the first is not lost', async () => {
    await using shop = new TaskRecorder()
    const twice = task('twice', { execute: fails('the reason'), postExecute: fails('on top') })
    const { failures } = await shop.run(linear('odd', input(), twice))
    expect(failures).toMatchObject([{ causes: [{ message: 'the reason' }, { message: 'on top' }] }])
  })
})

describe('returned', () => {
  const trapped = new Proxy({ a: 1 }, { ownKeys: fails('hands off') })
  const getter = Object.defineProperty({}, 'x', { enumerable: true, get: fails('no') })
  test.each([() => 1, Symbol('x'), new Map(), new (class Own {})(), 2n ** 70n, trapped, getter])(
    'number %#: the flow is reverted',
    async (returned) => {
      await using shop = new TaskRecorder()
      const ending = await shop.run(
        linear(
          'odd',
          input(),
          undoable(() => returned),
        ),
      )
      expect(ending).toMatchObject({ state: 'REVERTED', failures: [{ code: 'JOBBOARD_INVALID_ARGUMENT' }] })
    },
  )

  test('without the part that an atom requires: the flow is reverted, and an atom that was not begun has nothing to undo', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const short = task('short', {
      provides: ['first', 'second'],
      execute: () => ['only'],
      revert: () => trace.push('-a'),
    })
    const needy = task('needy', {
      requires: ['second'],
      execute: (_args: { second: unknown }) => trace.push('needy'),
      revert: () => trace.push('-needy'),
    })
    const ending = await shop.run(linear('odd', input(), short, needy))
    expect(ending).toMatchObject({ state: 'REVERTED', revertFailures: [] })
    expect(ending.failures[0]?.message).toBe(
      'task needy requires second, which task short provides as a part of its result; but the result had no such part',
    )
    expect(trace).toEqual(['-a'])
  })

  test('nothing by a retry, after something: the value of the last attempt is not that of this one', async () => {
    await using shop = new TaskRecorder()
    const seen: unknown[] = []
    const changing = retry('changing', {
      provides: 'value',
      execute: (_args, { history }) => (history.length === 0 ? 'first' : undefined),
      onFailure: (_args, { history }) => (history.length < 2 ? 'RETRY' : 'REVERT'),
    })
    const looking = task('looking', {
      requires: ['value'],
      execute: ({ value }: { value: unknown }) => {
        seen.push(value)
        throw new Error('once more')
      },
    })
    await shop.run(linear({ name: 'odd', retry: changing }, input(), looking))
    expect(seen).toEqual(['first', undefined])
  })
})

describe('given', () => {
  test('a store that changes meanwhile, and has getters: every task sees what was given', async () => {
    await using shop = new TaskRecorder()
    let asked = 0
    const store = {
      get counted() {
        asked += 1
        return asked
      },
    }
    const seen: number[] = []
    const look = (name: string) =>
      task(name, {
        requires: ['counted'],
        execute: ({ counted }: { counted: number }) => {
          seen.push(counted)
        },
      })
    await shop.run(linear('odd', input<{ counted: number }>(), look('a'), look('b')), { store })
    expect(seen).toEqual([1, 1])
  })

  test.each([null, 'text', ['list']])('a store that is none, number %#', async (store) => {
    await using shop = new TaskRecorder()
    const flow = linear('odd', input(), task('t', { optional: ['x'], execute: (_args: { x?: unknown }) => 1 }))
    await expect(shop.engine(flow, { store: store as never })).rejects.toThrow(InvalidArgument)
  })

  test('names that objects have already, that are long, and that no encoding has', async () => {
    await using shop = new TaskRecorder()
    const names = ['__proto__', 'constructor', 'a/b', 'x'.repeat(10_000), 'ü\u0000', 'hasOwnProperty']
    const tasks = names.map((name, index) =>
      task(name, {
        requires: names.slice(index - 1, index),
        provides: name,
        execute: (args: Record<string, unknown>) => Object.keys(args).join(),
      }),
    )
    const { results } = await shop.run(linear('__proto__', input(), ...tasks))
    expect(Object.entries(results)).toEqual(names.map((name, index) => [name, names[index - 1] ?? '']))
  })

  test('a context that is taken apart', async () => {
    await using shop = new TaskRecorder()
    const told: number[] = []
    const engine = await shop.engine(
      linear('odd', input(), task('t', { execute: (_args, { progress }) => progress(0.5) })),
    )
    engine.on('progress', ({ progress }) => told.push(progress))
    expect(await engine.run()).toMatchObject({ state: 'SUCCESS' })
    expect(told).toEqual([0.5])
  })
})

test('a map that fails is over when all of it is', async () => {
  await using shop = new TaskRecorder()
  let running = 0
  const map = async (value: number) => {
    running += 1
    for (let turn = 0; turn < value; turn += 1) await new Promise(setImmediate)
    running -= 1
    if (value === 1) throw new Error('one')
  }
  const mapped = mapTask('mapped', { requires: ['a', 'b'], provides: 'c', map })
  const ending = await shop.run(linear('odd', input<{ a: number; b: number }>(), mapped), { store: { a: 1, b: 20 } })
  expect(ending.failures[0]?.message).toBe('one')
  expect(running).toBe(0)
})
