import { pino } from 'pino'
import { describe, expect } from 'vitest'
import { InvalidArgument, InvalidState, MissingDependencies } from '../../src/core/errors.ts'
import { Engine } from '../../src/engine/index.ts'
import { type AnyTask, type Context, input, linear, task } from '../../src/flow/index.ts'
import { usual as test, variant } from '../variant.ts'
import { TaskRecorder, tracing } from './workshop.ts'

const greet = task('greet', {
  requires: ['name'],
  provides: 'text',
  execute: async ({ name }: { name: string }) => `Hello, ${name}!`,
})
const count = task('count', {
  requires: ['text'],
  provides: 'size',
  execute: ({ text }: { text: string }) => text.length,
})

describe('a flow that succeeds', () => {
  test('gives the results of its tasks, each made from the store and from those before', async () => {
    await using shop = new TaskRecorder()
    const hello = linear('hello', input<{ name: string }>(), greet, count)
    const ending = await shop.run(hello, { store: { name: 'Ada' } })
    expect(ending).toEqual({
      state: 'SUCCESS',
      results: { text: 'Hello, Ada!', size: 11 },
      failures: [],
      revertFailures: [],
    })
    expect(await shop.states()).toBe('SUCCESS, greet SUCCESS, count SUCCESS')
  })

  test('of n tasks takes n + 1 writes, and each task starts after the write that says so', async () => {
    await using shop = new TaskRecorder()
    const seen: number[] = []
    const during = () => seen.push(shop.writes.length)
    const flow = linear('three', input(), ...['a', 'b', 'c'].map((name) => tracing(name, [], { during })))
    await shop.run(flow)
    expect(shop.writes).toEqual([
      'RUNNING, a RUNNING, b PENDING, c PENDING',
      'a SUCCESS="a!", b RUNNING',
      'b SUCCESS="b!", c RUNNING',
      'SUCCESS, c SUCCESS="c!"',
    ])
    expect(seen).toEqual([1, 2, 3])
  })

  test('that had succeeded before is over at once, without a write or an input', async () => {
    await using shop = new TaskRecorder()
    const hello = linear('hello', input<{ name: string }>(), greet)
    await shop.run(hello, { store: { name: 'Ada' } })
    shop.writes.length = 0
    const again = await shop.run(hello)
    expect(again.state).toBe('SUCCESS')
    expect(again.results).toEqual({ text: 'Hello, Ada!' })
    expect(shop.writes).toEqual([])
  })

  variant('of 10,000 tasks asks each node about its neighbours only', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const names = Array.from({ length: 10_000 }, (_, index) => `t${index}`)
    const flow = linear('long', input(), ...names.map((name) => tracing(name, trace)))
    const log = await shop.acquire(flow)
    const write = async () => undefined
    const ending = await new Engine({ flow, log: { ...log, write } }).run()
    expect(ending.state).toBe('SUCCESS')
    expect(trace).toEqual(names)
  })
})

describe('arguments', () => {
  test('come from the store before they come from a task', async () => {
    await using shop = new TaskRecorder()
    const flow = linear('shadow', input<{ name: string }>(), greet, count)
    const ending = await shop.run(flow, { store: { name: 'Ada', text: '' } })
    expect(ending.results).toEqual({ text: 'Hello, Ada!', size: 0 })
  })

  test('come from the nearest task before that provides them', async () => {
    await using shop = new TaskRecorder()
    const shout = task('shout', {
      requires: ['text'],
      provides: 'text',
      execute: ({ text }: { text: string }) => text.toUpperCase().slice(0, 5),
    })
    const flow = linear('nearest', input<{ name: string }>(), greet, shout, count)
    const ending = await shop.run(flow, { store: { name: 'Ada' } })
    expect(ending.results).toEqual({ text: 'HELLO', size: 5 })
  })

  test('that no atom provides are refused before anything runs, with every task and name', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const last = tracing('last', trace, { requires: ['x', 'text', 'y'] })
    const tasks: AnyTask[] = [tracing('first', trace), greet, last]
    const flow = linear('lacking', input(), ...tasks)
    const run = shop.run(flow, { store: { x: undefined } })
    await expect(run).rejects.toThrow(MissingDependencies)
    await expect(run).rejects.toThrow(
      'flow lacking: task greet requires name; task last requires y: put it into the store',
    )
    expect(trace).toEqual([])
    expect(shop.writes).toEqual([])
  })

  test('are only those that are required, whatever they are called', async () => {
    await using shop = new TaskRecorder()
    const seen: object[] = []
    const curious = task('curious', {
      requires: ['__proto__', 'toString'],
      execute: (args: { ['__proto__']: unknown; toString: unknown }) => {
        seen.push(args)
      },
    })
    const tasks: AnyTask[] = [curious]
    await shop.run(linear('odd', input(), ...tasks), { store: { ['__proto__']: 1, toString: 2, secret: 3 } })
    expect(seen.map((args) => Object.entries(args))).toEqual([
      [
        ['__proto__', 1],
        ['toString', 2],
      ],
    ])
  })
})

