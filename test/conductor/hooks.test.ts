/** Hooks of a conductor: when they are called, and what becomes of it when they fail. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { mergeHooks } from '../../src/conductor/internal.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import {
  type BeforeClaimContext,
  type ConductorHooks,
  type ConductorOptions,
  input,
  linear,
  openBoard,
  startConductor,
  task,
} from '../../src/index.ts'
import { rejectionOf, whenAborted } from '../board/events.ts'

const done: string[] = []
const flow = linear(
  'flow',
  input<{ fails: boolean }>(),
  task('work', {
    requires: ['fails'],
    execute: ({ fails }: { fails: boolean }) => {
      done.push('job')
      if (fails) throw new Error('it fails')
    },
  }),
)

async function openSetup() {
  done.length = 0
  const board = await openBoard('memory:')
  onTestFinished(() => board.close())
  const start = async (hooks: ConductorHooks, options: Partial<ConductorOptions> = {}) => {
    const conductor = await startConductor({ board, persistence: 'memory:', flows: [flow], hooks, ...options })
    onTestFinished(() => conductor.stop())
    return conductor
  }
  return { board, start }
}

describe('beforeClaim', () => {
  test('hooks run in order before the first claim, with the board and the name', async () => {
    const { board, start } = await openSetup()
    const job = await board.post(flow, { fails: false })
    const seen: BeforeClaimContext[] = []
    const first = async (context: BeforeClaimContext) => {
      seen.push(context)
      done.push('first')
    }
    await start({ beforeClaim: [first, { name: 'second', run: () => done.push('second') }] }, { name: 'one' })
    await job.wait()
    expect(done).toEqual(['first', 'second', 'job'])
    expect(seen).toMatchObject([{ conductor: 'one' }])
    expect(seen[0]?.board).toBe(board)
  })

  test('a hook that throws keeps the conductor from starting, and no job is claimed', async () => {
    const { board, start } = await openSetup()
    const job = await board.post(flow, { fails: false })
    const failure = new Error('the table is missing')
    expect(await rejectionOf(start({ beforeClaim: () => Promise.reject(failure) }))).toBe(failure)
    expect(job).toMatchObject({ state: 'UNCLAIMED', runs: 0 })
    expect(await board.entities('conductor')).toEqual([])
  })

  test('a hook that hangs ends at its time limit, or with the signal of the start', async () => {
    const { start } = await openSetup()
    const hang = (_: BeforeClaimContext) => new Promise<never>(() => undefined)
    const late = await rejectionOf(start({ beforeClaim: { name: 'migrate', run: hang, timeout: '10ms' } }))
    expect(String(late)).toContain('hook migrate was not done within 10ms; the conductor does not claim')
    const stop = new AbortController()
    const signals: AbortSignal[] = []
    const begun = createDeferred()
    const run = async ({ signal }: BeforeClaimContext) => {
      signals.push(signal)
      begun.resolve()
      await whenAborted(signal)
    }
    const starting = start({ beforeClaim: { name: 'wait', run } }, { signal: stop.signal })
    await begun.promise
    const reason = new Error('enough')
    stop.abort(reason)
    expect(await rejectionOf(starting)).toBe(reason)
    expect(signals[0]?.aborted).toBe(true)
  })

  test('with once, one conductor runs it and the others wait; a new release runs it again', async () => {
    const { start } = await openSetup()
    const begun = createDeferred()
    const over = createDeferred()
    const run = async () => {
      done.push('migrate')
      begun.resolve()
      await over.promise
      done.push('migrated')
    }
    const once = { name: 'migrate', once: 'release', run } as const
    const starting = ['a', 'b', 'c'].map((name) =>
      start({ beforeClaim: once }, { name, release: '1' }).then(() => done.push('started')),
    )
    await begun.promise
    over.resolve()
    await Promise.all(starting)
    expect(done).toEqual(['migrate', 'migrated', 'started', 'started', 'started'])
    await start({ beforeClaim: once }, { name: 'd', release: '2' })
    await start({ beforeClaim: { ...once, name: 'seed', once: 'board' } }, { name: 'e' })
    await start({ beforeClaim: { ...once, name: 'seed', once: 'board' } }, { name: 'f' })
    expect(done.filter((each) => each === 'migrate')).toHaveLength(3)
  })
})

describe('hooks about jobs', () => {
  test('are called when jobs were settled, and when they have failed', async () => {
    const { board, start } = await openSetup()
    const hooks: ConductorHooks = {
      settled: ({ job, settled }) => done.push(`${job.name} ${settled}`),
      failed: ({ failure }) => done.push(`failed: ${failure?.message}`),
    }
    await start(hooks)
    await (await board.post(flow, { fails: false }, { name: 'good' })).wait()
    await (await board.post(flow, { fails: true }, { name: 'bad', maxAttempts: 1 })).wait()
    await expect.poll(() => done).toEqual(['job', 'good consumed', 'job', 'bad trashed', 'failed: it fails'])
  })

  test('a hook that fails is reported as an error of the conductor, and disturbs no job', async () => {
    const { board, start } = await openSetup()
    const conductor = await start({
      settled: () => {
        throw new Error('no Sentry')
      },
      failed: () => Promise.reject(new Error('no mail')),
    })
    const errors: string[] = []
    conductor.on('error', ({ error }) => errors.push(error.message))
    await (await board.post(flow, { fails: true }, { maxAttempts: 1 })).wait()
    await expect.poll(() => errors).toEqual(['no Sentry', 'no mail'])
  })
})

describe('hooks of several modules', () => {
  test('functions of one name run one after the other, and an object that both export is called once', async () => {
    const { board, start } = await openSetup()
    const shared: ConductorHooks = { settled: () => done.push('settled') }
    const hooks = (said: string): ConductorHooks => ({ beforeClaim: () => done.push(said) })
    await start(mergeHooks([hooks('first'), shared, hooks('second'), shared]))
    await (await board.post(flow, { fails: false })).wait()
    await expect.poll(() => done).toEqual(['first', 'second', 'job', 'settled'])
  })

  test.each([
    [{ setled: () => 1 }, /hooks has no option "setled"; did you mean settled/],
    [{ failed: 'mail' }, /hooks: failed must be a function/],
  ])('a mistake in one of them is not lost: %j', (hooks, says) => {
    expect(() => mergeHooks([{}, hooks as ConductorHooks])).toThrow(says)
  })
})

test.each<[string, unknown, Partial<ConductorOptions>, RegExp]>([
  ['nothing in the list', { beforeClaim: [null] }, {}, /must be a function, \{ name, run \}, or a list/],
  [
    'a misspelt option of a hook',
    { beforeClaim: { name: 'x', run: () => 1, onse: 'board' } },
    {},
    /hooks: x has no option "onse"; did you mean once/,
  ],
  ['an unknown hook', { beforeClaims: () => 1 }, {}, /beforeClaims/],
  ['no function', { settled: 1 }, {}, /hooks: settled must be a function/],
  ['a hook without a name', { beforeClaim: { run: () => 1 } }, {}, /must be a function, \{ name, run \}, or a list/],
  [
    'once of something else',
    { beforeClaim: { name: 'x', run: () => 1, once: 'day' } },
    {},
    /once of x must be 'board'/,
  ],
  ['no release', { beforeClaim: { name: 'x', run: () => 1, once: 'release' } }, {}, /name it with the option release/],
  [
    'two of a name',
    { beforeClaim: ['x', 'x'].map((name) => ({ name, run: () => 1 })) },
    {},
    /two beforeClaim hooks have the name x/,
  ],
  ['an empty release', {}, { release: '' }, /release must be the name/],
])('is refused before anything is opened: %s', async (_, hooks, options, says) => {
  const { start } = await openSetup()
  await expect(start(hooks as ConductorHooks, options)).rejects.toThrow(says)
})
