/** A pool of child processes: work, answers, and what goes wrong with either. Each child is a real process. */
import { readFileSync } from 'node:fs'
import { describe, expect, vi } from 'vitest'
import { AbortFlag } from '../../src/core/async/abort-flag.ts'
import { Cancelled, ChildDied, ChildUnavailable, OutOfMemory, Timeout } from '../../src/core/errors.ts'
import { describeError, WrappedFailure } from '../../src/core/failure.ts'
import { toChildEnd, toDeathError } from '../../src/pool/child-end.ts'
import { rejectionOf } from '../board/events.ts'
import { usual as test, testRows, variant } from '../variant.ts'
import { isAlive, newFile, pidsIn, sendSignal, testPool, whenDead } from './pools.ts'

const outcomes = (events: readonly { kind: string }[]) => events.map(({ kind }) => kind)

describe('work', () => {
  test('is done by a child, in the order of the requests, and its notes come before its answer', async () => {
    await using pool = await testPool({ max: 1 })
    const notes: unknown[] = []
    const pids = await Promise.all([
      pool.run({ kind: 'note', notes: [1, { two: 2 }] }, { onNote: (note) => notes.push(note) }),
      pool.run({ kind: 'pid' }),
    ])
    expect(pids[0]).toBe(pids[1])
    expect(pids[0]).not.toBe(process.pid)
    expect(notes).toEqual([1, { two: 2 }])
    expect(await pool.run({ kind: 'echo', value: { bytes: Buffer.from('a'), big: 2n ** 60n } })).toEqual({
      bytes: Buffer.from('a'),
      big: 2n ** 60n,
    })
  })

  test('is done side by side, by as many children as are allowed', async () => {
    await using pool = await testPool({ min: 1, max: 3 })
    const file = await newFile()
    const stop = new AbortFlag()
    const working = Array.from({ length: 5 }, () => rejectionOf(pool.run({ kind: 'heed', file }, { stop })))
    expect(new Set(await pidsIn(file, 3)).size).toBe(3)
    expect(pool.pool.children.filter(({ state }) => state === 'busy')).toHaveLength(3)
    expect(pool.pool.waiting).toBe(2)
    stop.abort(new Timeout('late'))
    expect((await Promise.all(working)).map(String)).toEqual(Array(5).fill(expect.stringContaining('late')))
    expect(await pool.run({ kind: 'echo', value: 'still there' })).toBe('still there')
  })

  test('that throws is rejected with its failure, and the child stays', async () => {
    await using pool = await testPool({ max: 1 })
    const error = await rejectionOf(pool.run({ kind: 'throw' }))
    expect(error).toBeInstanceOf(WrappedFailure)
    expect((error as WrappedFailure).failures).toMatchObject([
      { name: 'TypeError', message: 'no such picture', code: 'E_PICTURE', causes: [{ message: 'disk' }] },
    ])
    expect(String(await rejectionOf(pool.run({ kind: 'throwText' })))).toContain('just a text')
    expect(String(await rejectionOf(pool.run({ kind: 'uncloneable' })))).toContain('could not be cloned')
    expect(pool.pool.children).toMatchObject([{ state: 'idle', tasks: 3 }])
  })

  test.each([
    ['fault', 'thrown by a timer'],
    ['rejection', 'nobody awaits this'],
  ])('with a %s outside of its promise fails with that, and the child is replaced', async (kind, message) => {
    await using pool = await testPool({ max: 1 })
    const pid = await pool.run({ kind: 'pid' })
    const error = await rejectionOf(pool.run({ kind }))
    expect(String(error)).toContain(message)
    expect(await pool.run({ kind: 'pid' })).not.toBe(pid)
    expect(pool.lines.join('\n')).toContain(message)
  })

  variant('with large messages arrives whole', async () => {
    await using pool = await testPool({ max: 1 })
    expect(await pool.run({ kind: 'big', bytes: 20_000_000 })).toHaveLength(20_000_000)
  })
})