describe('results', () => {
  const make = (value: unknown) => task('make', { provides: 'made', execute: () => value })
  const seen: unknown[] = []
  const see = task('see', {
    requires: ['made'],
    provides: 'seen',
    execute: ({ made }: { made: unknown }) => {
      seen.push(made)
    },
  })

  test('of undefined are values like any other, also for the one who resumes', async () => {
    await using shop = new TaskRecorder()
    const flow = linear('undefined', input(), make(undefined), see)
    const ending = await shop.run(flow)
    expect(seen.pop()).toBe(undefined)
    expect(Object.entries(ending.results)).toEqual([
      ['made', undefined],
      ['seen', undefined],
    ])
    expect(shop.writes.at(-2)).toBe('make SUCCESS, see RUNNING')
    expect(Object.entries((await shop.run(flow)).results)).toHaveLength(2)
  })

  test('are seen by later tasks as they would be after a crash', async () => {
    await using shop = new TaskRecorder()
    const made = { when: new Date(0), sizes: [1] }
    const meddle = tracing('meddle', [], { during: () => made.sizes.push(2) })
    await shop.run(linear('plain', input(), make(made), meddle, see))
    expect(seen.pop()).toStrictEqual({ when: new Date(0), sizes: [1] })
  })

  test('that cannot be stored are failures of their task, and undone like any other', async () => {
    await using shop = new TaskRecorder()
    const { state, failures, error } = await shop.run(linear('bad', input(), make({ rows: [() => 1] })))
    expect(state).toBe('REVERTED')
    expect(error).toBeInstanceOf(InvalidArgument)
    expect(failures[0]?.message).toMatch(/the result of task make cannot be stored.*rows\.0 is a function/)
    expect(await shop.states()).toBe('REVERTED, make REVERTED')
  })
})

describe('the context', () => {
  test('says for whom and in which run a task works', async () => {
    await using shop = new TaskRecorder()
    const contexts: Context[] = []
    const flow = linear('look', input(), tracing('look', [], { during: (ctx) => contexts.push(ctx) }))
    await (await shop.acquire(flow)).close()
    await shop.run(flow, { context: { fence: 7n, job: { uuid: 'u', name: 'j', details: {} } } })
    expect(contexts[0]).toMatchObject({ run: 2, fence: 7n, job: { uuid: 'u', name: 'j' } })
    expect(contexts[0]?.signal.aborted).toBe(false)
  })

  test('gives a signal that has not fired, and none that listens when the task is over', async () => {
    await using shop = new TaskRecorder()
    const contexts: Context[] = []
    const stop = new AbortController()
    const asked = tracing('asked', [], { during: (ctx) => [contexts.push(ctx), ctx.signal] })
    const late = tracing('late', [], { during: (ctx) => contexts.push(ctx) })
    await shop.run(linear('signals', input(), asked, late), { signals: { stop: stop.signal } })
    const before = contexts.map(({ signal }) => signal)
    stop.abort(new InvalidState('too late'))
    expect([...before, ...contexts.map(({ signal }) => signal)].map(({ aborted }) => aborted)).toEqual([
      false,
      false,
      false,
      false,
    ])
  })

  test('logs with the names of flow and task', async () => {
    await using shop = new TaskRecorder()
    const lines: object[] = []
    const logger = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const flow = linear('logging', input(), tracing('hello', [], { during: (ctx) => ctx.log.info('at work') }))
    await shop.run(flow, { logger })
    expect(lines).toMatchObject([{ flow: 'logging', task: 'hello', msg: 'at work' }])
  })

  test('has no job, and a fence below all others, without a board', async () => {
    await using shop = new TaskRecorder()
    const contexts: Context[] = []
    await shop.run(linear('look', input(), tracing('look', [], { during: (ctx) => contexts.push(ctx) })))
    expect(contexts[0]).toMatchObject({ run: 1, fence: 0n, job: undefined })
  })
})

test('an engine runs once', async () => {
  await using shop = new TaskRecorder()
  const engine = await shop.engine(linear('once', input(), task('only', { execute: () => undefined })))
  await engine.run()
  await expect(engine.run()).rejects.toThrow(InvalidState)
})
