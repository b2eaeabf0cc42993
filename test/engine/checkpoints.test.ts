/** What tasks save for their next run: when it is durable, who finds it, and when it is cleared. */
import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { ClaimLost, InvalidArgument, InvalidState, PayloadTooLarge, StorageFailure } from '../../src/core/errors.ts'
import { Engine } from '../../src/engine/index.ts'
import { type Context, type ContextCheckpoint, forEach, input, linear, task, times } from '../../src/flow/index.ts'
import type { FlowLog } from '../../src/persistence/index.ts'
import { dyingAt, fails, intercepted, TaskRecorder, tracing } from './workshop.ts'

/** A task that notes what it finds, and does what is given. */
function finding(
  found: unknown[],
  during: (ctx: Context, run: number) => unknown,
  { requires = [], revert }: { requires?: string[]; revert?: (args: unknown, ctx: Context) => unknown } = {},
) {
  return task('import', {
    requires,
    execute: async (_args: Record<string, unknown>, ctx) => {
      found.push(ctx.checkpoint.last)
      await during(ctx, found.length)
    },
    ...(revert ? { revert } : {}),
  })
}

const saves = (value: unknown, then: () => unknown) => async (ctx: Context, run: number) => {
  if (run > 1) return
  await ctx.checkpoint.save(value)
  await then()
}

async function checkpointOf(shop: TaskRecorder, name = 'import') {
  return (await shop.detail()).atoms.find((atom) => atom.name === name)?.checkpoint
}

/** A log that dies at the first write after the one with a checkpoint. */
function dyingAfterSave(log: FlowLog): FlowLog {
  let saved = false
  return intercepted(log, async (transition) => {
    if (saved) throw new StorageFailure('died after the save')
    await log.write(transition)
    saved = transition.atoms?.some(({ checkpoint }) => checkpoint !== undefined) ?? false
  })
}

describe('the next run finds what was saved', () => {
  test.each([
    ['an object', { row: 1_200, at: new Date(7), bytes: Uint8Array.of(1) }],
    ['null', null],
    ['false', false],
    ['a list', [1, [2]]],
  ])('%s, after its process has died', async (_what, value) => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const flow = linear('f', input(), finding(found, saves(value, fails('lost'))))
    const engine = new Engine({ flow, log: dyingAfterSave(await shop.acquire(flow)) })
    await expect(engine.run()).rejects.toThrow('died after the save')
    expect(await checkpointOf(shop)).toEqual({ value, at: expect.any(Date) })
    expect(await shop.run(flow)).toMatchObject({ state: 'SUCCESS' })
    expect(found).toEqual([undefined, value])
  })

  test('after it was suspended: a task can save when its signal has fired', async () => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const flow = linear(
      'f',
      input(),
      finding(found, async (ctx, run) => {
        if (run > 1) return
        engine.suspend()
        expect(ctx.signal.aborted).toBe(true)
        await ctx.checkpoint.save({ row: 7 })
        throw ctx.signal.reason
      }),
    )
    const engine = await shop.engine(flow)
    expect(await engine.run()).toMatchObject({ state: 'SUSPENDED' })
    expect(await shop.run(flow)).toMatchObject({ state: 'SUCCESS' })
    expect(found).toEqual([undefined, { row: 7 }])
  })

  test('after it has failed, and its retry gives it another attempt', async () => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const flow = linear({ name: 'f', retry: times(3) }, input(), finding(found, saves({ row: 7 }, fails('no answer'))))
    expect(await shop.run(flow)).toMatchObject({ state: 'SUCCESS' })
    expect(found).toEqual([undefined, { row: 7 }])
  })

  test('after its flow has failed, and the job is run again', async () => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const flow = linear('f', input(), finding(found, saves({ row: 7 }, fails('no answer'))))
    expect(await shop.run(flow)).toMatchObject({ state: 'REVERTED' })
    expect(await shop.run(flow)).toMatchObject({ state: 'SUCCESS' })
    expect(found).toEqual([undefined, { row: 7 }])
  })

  test('after a failure that nobody resolved', async () => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const flow = linear('f', input(), tracing('a', []), finding(found, saves({ row: 7 }, fails('no answer'))))
    expect(await shop.run(flow, { neverResolve: true })).toMatchObject({ state: 'FAILURE' })
    expect(await shop.run(flow, { neverResolve: true })).toMatchObject({ state: 'SUCCESS' })
    expect(found).toEqual([undefined, { row: 7 }])
  })
})

