import { describe, expect, test } from 'vitest'
import { runFlow } from '../../src/conductor/index.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { Cancelled, ShuttingDown, StorageFailure, Timeout } from '../../src/core/errors.ts'
import { WrappedFailure } from '../../src/core/failure.ts'
import type { Duration } from '../../src/core/time.ts'
import { Engine } from '../../src/engine/index.ts'
import {
  type AnyTask,
  backOff,
  type Context,
  graph,
  input,
  linear,
  link,
  task,
  unordered,
} from '../../src/flow/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { failing, progressing, tell } from './traces.ts'
import { fails, intercepted, TaskRecorder, tracing } from './workshop.ts'

/** Tasks that wait until so many of them run. */
function meeting(names: readonly string[], trace: string[] = []): AnyTask[] {
  const all = createDeferred()
  let there = 0
  const during = () => {
    there += 1
    if (there === names.length) all.resolve()
    return all.promise
  }
  return names.map((name) => tracing(name, trace, { during }))
}

describe('side by side', () => {
  test('tasks run at the same time, as many as the concurrency allows, and share their writes', async () => {
    await using shop = new TaskRecorder()
    const names = ['a', 'b', 'c']
    const flow = unordered('f', input(), ...meeting(names))
    expect((await shop.run(flow, { concurrency: 3 })).state).toBe('SUCCESS')
    expect(shop.writes[0]).toBe('RUNNING, a RUNNING, b RUNNING, c RUNNING')
    expect(shop.writes.length).toBeLessThanOrEqual(3)
  })

  test.each([1, 2, 5])('no more than %i run', async (concurrency) => {
    await using shop = new TaskRecorder()
    let [now, most] = [0, 0]
    const during = async () => {
      now += 1
      most = Math.max(most, now)
      await new Promise(setImmediate)
      now -= 1
    }
    const tasks = Array.from({ length: 12 }, (_, index) => tracing(`t${index}`, [], { during }))
    await shop.run(unordered('f', input(), ...tasks), { concurrency })
    expect(most).toBe(concurrency)
  })

  test('the greatest priority goes first, to execute and to revert', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const named = (name: string, priority: number): AnyTask =>
      task(name, { ...(tracing(name, trace) as object), priority } as never)
    const tasks = [named('low', -1), named('high', 5), named('middle', 0)]
    const flow = linear('f', input(), unordered('u', input(), ...tasks), failing('last'))
    await shop.run(flow, { concurrency: 1 })
    expect(trace).toEqual(['high', 'middle', 'low', '-high', '-middle', '-low'])
  })

  test('several failures are all reported', async () => {
    const [one, two] = meeting(['one', 'two']).map((inner, index) =>
      task(inner.name, { ...(inner as object), postExecute: fails(`failure ${index}`) } as never),
    )
    if (!one || !two) throw new Error('two')
    const tasks: AnyTask[] = [one, two]
    const run = runFlow(unordered('f', input(), ...tasks), {})
    await expect(run).rejects.toThrow(WrappedFailure)
    await expect(run).rejects.toThrow(/failure 0.*failure 1|failure 1.*failure 0/)
  })

  test('what runs beside a failure is finished, then all is reverted, what comes after first', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const release = createDeferred()
    const slow = tracing('slow', trace, { during: () => release.promise })
    const failing = () => {
      setImmediate(release.resolve)
      throw new Error('x')
    }
    const bad = tracing('bad', trace, { during: failing })
    const flow = linear(
      'f',
      input(),
      tracing('first', trace),
      unordered('u', input(), slow, bad),
      tracing('never', trace),
    )
    expect((await shop.run(flow, { concurrency: 2 })).state).toBe('REVERTED')
    expect(trace.slice(0, 3)).toEqual(['first', 'slow', 'bad'])
    expect(trace.slice(3, 5).sort()).toEqual(['-bad', '-slow'])
    expect(trace.slice(5)).toEqual(['-first'])
  })

  test('10 × 10 tasks: each ten after all of the ten before', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const layers = Array.from({ length: 10 }, (_, layer) =>
      unordered(
        `layer ${layer}`,
        input(),
        ...meeting(
          Array.from({ length: 10 }, (_n, n) => `${layer}-${n}`),
          trace,
        ),
      ),
    )
    await shop.run(linear('f', input(), ...layers), { concurrency: 10 })
    expect(trace.map((name) => Number(name.split('-')[0]))).toEqual([...trace.keys()].map((at) => Math.floor(at / 10)))
  })
})

