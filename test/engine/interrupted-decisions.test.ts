/** Deciders and retries that throw, are interrupted, or find that nobody needs their answer any more. */
import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { StorageFailure } from '../../src/core/errors.ts'
import { Engine } from '../../src/engine/index.ts'
import { type AnyRetry, type Decision, graph, input, linear, link, retry, times } from '../../src/flow/index.ts'
import { dyingAt, fails, TaskRecorder, tracing } from './workshop.ts'

test.each([true, false])(
  'a decider throws, and the process dies at any write (done: %s): what it decides about is not executed',
  async (done) => {
    for (let kill = 1; kill < 8; kill += 1) {
      await using shop = new TaskRecorder()
      const trace: string[] = []
      const [a, b, c] = [tracing('a', trace), tracing('b', trace), tracing('c', trace)]
      let decider: () => boolean = fails('cannot decide')
      const links = [link(a, b, { decider: () => decider() }), link(a, c)]
      const flow = graph({ name: 'choice', links, retry: times(2) }, input(), a, b, c)
      const first = new Engine({ flow, log: dyingAt(kill, await shop.acquire(flow), { done }) })
      await first.run().catch((error: unknown) => expect(error).toBeInstanceOf(StorageFailure))
      decider = () => false
      for (let left = 2; left > 0; left -= 1) await shop.run(flow)
      expect(trace).not.toContain('b')
    }
  },
)

test('a decider that answers with a promise is refused: every promise looks like a yes', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const [a, b] = [tracing('a', trace), tracing('b', trace)]
  const decider = (async () => false) as never
  const { state, failures } = await shop.run(graph({ name: 'g', links: [link(a, b, { decider })] }, input(), a, b))
  expect({ state, trace }).toEqual({ state: 'REVERTED', trace: ['a', '-a'] })
  expect(failures[0]?.message).toContain('a decider must return true or false')
})

/** Heeds its signal the first time it is asked, and has the flow attempted again the second. */
function slowRetry(asked: { times: number; suspend: () => void }): AnyRetry {
  return retry('hesitant', {
    execute: () => undefined,
    onFailure: async (_args, { signal }): Promise<Decision> => {
      asked.times += 1
      if (asked.times > 1) return 'RETRY'
      const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      asked.suspend()
      return aborted
    },
  })
}

test('a retry that is interrupted by a suspension while it decides has decided nothing, and is asked again', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const asked = { times: 0, suspend: () => engine.suspend() }
  let broken = true
  const once = () => {
    if (broken) throw new Error('broken')
  }
  const inner = linear({ name: 'inner', retry: slowRetry(asked) }, input(), tracing('a', trace, { during: once }))
  const flow = linear('outer', input(), tracing('before', trace), inner)
  const engine = await shop.engine(flow)
  expect((await engine.run()).state).toBe('SUSPENDED')
  broken = false
  expect((await shop.run(flow)).state).toBe('SUCCESS')
  expect(trace).toEqual(['before', 'a', '-a', 'a'])
  expect(asked.times).toBe(2)
})

test('who has no right to work any more asks no retry about what an earlier engine left', async () => {
  await using shop = new TaskRecorder()
  const asked = { times: 1, suspend: () => undefined }
  const flow = linear({ name: 'f', retry: slowRetry(asked) }, input(), tracing('a', []))
  const left = { version: '1.0', intention: 'EXECUTE', meta: {}, updatedAt: new Date() } as const
  const history = [{ value: undefined, failures: [] }]
  await shop.forge(flow, {
    state: 'RUNNING',
    atoms: [
      { ...left, name: 'hesitant', kind: 'retry', state: 'SUCCESS', history },
      { ...left, name: 'a', kind: 'task', state: 'FAILURE', failure: { name: 'Error', message: 'left behind' } },
    ],
  })
  const gone = new Error('the claim is gone')
  await expect(shop.run(flow, { signals: { stop: AbortSignal.abort(gone) } })).rejects.toBe(gone)
  expect(asked.times).toBe(1)
})

test('a run in steps that loses its right to work ends with that error, and leaves no listener behind', async () => {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const lost = new Error('the claim is gone')
  const suspend = new AbortController()
  let owner = true
  const assertOwner = () => {
    if (!owner) throw lost
  }
  const during = () => {
    owner = false
  }
  const flow = linear('f', input(), tracing('a', trace, { during }), tracing('b', trace))
  const engine = await shop.engine(flow, { assertOwner, deadline: '1h', signals: { suspend: suspend.signal } })
  const steps = engine.runIter()
  await expect(async () => {
    for (let step = await steps.next(); !step.done; ) step = await steps.next()
  }).rejects.toBe(lost)
  await engine.idle
  expect(trace).toEqual(['a'])
  expect(getEventListeners(suspend.signal, 'abort')).toEqual([])
})
