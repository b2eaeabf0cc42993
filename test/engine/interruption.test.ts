import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { Cancelled, ClaimLost, ShuttingDown, StorageFailure } from '../../src/core/errors.ts'
import { Engine } from '../../src/engine/index.ts'
import { type Context, input, linear } from '../../src/flow/index.ts'
import { fails, intercepted, TaskRecorder, tracing } from './workshop.ts'

/** Rejects with the signal's reason, as a task does that heeds it. */
function untilAborted({ signal }: Context): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

const names = ['a', 'b', 'c']

describe('suspend', () => {
  const shutdown = new ShuttingDown('the daemon stops')

  test.each(names)('during task %s records its success, starts no other, and can be resumed', async (at) => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    let suspend = new AbortController()
    const during = () => suspend.abort(shutdown)
    const tasks = names.map((name) => tracing(name, trace, name === at ? { during } : {}))
    const flow = linear('rest', input(), ...tasks)
    const rested = await shop.run(flow, { signals: { suspend: suspend.signal } })
    const done = names.slice(0, names.indexOf(at) + 1)
    expect(trace).toEqual(done)
    // After the last task nothing is left, and the true ending wins.
    expect(rested.state).toBe(at === 'c' ? 'SUCCESS' : 'SUSPENDED')
    expect(Object.keys(rested.results)).toEqual(done)
    expect((await shop.detail()).state).toBe(rested.state)
    suspend = new AbortController()
    expect((await shop.run(flow)).state).toBe('SUCCESS')
    expect(trace).toEqual(names)
  })

  test('is one write with the success of the task that was under way', async () => {
    await using shop = new TaskRecorder()
    const suspend = new AbortController()
    const flow = linear('rest', input(), tracing('a', [], { during: () => suspend.abort(shutdown) }), tracing('b', []))
    await shop.run(flow, { signals: { suspend: suspend.signal } })
    expect(shop.writes).toEqual(['RUNNING, a RUNNING, b PENDING', 'SUSPENDED, a SUCCESS="a!"'])
  })

  test('gives the task the reason; a task that throws then is RUNNING still, has not failed, and runs again', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const suspend = new AbortController()
    const reasons: unknown[] = []
    const during = async (ctx: Context) => {
      if (ctx.run > 1) return
      const aborted = untilAborted(ctx)
      suspend.abort(shutdown)
      reasons.push(await aborted.catch((reason: unknown) => reason))
      throw new Error('interrupted')
    }
    const flow = linear('rest', input(), tracing('a', trace, { during }), tracing('b', trace))
    const rested = await shop.run(flow, { signals: { suspend: suspend.signal } })
    expect(reasons).toEqual([shutdown])
    expect(rested).toEqual({ state: 'SUSPENDED', results: {}, failures: [], revertFailures: [] })
    expect(await shop.states()).toBe('SUSPENDED, a RUNNING, b PENDING')
    expect(await shop.run(flow)).toMatchObject({ state: 'SUCCESS', failures: [] })
    expect(trace).toEqual(['a', 'a', 'b'])
  })

  test('waits for the task under way, however long it takes', async () => {
    await using shop = new TaskRecorder()
    const suspend = new AbortController()
    const started = createDeferred()
    const release = createDeferred()
    const during = () => {
      started.resolve()
      return release.promise
    }
    const flow = linear('slow', input(), tracing('a', [], { during }), tracing('b', []))
    let over = false
    const run = shop.run(flow, { signals: { suspend: suspend.signal } }).finally(() => {
      over = true
    })
    await started.promise
    suspend.abort(shutdown)
    await new Promise(setImmediate)
    expect(over).toBe(false)
    release.resolve()
    expect((await run).state).toBe('SUSPENDED')
  })

  test('before anything runs leaves the logbook as it was', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('unstarted', input(), tracing('a', trace, { during: fails('x') }))
    const signals = { suspend: AbortSignal.abort(shutdown) }
    expect((await shop.run(flow, { signals })).state).toBe('SUSPENDED')
    expect(await shop.states()).toBe('PENDING')
    await shop.run(flow)
    const writes = shop.writes.length
    expect((await shop.run(flow, { signals })).state).toBe('SUSPENDED')
    expect(shop.writes).toHaveLength(writes)
    expect(await shop.states()).toBe('REVERTED, a REVERTED')
    expect(trace).toEqual(['a', '-a'])
  })

  test.each(['c', 'b', 'a'])('while %s is being reverted rests, and goes on going back', async (at) => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const suspend = new AbortController()
    const reverting = () => suspend.abort(shutdown)
    const behaviour = (name: string) => ({
      ...(name === at ? { reverting } : {}),
      ...(name === 'c' ? { during: fails('x') } : {}),
    })
    const flow = linear('back', input(), ...names.map((name) => tracing(name, trace, behaviour(name))))
    const rested = await shop.run(flow, { signals: { suspend: suspend.signal } })
    expect(rested.state).toBe(at === 'a' ? 'REVERTED' : 'SUSPENDED')
    expect(rested.failures).toMatchObject([{ message: 'x' }])
    if (at === 'a') return
    expect(await shop.run(flow)).toMatchObject({ state: 'REVERTED', failures: [{ message: 'x' }] })
    expect(trace).toEqual(['a', 'b', 'c', '-c', '-b', '-a'])
  })

  test('while a revert heeds the signal and throws leaves it REVERTING, to be reverted again', async () => {
    await using shop = new TaskRecorder()
    const suspend = new AbortController()
    const reverting = async (ctx: Context) => {
      if (ctx.run > 1) return
      const aborted = untilAborted(ctx)
      suspend.abort(shutdown)
      await aborted
    }
    const flow = linear('back', input(), tracing('a', [], { reverting }), tracing('b', [], { during: fails('x') }))
    const rested = await shop.run(flow, { signals: { suspend: suspend.signal } })
    expect(rested).toMatchObject({ state: 'SUSPENDED', revertFailures: [] })
    expect(await shop.states()).toBe('SUSPENDED, a REVERTING, b REVERTED')
    expect((await shop.run(flow)).state).toBe('REVERTED')
  })

  test('between a failure and the first revert keeps the failure', async () => {
    await using shop = new TaskRecorder()
    const suspend = new AbortController()
    const trace: string[] = []
    // Its message is read when the failure is noted: after the task is over, before anything is reverted.
    const error = Object.defineProperty(new Error(), 'message', {
      get: () => {
        suspend.abort(shutdown)
        return 'x'
      },
    })
    const flow = linear(
      'between',
      input(),
      tracing('a', trace),
      tracing('b', trace, { during: () => Promise.reject(error) }),
    )
    const rested = await shop.run(flow, { signals: { suspend: suspend.signal } })
    expect(rested).toMatchObject({ state: 'SUSPENDED', failures: [{ message: 'x' }] })
    expect(shop.writes.at(-1)).toBe('SUSPENDED, b FAILURE (REVERT), a SUCCESS="a!" (REVERT)')
    expect((await shop.run(flow)).state).toBe('REVERTED')
    expect(trace).toEqual(['a', 'b', '-b', '-a'])
  })
})