describe('interrupted', () => {
  test('suspended, what runs is waited for and recorded; the next engine runs the rest', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const [a, b] = meeting(['a', 'b'], trace) as [AnyTask, AnyTask]
    const flow = linear('f', input(), unordered('u', input(), a, b), tracing('c', trace))
    const engine = await shop.engine(flow, { concurrency: 2 })
    engine.on('atom', ({ to }) => to === 'RUNNING' && engine.suspend())
    expect((await engine.run()).state).toBe('SUSPENDED')
    expect(await shop.states()).toBe('SUSPENDED, a SUCCESS, b SUCCESS, c PENDING')
    expect((await shop.run(flow)).state).toBe('SUCCESS')
    expect(trace).toEqual(['a', 'b', 'c'])
  })

  test('suspended before it runs, it does nothing; after it, suspending does nothing', async () => {
    await using shop = new TaskRecorder()
    const flow = linear('f', input(), tracing('a', []))
    const engine = await shop.engine(flow)
    engine.suspend()
    expect((await engine.run()).state).toBe('SUSPENDED')
    expect(shop.writes).toEqual([])
    const next = await shop.engine(flow)
    await next.run()
    next.suspend()
    expect(await shop.states()).toBe('SUCCESS, a SUCCESS')
  })

  test('cancelled, what runs receives the signal, and what was done is undone', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const cancel = new AbortController()
    const reason = new Cancelled('somebody wants it back')
    const untilTold = ({ signal }: Context) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const cancelled = (ctx: Context) => {
      setImmediate(() => cancel.abort(reason))
      return untilTold(ctx)
    }
    const b = tracing('b', trace, { during: cancelled })
    const flow = linear('f', input(), unordered('u', input(), tracing('a', trace), b), tracing('c', trace))
    const ending = await shop.run(flow, { signals: { cancel: cancel.signal }, concurrency: 2 })
    expect(ending).toMatchObject({ state: 'REVERTED', error: reason })
    expect(trace.sort()).toEqual(['-a', '-b', 'a', 'b'])
  })

  test('when a write fails, what runs beside it is asked to stop, and nothing is written any more', async () => {
    await using shop = new TaskRecorder()
    const signals: AbortSignal[] = []
    const release = createDeferred()
    const listening = (ctx: Context) => {
      signals.push(ctx.signal)
      return release.promise
    }
    const slow = tracing('slow', [], { during: listening })
    const flow = unordered('f', input(), slow, linear('l', input(), tracing('a', []), tracing('b', [])))
    const log = await shop.acquire(flow)
    const away = new StorageFailure('the disk is gone', { retryable: true })
    let writes = 0
    const failingLog = intercepted(log, async (transition) => {
      writes += 1
      if (writes > 1) throw away
      await log.write(transition)
    })
    const engine = new Engine({ flow, log: failingLog, concurrency: 2 })
    await expect(engine.run()).rejects.toBe(away)
    expect(signals[0]?.reason).toBe(away)
    release.resolve()
    await engine.idle
    expect(writes).toBe(2)
  })
})

/** Lets this time pass, and rejects with the reason for which the signal fires then. */
function rejectedAfter(time: Duration, { ctx, clock }: { ctx: Context; clock: ManualClock }): Promise<never> {
  return new Promise((_, reject) => {
    ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
    clock.advance(time)
  })
}