describe('a checkpoint is cleared', () => {
  test('when its task succeeds', async () => {
    await using shop = new TaskRecorder()
    const flow = linear(
      'f',
      input(),
      finding([], (ctx) => ctx.checkpoint.save(1)),
    )
    await shop.run(flow)
    expect(await checkpointOf(shop)).toBeUndefined()
  })

  test('by saving undefined', async () => {
    await using shop = new TaskRecorder()
    const flow = linear('f', input(), finding([], saves({ row: 7 }, fails('no answer'))))
    await shop.run(flow)
    const cleared = linear(
      'f',
      input(),
      finding([], async (ctx) => {
        await ctx.checkpoint.save(undefined)
        throw new Error('no answer')
      }),
    )
    await shop.run(cleared)
    expect(await checkpointOf(shop)).toBeUndefined()
  })

  test.each([[{ retry: times(2) }], [{}]])('when its revert has run, which can read it: %j', async (options) => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const reverted: unknown[] = []
    const revert = (_args: unknown, ctx: Context) => reverted.push(ctx.checkpoint.last)
    const flow = linear(
      { name: 'f', ...options },
      input(),
      finding(found, saves({ row: 7 }, fails('no answer')), { revert }),
    )
    await shop.run(flow)
    if (found.length < 2) await shop.run(flow)
    expect({ found, reverted }).toEqual({ found: [undefined, undefined], reverted: [{ row: 7 }] })
  })

  test('also when a revert has failed, before it is executed again', async () => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const flow = linear('f', input(), finding(found, saves(7, fails('no answer')), { revert: fails('no way back') }))
    expect(await shop.run(flow)).toMatchObject({ state: 'FAILURE' })
    await shop.run(flow)
    expect(found).toEqual([undefined, undefined])
  })

  test.each([[{ retry: times(2) }], [{}]])('when a task before it is executed again: %j', async (options) => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const flow = linear(
      { name: 'f', ...options },
      input(),
      tracing('a', []),
      linear('inner', input(), finding(found, saves({ row: 7 }, fails('no answer')))),
    )
    await shop.run(flow)
    if (found.length < 2) await shop.run(flow)
    expect(found).toEqual([undefined, undefined])
  })

  test('when its retry has another value for it', async () => {
    await using shop = new TaskRecorder()
    const found: unknown[] = []
    const mirrors = forEach(['one', 'two'], { provides: 'mirror' })
    const importing = finding(found, saves({ row: 7 }, fails('no answer')), { requires: ['mirror'] })
    await shop.run(linear({ name: 'f', retry: mirrors }, input(), importing))
    expect(found).toEqual([undefined, undefined])
  })
})

test('a task before the flow that is retried does not run again: the checkpoint stays', async () => {
  await using shop = new TaskRecorder()
  const [found, trace]: [unknown[], string[]] = [[], []]
  const inner = linear({ name: 'inner', retry: times(2) }, input(), finding(found, saves(7, fails('no answer'))))
  await shop.run(linear('f', input(), tracing('a', trace), inner))
  expect({ found, trace }).toEqual({ found: [undefined, 7], trace: ['a'] })
})