describe('stop', () => {
  const lost = new ClaimLost('the session expired')

  test('rejects at once with the reason, while the task that ignores its signal goes on; idle waits for it', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const stop = new AbortController()
    const started = createDeferred<Context>()
    const release = createDeferred()
    const during = (ctx: Context) => {
      started.resolve(ctx)
      return release.promise
    }
    const flow = linear('deaf', input(), tracing('a', trace, { during }), tracing('b', trace))
    const engine = await shop.engine(flow, { signals: { stop: stop.signal } })
    const run = engine.run()
    const { signal } = await started.promise
    stop.abort(lost)
    await expect(run).rejects.toBe(lost)
    expect(signal.reason).toBe(lost)
    let idle = false
    const whenIdle = engine.idle.then(() => {
      idle = true
    })
    await new Promise(setImmediate)
    expect(idle).toBe(false)
    release.resolve()
    await whenIdle
    expect(trace).toEqual(['a'])
    expect(shop.writes).toEqual(['RUNNING, a RUNNING, b PENDING'])
  })

  test.each([
    ['succeeds', () => undefined],
    ['fails', fails('x')],
  ])('writes nothing of a task that %s afterwards, and reverts nothing', async (_how, outcome) => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const stop = new AbortController()
    const during = () => {
      stop.abort(lost)
      return outcome()
    }
    const flow = linear('late', input(), tracing('a', trace, { during }), tracing('b', trace))
    const engine = await shop.engine(flow, { signals: { stop: stop.signal } })
    await expect(engine.run()).rejects.toBe(lost)
    await engine.idle
    expect(trace).toEqual(['a'])
    expect(shop.writes).toHaveLength(1)
  })

  test('during a revert stops there', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const stop = new AbortController()
    const b = tracing('b', trace, { during: fails('x'), reverting: () => stop.abort(lost) })
    const engine = await shop.engine(linear('back', input(), tracing('a', trace), b), {
      signals: { stop: stop.signal },
    })
    await expect(engine.run()).rejects.toBe(lost)
    await engine.idle
    expect(trace).toEqual(['a', 'b', '-b'])
    expect(await shop.states()).toBe('RUNNING, a SUCCESS, b REVERTING')
  })

  test('during a write starts nothing after it', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const stop = new AbortController()
    const flow = linear('writing', input(), tracing('a', trace))
    const log = await shop.acquire(flow)
    const stopping = intercepted(log, async (transition) => {
      stop.abort(lost)
      await log.write(transition)
    })
    const engine = new Engine({ flow, log: stopping, signals: { stop: stop.signal } })
    await expect(engine.run()).rejects.toBe(lost)
    await engine.idle
    expect(trace).toEqual([])
  })

  test('before the run refuses it', async () => {
    await using shop = new TaskRecorder()
    const engine = await shop.engine(linear('late', input(), tracing('a', [])), {
      signals: { stop: AbortSignal.abort(lost) },
    })
    await expect(engine.run()).rejects.toBe(lost)
    await engine.idle
    expect(shop.writes).toEqual([])
  })
})