describe('a child that dies', () => {
  testRows<[string, { kind: string }, typeof ChildDied, RegExp]>(
    [
      ['process.exit', { kind: 'exit' }, ChildDied, /ended with exit code 0, as process.exit\(\) does/],
      ['a native abort', { kind: 'abort' }, ChildDied, /was killed by SIGABRT/],
      ['an exhausted heap', { kind: 'heap' }, OutOfMemory, /out of memory|uses more than/],
      ['exhausted buffers', { kind: 'buffers' }, OutOfMemory, /uses more than the 200 MB/],
    ],
    ([cause]) => cause === 'process.exit' || cause === 'exhausted buffers',
  )('by %s fails its work, and the next is done by another', async (_, work, type, message) => {
    await using pool = await testPool({ max: 1, memory: '200MB' })
    const error = await rejectionOf(pool.run(work))
    expect(error).toBeInstanceOf(type)
    expect(String(error)).toMatch(message)
    expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
  })

  test('by a signal from outside, while it works, fails its work', async () => {
    await using pool = await testPool({ max: 1 })
    const file = await newFile()
    const working = rejectionOf(pool.run({ kind: 'spin', file }))
    const [pid = 0] = await pidsIn(file, 1)
    sendSignal(pid, 'SIGKILL')
    const error = await working
    expect(error).toBeInstanceOf(ChildDied)
    expect(String(error)).toMatch(new RegExp(`pid ${pid}, .* was killed by SIGKILL while it worked`))
  })

  test('before it has begun its work gives the work to another', async () => {
    await using pool = await testPool({ max: 1 })
    const pid = Number(await pool.run({ kind: 'pid' }))
    sendSignal(pid, 'SIGSTOP')
    const working = pool.run({ kind: 'pid' })
    sendSignal(pid, 'SIGKILL')
    expect(await working).not.toBe(pid)
  })

  test('while it is idle is replaced', async () => {
    await using pool = await testPool({ min: 1, max: 1 })
    const pid = Number(await pool.run({ kind: 'pid' }))
    sendSignal(pid, 'SIGKILL')
    await vi.waitFor(() => expect(pool.pool.children).toMatchObject([{ state: 'idle', tasks: 0 }]), { timeout: 10_000 })
    expect(outcomes(pool.events)).toEqual(['started', 'ended', 'started'])
  })

  test('takes the processes along that it has started', async () => {
    await using pool = await testPool({ max: 1 })
    const file = await newFile()
    const working = rejectionOf(pool.run({ kind: 'grandchild', file }))
    const pids = await pidsIn(file, 2)
    process.kill(pids[0] ?? 0, 'SIGKILL')
    await working
    await whenDead(pids)
  })
})