test('a revert that is interrupted finds what it has saved itself', async () => {
  await using shop = new TaskRecorder()
  const reverted: unknown[] = []
  const revert = async (_args: unknown, ctx: Context) => {
    reverted.push(ctx.checkpoint.last)
    if (reverted.length > 1) return
    await ctx.checkpoint.save({ undoneTo: 3 })
    engine.suspend()
    throw new Error('stopped')
  }
  const flow = linear('f', input(), finding([], saves({ row: 7 }, fails('no answer')), { revert }))
  const engine = await shop.engine(flow)
  expect(await engine.run()).toMatchObject({ state: 'SUSPENDED' })
  expect(await shop.run(flow)).toMatchObject({ state: 'REVERTED' })
  expect(reverted).toEqual([{ row: 7 }, { undoneTo: 3 }])
  expect(await checkpointOf(shop)).toBeUndefined()
})

test('saves that come during a write are combined, and the newest is written', async () => {
  await using shop = new TaskRecorder()
  const [began, free] = [createDeferred(), createDeferred()]
  const written: unknown[] = []
  const flow = linear(
    'f',
    input(),
    finding([], async ({ checkpoint }) => {
      const first = checkpoint.save(0)
      await began.promise
      const more = Array.from({ length: 100 }, (_, index) => checkpoint.save(index + 1))
      free.resolve()
      await Promise.all([first, ...more])
      expect(written).toEqual([0, 100])
    }),
  )
  const log = await shop.acquire(flow)
  const slow = intercepted(log, async (transition) => {
    const { checkpoint } = transition.atoms?.[0] ?? {}
    if (checkpoint?.value === 0) {
      began.resolve()
      await free.promise
    }
    await log.write(transition)
    if (checkpoint) written.push(checkpoint.value)
  })
  expect(await new Engine({ flow, log: slow }).run()).toMatchObject({ state: 'SUCCESS' })
})

test('what is saved is a copy, and so is what is found', async () => {
  await using shop = new TaskRecorder()
  const found: unknown[] = []
  const flow = linear(
    'f',
    input(),
    finding(found, async ({ checkpoint }) => {
      const state = (checkpoint.last ?? { rows: [0] }) as { rows: number[] }
      const saving = checkpoint.save(state)
      state.rows.push(1)
      await saving
      throw new Error('no answer')
    }),
  )
  await shop.run(flow)
  await shop.run(flow)
  // The task has changed what it found, and what it had saved; neither is what is on record.
  expect((await checkpointOf(shop))?.value).toEqual({ rows: [0] })
  expect(JSON.stringify(found)).toBe('[null,{"rows":[0,1]}]')
})

test.each([
  [
    'a function',
    () => undefined,
    InvalidArgument,
    'the checkpoint of task import cannot be stored: the value itself is a function',
  ],
  ['an instance', { rows: new Map() }, InvalidArgument, 'the checkpoint of task import cannot be stored: rows is'],
  [
    'more than 64 KB',
    'x'.repeat(64 * 1_024),
    PayloadTooLarge,
    'the checkpoint of task import has 65 KB, more than 64 KB: save a position, and store the data elsewhere',
  ],
])('refuses %s, and the task goes on', async (_what, value, error, message) => {
  await using shop = new TaskRecorder()
  const flow = linear(
    'f',
    input(),
    finding([], async ({ checkpoint }) => {
      const refused = await checkpoint.save(value).catch((reason: unknown) => reason)
      expect(refused).toBeInstanceOf(error)
      expect((refused as Error).message).toContain(message)
      await checkpoint.save('x'.repeat(64 * 1_024 - 3))
    }),
  )
  expect(await shop.run(flow)).toMatchObject({ state: 'SUCCESS', failures: [] })
})

test('a task that is over saves nothing', async () => {
  await using shop = new TaskRecorder()
  let late: ContextCheckpoint | undefined
  const flow = linear(
    'f',
    input(),
    finding([], ({ checkpoint }) => {
      late = checkpoint
    }),
  )
  await shop.run(flow)
  const refused = await late?.save(1).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(InvalidState)
  expect((refused as Error).message).toContain('task import is over')
  expect(await checkpointOf(shop)).toBeUndefined()
})