describe('time', () => {
  test('an atom whose deadline has passed receives its signal, and fails if it heeds that', async () => {
    await using shop = new TaskRecorder()
    const clock = new ManualClock()
    const slow = task('slow', { deadline: 1, execute: (_args, ctx) => rejectedAfter(1, { ctx, clock }) })
    const ending = await shop.run(linear('f', input(), slow), { clock })
    expect(ending).toMatchObject({
      state: 'REVERTED',
      failures: [{ code: Timeout.code, message: 'task slow: not done within 1 ms' }],
    })
  })

  test('a flow whose deadline has passed is reverted', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const clock = new ManualClock()
    const during = (ctx: Context) => rejectedAfter('5ms', { ctx, clock })
    const flow = linear('f', input(), tracing('a', trace), tracing('b', trace, { during }))
    const ending = await shop.run(flow, { deadline: '5ms', clock })
    expect(ending.error).toBeInstanceOf(Timeout)
    expect(trace).toEqual(['a', 'b', '-b', '-a'])
  })

  test('a retry waits before its next attempt, in another process for the rest of the time', async () => {
    await using shop = new TaskRecorder()
    const flow = linear({ name: 'f', retry: backOff({ first: '1h', jitter: 'none' }) }, input(), failing('a', 1))
    const engine = await shop.engine(flow)
    engine.on('atom', ({ to }) => to === 'REVERTED' && setImmediate(() => engine.suspend()))
    expect((await engine.run()).state).toBe('SUSPENDED')
    const [record] = (await shop.detail()).atoms
    const notBefore = record?.meta['notBefore']
    expect(record).toMatchObject({ state: 'SUCCESS', intention: 'RETRY' })
    expect(notBefore).toBeInstanceOf(Date)
    await shop.forge(flow, { atoms: record ? [{ ...record, meta: { notBefore: new Date(0) } }] : [] })
    expect((await shop.run(flow)).state).toBe('SUCCESS')
  })

  test('a wait ends when the flow is cancelled', async () => {
    await using shop = new TaskRecorder()
    const cancel = new AbortController()
    const flow = linear({ name: 'f', retry: backOff({ first: '1h', jitter: 'none' }) }, input(), failing('a'))
    const engine = await shop.engine(flow, { signals: { cancel: cancel.signal } })
    engine.on('atom', ({ to }) => to === 'REVERTED' && setImmediate(() => cancel.abort(new Cancelled('enough'))))
    expect((await engine.run()).state).toBe('REVERTED')
    expect(await shop.states()).toBe('REVERTED, f_retry REVERTED, a REVERTED')
  })

  test('what refuses says itself how long to wait', async () => {
    await using shop = new TaskRecorder()
    let runs = 0
    const busy = task('busy', {
      execute: () => {
        runs += 1
        if (runs === 1) throw Object.assign(new Error('come back later'), { retryAfter: '1ms' })
      },
    })
    const flow = linear({ name: 'f', retry: backOff({ first: '1h', jitter: 'none' }) }, input(), busy)
    expect((await shop.run(flow)).state).toBe('SUCCESS')
  })
})

test('with neverResolve nothing is undone, and the next engine runs again what failed', async () => {
  await using shop = new TaskRecorder()
  const flow = linear('f', input(), progressing('a'), failing('b', 2), progressing('c'))
  const [first, second] = [
    await tell(shop, flow, { neverResolve: true }),
    await tell(shop, flow, { neverResolve: true }),
  ]
  expect([first.ending.state, second.ending.state]).toEqual(['FAILURE', 'FAILURE'])
  expect(await shop.states()).toBe('FAILURE, a SUCCESS, b FAILURE, c PENDING')
  expect((await tell(shop, flow, { neverResolve: true })).ending.state).toBe('SUCCESS')
  await using another = new TaskRecorder()
  const bad = linear('f', input(), progressing('a'), failing('b'))
  await tell(another, bad, { neverResolve: true })
  await tell(another, bad)
  expect(await another.states()).toBe('REVERTED, a REVERTED, b REVERTED')
})