describe('a stop', () => {
  test('of work that heeds its signal keeps the child', async () => {
    await using pool = await testPool({ max: 1 })
    const file = await newFile()
    const stop = new AbortFlag()
    const working = rejectionOf(pool.run({ kind: 'heed', file }, { stop, graceMs: 60_000 }))
    const [pid] = await pidsIn(file, 1)
    stop.abort(new Timeout('not done within 1 s'))
    expect(String(await working)).toContain('not done within 1 s')
    expect(await pool.run({ kind: 'pid' })).toBe(pid)
  })

  testRows([['ignore'], ['spin'], ['grandchild']], ([kind]) => kind === 'grandchild')(
    'of work that does not (%s) kills the child and what it has started',
    async (kind) => {
      await using pool = await testPool({ max: 1 })
      const file = await newFile()
      const stop = new AbortFlag()
      const working = rejectionOf(pool.run({ kind, file }, { stop }))
      const pids = await pidsIn(file, kind === 'grandchild' ? 2 : 1)
      const reason = new Timeout('not done within 1 s')
      stop.abort(reason)
      expect(await working).toBe(reason)
      expect(pids.filter(isAlive)).toEqual([])
      expect(await pool.run({ kind: 'pid' })).not.toBe(pids[0])
    },
  )

  variant('of a child that is stopped itself kills it', async () => {
    await using pool = await testPool({ max: 1 })
    const file = await newFile()
    const stop = new AbortFlag()
    const working = rejectionOf(pool.run({ kind: 'heed', file }, { stop }))
    const pids = await pidsIn(file, 1)
    for (const pid of pids) sendSignal(pid, 'SIGSTOP')
    stop.abort(new Timeout('late'))
    expect(String(await working)).toContain('late')
    await whenDead(pids)
  })

  test('of work that waits removes it from the queue', async () => {
    await using pool = await testPool({ max: 1 })
    const file = await newFile()
    const [stop, stopFirst] = [new AbortFlag(), new AbortFlag()]
    const first = rejectionOf(pool.run({ kind: 'heed', file }, { stop: stopFirst, graceMs: 60_000 }))
    await pidsIn(file, 1)
    const second = rejectionOf(pool.run({ kind: 'exit' }, { stop }))
    stop.abort(new Timeout('late'))
    expect(String(await second)).toContain('late')
    stopFirst.abort(new Timeout('late'))
    await first
    expect(pool.pool.children).toMatchObject([{ state: 'idle', tasks: 1 }])
  })

  test('by a lost right kills the child at once', async () => {
    await using pool = await testPool({ max: 1 })
    const file = await newFile()
    const kill = new AbortFlag()
    const working = rejectionOf(pool.run({ kind: 'heed', file }, { kill, graceMs: 600_000 }))
    const pids = await pidsIn(file, 1)
    const reason = new Error('the claim is lost')
    kill.abort(reason)
    expect(await working).toBe(reason)
    await whenDead(pids)
  })

  variant('signals from outside do not end a child', async () => {
    await using pool = await testPool({ max: 1 })
    const file = await newFile()
    const stop = new AbortFlag()
    const working = rejectionOf(pool.run({ kind: 'heed', file }, { stop, graceMs: 60_000 }))
    const [pid = 0] = await pidsIn(file, 1)
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) sendSignal(pid, signal)
    stop.abort(new Timeout('late'))
    await working
    expect(await pool.run({ kind: 'pid' })).toBe(pid)
  })
})