test('a newer run has acquired the flow: the save is refused, and the run ends', async () => {
  await using shop = new TaskRecorder()
  const refused: unknown[] = []
  const flow = linear(
    'f',
    input(),
    finding([], async ({ checkpoint }) => {
      await checkpoint.save('mine')
      const newer = await shop.acquire(flow)
      refused.push(await checkpoint.save('too late').catch((error: unknown) => error))
      refused.push(await checkpoint.save('later').catch((error: unknown) => error))
      await newer.close()
    }),
  )
  const engine = await shop.engine(flow)
  await expect(engine.run()).rejects.toThrow(ClaimLost)
  await engine.idle
  expect(refused).toEqual([expect.any(ClaimLost), expect.any(ClaimLost)])
  expect((await checkpointOf(shop))?.value).toBe('mine')
})

test('a claim that is lost during the write ends the save at once', async () => {
  await using shop = new TaskRecorder()
  const stop = new AbortController()
  const refused: unknown[] = []
  const flow = linear(
    'f',
    input(),
    finding([], async ({ checkpoint }) => {
      refused.push(await checkpoint.save('mine').catch((error: unknown) => error))
    }),
  )
  const log = await shop.acquire(flow)
  const written = createDeferred()
  const hanging = intercepted(log, async (transition) => {
    if (!transition.atoms?.[0]?.checkpoint) return log.write(transition)
    stop.abort(new ClaimLost('lost'))
    await written.promise
  })
  const engine = new Engine({ flow, log: hanging, signals: { stop: stop.signal } })
  await expect(engine.run()).rejects.toThrow('lost')
  await engine.idle
  expect(refused).toEqual([expect.any(ClaimLost)])
  written.resolve()
})

test('logbooks that are away end the run, also if nobody waits for the save', async () => {
  await using shop = new TaskRecorder()
  const flow = linear(
    'f',
    input(),
    finding([], async ({ checkpoint, signal }) => {
      void checkpoint.save(1)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }),
  )
  const engine = new Engine({ flow, log: dyingAt(2, await shop.acquire(flow), { done: false }) })
  await expect(engine.run()).rejects.toThrow('died at write 2')
})

describe('a message of the progress', () => {
  test('is recorded beside the number, until the next report', async () => {
    await using shop = new TaskRecorder()
    const events: unknown[] = []
    const recorded: unknown[] = []
    const flow = linear(
      'f',
      input(),
      finding([], async ({ progress, checkpoint }) => {
        for (const message of [
          'page 1',
          undefined,
          '',
          'page 3',
          'x'.repeat(300),
          `${'x'.repeat(198)}😀y`,
          7 as never,
        ]) {
          progress(0.5, message)
          // A save is a write, which records the report, too.
          await checkpoint.save(0)
          const [atom] = (await shop.detail()).atoms
          recorded.push(atom?.progressMessage)
        }
      }),
    )
    const engine = await shop.engine(flow)
    engine.on('progress', ({ message }) => events.push(message))
    await engine.run()
    const expected = ['page 1', undefined, undefined, 'page 3', `${'x'.repeat(199)}…`, `${'x'.repeat(198)}…`, undefined]
    expect(recorded).toEqual(expected)
    expect(events).toEqual(expected)
  })

  test('of a former run is gone when the task begins again', async () => {
    await using shop = new TaskRecorder()
    const messages: unknown[] = []
    const flow = linear(
      'f',
      input(),
      finding([], async ({ progress }, run) => {
        messages.push((await shop.detail()).atoms[0]?.progressMessage)
        if (run > 1) return
        progress(0.1, 'page 1')
        engine.suspend()
        throw new Error('stopped')
      }),
    )
    const engine = await shop.engine(flow)
    await engine.run()
    expect((await shop.detail()).atoms[0]?.progressMessage).toBe('page 1')
    await shop.run(flow)
    expect(messages).toEqual([undefined, undefined])
  })
})