describe('steps', () => {
  const flow = linear('f', input(), progressing('a'), progressing('b'))

  test('are the states of the engine', async () => {
    await using shop = new TaskRecorder()
    const states: string[] = []
    for await (const state of (await shop.engine(flow)).runIter()) states.push(state)
    const atom = ['SCHEDULING', 'WAITING', 'ANALYZING']
    expect(states).toEqual(['RESUMING', ...atom, ...atom, 'SCHEDULING', 'SUCCESS'])
  })

  test('left early suspend the flow, when what runs is over', async () => {
    await using shop = new TaskRecorder()
    const engine = await shop.engine(flow)
    for await (const state of engine.runIter()) if (state === 'WAITING') break
    await engine.idle
    expect(await shop.states()).toBe('SUSPENDED, a SUCCESS, b PENDING')
    expect((await shop.run(flow)).state).toBe('SUCCESS')
  })

  test('that an error is thrown into end the flow as FAILURE', async () => {
    await using shop = new TaskRecorder()
    const steps = (await shop.engine(flow)).runIter()
    for (let step = await steps.next(); step.value !== 'WAITING'; step = await steps.next());
    const reason = new ShuttingDown('somebody tripped over the cable')
    await expect(steps.throw(reason)).rejects.toBe(reason)
    expect(await shop.states()).toBe('FAILURE, a SUCCESS, b PENDING')
  })
})

test('listeners receive every move after it is on record, and progress at once; one that throws does not disturb others', async () => {
  await using shop = new TaskRecorder()
  const heard: unknown[] = []
  const a = task('a', {
    execute: (_args, ctx) => {
      for (const done of [-1, 0.5, Number.NaN, 7]) ctx.progress(done)
    },
  })
  const engine = await shop.engine(linear('f', input(), a))
  engine.on('progress', ({ progress }) => heard.push(progress))
  engine.on('atom', ({ from, to, duration }) => {
    heard.push(`${from} > ${to}`, duration >= 0, shop.writes.length > 0)
    throw new Error('a listener')
  })
  await engine.run()
  expect(heard).toEqual(['PENDING > RUNNING', true, true, 0, 0.5, 1, 'RUNNING > SUCCESS', true, true])
  expect((await shop.detail()).atoms).toMatchObject([{ meta: { progress: 1 } }])
  expect(engine.statistics).toMatchObject({ executed: 1, failed: 0, writes: shop.writes.length })
})

test('hooks surround what an atom does; what they throw is its failure', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const note = (what: string) => () => void trace.push(what)
  const hooks = {
    preExecute: note('pre'),
    postExecute: note('post'),
    preRevert: note('pre -'),
    postRevert: note('post -'),
  }
  const a = task('a', { execute: note('a'), revert: note('-a'), ...hooks })
  const b = task('b', { execute: note('b'), preExecute: fails('not ready'), postExecute: note('post b') })
  expect(await shop.run(linear('f', input(), a, b))).toMatchObject({ failures: [{ message: 'not ready' }] })
  expect(trace).toEqual(['pre', 'a', 'post', 'post b', 'pre -', '-a', 'post -'])
})

test('arguments are bound to other names, injected, or left out; parts of results have names', async () => {
  await using shop = new TaskRecorder()
  const seen: unknown[] = []
  const pair = task('pair', { provides: ['left', 'right'], execute: (): [number, string] => [1, 'r'] })
  const size = task('size', { provides: { keys: ['width'] }, execute: () => ({ width: 7, height: 9 }) })
  const use = task('use', {
    requires: ['a', 'b', 'width'],
    optional: ['c'],
    rebind: { a: 'left', b: 'right' },
    inject: { width: 8 },
    execute: (args: { a: number; b: string; width: number; c?: string }) => void seen.push(args),
  })
  const { results } = await shop.run(linear('f', input(), pair, size, use), { store: { right: 'stored' } })
  expect(seen).toEqual([{ a: 1, b: 'stored', width: 8 }])
  expect(results).toEqual({ left: 1, right: 'r', width: 7 })
})

test('a graph runs in the order of needs, whatever order it is written in', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const [a, b, c, d] = [
    tracing('a', trace, { requires: ['b', 'c'] }),
    tracing('b', trace, { requires: ['d'] }),
    tracing('c', trace, { requires: ['d'] }),
    tracing('d', trace),
  ]
  const e = tracing('e', trace)
  const parts: AnyTask[] = [a, b, c, d, e]
  await shop.run(graph({ name: 'g', links: [link(a, e)] }, input(), ...parts), { concurrency: 1 })
  expect(trace).toEqual(['d', 'b', 'c', 'a', 'e'])
})