describe('replacing', () => {
  test('a child after its last task fails no work, and the successor is started before', async () => {
    await using pool = await testPool({ min: 2, max: 2, maxTasks: 3 })
    const pids = await Promise.all(Array.from({ length: 30 }, () => pool.run({ kind: 'pid' })))
    const counts = new Map<unknown, number>()
    for (const pid of pids) counts.set(pid, (counts.get(pid) ?? 0) + 1)
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(3)
    expect(counts.size).toBeGreaterThanOrEqual(10)
    const ended = pool.events.flatMap((event) => (event.kind === 'ended' ? [event.end] : []))
    expect(ended.every(({ isExpected, exitCode }) => isExpected && exitCode === 0)).toBe(true)
  })

  test('a child that is too old keeps working until its successor is ready', async () => {
    await using pool = await testPool({ min: 1, max: 1, maxAge: 1 })
    const pid = await pool.run({ kind: 'pid' })
    await vi.waitFor(async () => expect(await pool.run({ kind: 'pid' })).not.toBe(pid), { timeout: 20_000 })
    await vi.waitFor(() => expect(outcomes(pool.events)).toContain('ended'), { timeout: 20_000 })
    // The successor is too old at once: its own successor may be started before the first child has ended.
    expect(outcomes(pool.events).slice(0, 2)).toEqual(['started', 'started'])
    const ended = pool.events.flatMap((event) => (event.kind === 'ended' ? [event.child.number] : []))
    expect(ended[0]).toBe(1)
  })

  variant('a child that is too old is replaced although it is never idle for long', async () => {
    await using pool = await testPool({ max: 1, maxAge: '1s' })
    const first = await pool.run({ kind: 'pid' })
    const pids = async () => {
      await Promise.all(Array.from({ length: 20 }, () => pool.run({ kind: 'echo', value: 1 })))
      return pool.run({ kind: 'pid' })
    }
    await vi.waitFor(async () => expect(await pids()).not.toBe(first), { timeout: 20_000, interval: 1 })
  })

  test('memory that earlier work has left is not the fault of later work', async () => {
    await using pool = await testPool({ max: 1, memory: '120MB' })
    // If the memory is read while it works, it is killed itself.
    const leaking = await pool.run({ kind: 'leak', megabytes: 200 }).catch(() => undefined)
    expect(await pool.run({ kind: 'pid' })).not.toBe(leaking)
  })

  test('fresh work has a child of its own', async () => {
    await using pool = await testPool({ max: 2 })
    const pids = await Promise.all(Array.from({ length: 6 }, () => pool.run({ kind: 'pid' }, { isFresh: true })))
    expect(new Set(pids).size).toBe(6)
  })

  test('work with more memory has a child with more memory', async () => {
    await using pool = await testPool({ max: 1, memory: '200MB' })
    const small = await pool.run({ kind: 'pid' })
    const large = await pool.run({ kind: 'pid' }, { memory: 400 * 1_024 ** 2 })
    expect(large).not.toBe(small)
    expect(await pool.run({ kind: 'pid' })).not.toBe(large)
  })

  test('a child that ends in order disposes of its worker first, also with time limits longer than a timer of Node', async () => {
    const file = await newFile()
    const pool = await testPool({ max: 1, startTimeout: '30d', grace: '30d' }, { settings: { file } })
    const pid = await pool.run({ kind: 'pid' })
    await pool[Symbol.asyncDispose]()
    expect(readFileSync(file, 'utf8')).toBe(`disposed ${pid}\n`)
  })
})

describe('a child that cannot be started', () => {
  testRows(
    [
      ['whose module is missing', { worker: 'file:///no/such/worker.mjs' }, /worker\.mjs/],
      ['whose worker throws', { settings: { fails: 'always' } }, /the worker cannot be opened/],
      ['whose module ends the process', { settings: { fails: 'exit' } }, /exit code 0 before it was ready/],
      ['that says why', { settings: { fails: 'talk' } }, /exit code 3 before it was ready/],
      ['that never becomes ready', { settings: { fails: 'hang' } }, /was not ready within 2000 ms/],
    ] as const,
    ([what]) => what !== 'that never becomes ready',
  )('%s', async (what, options, message) => {
    const limits = what.includes('never') ? { startTimeout: 2_000 } : {}
    const error = await rejectionOf(testPool(limits, options))
    expect(error).toBeInstanceOf(ChildUnavailable)
    expect(String(error)).toMatch(message)
    if (what.includes('why')) expect(String((error as Error).cause)).toContain('the licence has expired')
  })

  test('that has too little memory', async () => {
    const error = await rejectionOf(testPool({ memory: '32MB' }))
    expect(String(error)).toMatch(/uses \d+ MB before its first task, more than its limit of 32 MB: raise the limit/)
  })

  test('whose facts are refused', async () => {
    const assertFacts = () => {
      throw new Error('another flow')
    }
    expect(String(await rejectionOf(testPool({ assertFacts })))).toContain('another flow')
  })

  test('five times in a row makes the pool refuse work, until one can be started again', async () => {
    const file = await newFile()
    await using pool = await testPool({ max: 1 }, { settings: { fails: 'while', file } })
    const { writeFile, rm } = await import('node:fs/promises')
    await writeFile(file, '')
    const [pid = 0] = [Number(await pool.run({ kind: 'pid' }))]
    sendSignal(pid, 'SIGKILL')
    await whenDead([pid])
    const waiting = rejectionOf(pool.run({ kind: 'pid' }))
    expect(await waiting).toBeInstanceOf(ChildUnavailable)
    expect(pool.pool.refusal).toBeInstanceOf(ChildUnavailable)
    expect(await rejectionOf(pool.run({ kind: 'pid' }))).toBeInstanceOf(ChildUnavailable)
    expect(pool.events.filter(({ kind }) => kind === 'start-failed')).toHaveLength(5)
    await rm(file)
    await vi.waitFor(() => expect(pool.pool.refusal).toBeUndefined(), { timeout: 60_000 })
    expect(await pool.run({ kind: 'echo', value: 'back' })).toBe('back')
  })
})