test('signals that outlive the flow keep no listener of it', async () => {
  await using shop = new TaskRecorder()
  const controllers = { stop: new AbortController(), suspend: new AbortController() }
  let listeners = 0
  let most = 0
  const counted = (signal: AbortSignal): AbortSignal => {
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1
      most = Math.max(most, listeners)
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1
      remove(...args)
    }
    return signal
  }
  const signals = { stop: counted(controllers.stop.signal), suspend: counted(controllers.suspend.signal) }
  const during = (ctx: Context) => ctx.signal
  const b = tracing('b', [], { during: (ctx) => fails(String(ctx.signal.aborted))() })
  const flow = linear('tidy', input(), tracing('a', [], { during, reverting: during }), b)
  expect((await shop.run(flow, { signals })).state).toBe('REVERTED')
  // However many of the flow listen to a signal, they do so through one listener.
  expect(most).toBe(2)
  expect(listeners).toBe(0)
})

describe('cancel', () => {
  const cancelled = new Cancelled('somebody wants it back')

  test.each(names)('during task %s undoes what was done, unless everything was', async (at) => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const cancel = new AbortController()
    const during = () => cancel.abort(cancelled)
    const tasks = names.map((name) => tracing(name, trace, name === at ? { during } : {}))
    const ending = await shop.run(linear('flow', input(), ...tasks), { signals: { cancel: cancel.signal } })
    const done = names.slice(0, names.indexOf(at) + 1)
    const undone = at === 'c' ? [] : done.toReversed().map((name) => `-${name}`)
    expect(trace).toEqual([...done, ...undone])
    expect(ending.state).toBe(at === 'c' ? 'SUCCESS' : 'REVERTED')
    expect(ending.error).toBe(at === 'c' ? undefined : cancelled)
  })

  test('notifies the task that is under way, and not those that are being undone', async () => {
    await using shop = new TaskRecorder()
    const cancel = new AbortController()
    const reverting: boolean[] = []
    const during = async (ctx: Context) => {
      const aborted = untilAborted(ctx)
      cancel.abort(cancelled)
      await aborted
    }
    const task = tracing('a', [], { during, reverting: (ctx) => reverting.push(ctx.signal.aborted) })
    const ending = await shop.run(linear('flow', input(), task), { signals: { cancel: cancel.signal } })
    expect(ending).toMatchObject({ state: 'REVERTED', error: cancelled })
    expect(reverting).toEqual([false])
  })

  test('that has fired before it began executes nothing, and undoes what an earlier run has done', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const suspend = new AbortController()
    const during = () => suspend.abort(new ShuttingDown('the daemon stops'))
    const flow = linear('flow', input(), tracing('a', trace, { during }), tracing('b', trace))
    await shop.run(flow, { signals: { suspend: suspend.signal } })
    expect((await shop.run(flow, { signals: { cancel: AbortSignal.abort(cancelled) } })).state).toBe('REVERTED')
    expect(trace).toEqual(['a', '-a'])
  })
})

test('who is no owner any more starts nothing and writes nothing, though no signal has fired', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const lost = new ClaimLost('the lease ended while the process was stopped')
  let owner = true
  const assertOwner = () => {
    if (!owner) throw lost
  }
  const during = () => {
    owner = false
  }
  const flow = linear('flow', input(), tracing('a', trace, { during }), tracing('b', trace))
  await expect(shop.run(flow, { assertOwner })).rejects.toBe(lost)
  expect(trace).toEqual(['a'])
  expect(await shop.states()).toBe('RUNNING, a RUNNING, b PENDING')
})

describe('a log that fails', () => {
  test('rejects with its error, and no step follows', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('away', input(), tracing('a', trace), tracing('b', trace))
    const log = await shop.acquire(flow)
    const away = new StorageFailure('the disk is gone', { retryable: true })
    const failing = intercepted(log, async (transition) => {
      if (trace.length > 0) throw away
      await log.write(transition)
    })
    const engine = new Engine({ flow, log: failing })
    await expect(engine.run()).rejects.toBe(away)
    await engine.idle
    expect(trace).toEqual(['a'])
  })

  test('because a newer run has acquired the flow ends the older', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear(
      'fenced',
      input(),
      tracing('a', trace, { during: async () => void (await shop.acquire(flow)) }),
      tracing('b', trace),
    )
    await expect(shop.run(flow)).rejects.toThrow(ClaimLost)
    expect(trace).toEqual(['a'])
  })
})