variant.each([
  [new Timeout('too late'), { name: 'Timeout', code: 'JOBBOARD_TIMEOUT', message: 'too late' }],
  [new Cancelled('not needed'), { name: 'Cancelled', code: 'JOBBOARD_CANCELLED', message: 'not needed' }],
  [new Error('own'), { name: 'WrappedFailure', message: 'Error: own' }],
])('the signal in a child has the reason of the stop: %s', async (reason, expected) => {
  await using pool = await testPool({ max: 1 })
  const stop = new AbortFlag()
  const file = await newFile()
  const working = pool.run({ kind: 'reason', file }, { stop })
  await pidsIn(file, 1)
  stop.abort(reason)
  expect(await working).toMatchObject(expected)
})

test('the stack of native code is no part of the last output of a child', () => {
  const lastLines = [
    'loading',
    '----- Native stack trace -----',
    '',
    ' 1: 0xaaba28 node::Abort() [node]',
    'FATAL ERROR: heap out of memory',
  ]
  const end = toChildEnd({
    ...{ exitCode: null, signal: 'SIGABRT', isExpected: false, killedFor: undefined, isKilledByKernel: false },
    lastLines,
  })
  const error = toDeathError({ who: 'child 1', end, lastLines }, undefined)
  expect(error).toBeInstanceOf(OutOfMemory)
  expect(describeError(error)).toMatch(/its last output: loading\s+FATAL ERROR: heap out of memory$/)
})

test('the failure of a child that dies has its own output, and not that of earlier work', async () => {
  await using pool = await testPool({ max: 1 })
  await pool.run({ kind: 'flood', lines: 3 })
  await vi.waitFor(() => expect(pool.lines).toHaveLength(3), 60_000)
  const error = await rejectionOf(pool.run({ kind: 'say', line: 'farewell' }))
  expect(describeError(error)).toContain('its last output: farewell')
  expect(describeError(error)).not.toContain('line 0')
})

variant('output arrives line by line, and a flood of it is cut', async () => {
  await using pool = await testPool({ max: 1 })
  await pool.run({ kind: 'flood', lines: 3 })
  await vi.waitFor(() => expect(pool.lines).toEqual(['line 0', 'line 1', 'line 2']), 60_000)
  await pool.run({ kind: 'flood', lines: 100_000 })
  await vi.waitFor(() => expect(pool.lines.at(-1)).toMatch(/dropped$/), { timeout: 30_000 })
  expect(pool.lines.length).toBeLessThan(20_000)
})

test('a closed pool leaves nothing running, and rejects what waits', async () => {
  const pool = await testPool({ max: 1 })
  const file = await newFile()
  const working = [rejectionOf(pool.run({ kind: 'spin', file })), rejectionOf(pool.run({ kind: 'pid' }))]
  const pids = await pidsIn(file, 1)
  await pool[Symbol.asyncDispose]()
  expect((await Promise.all(working)).map(String)).toEqual(Array(2).fill(expect.stringContaining('is closed')))
  expect(pids.filter(isAlive)).toEqual([])
  expect(await rejectionOf(pool.run({ kind: 'pid' }))).toBeInstanceOf(ChildUnavailable)
})
