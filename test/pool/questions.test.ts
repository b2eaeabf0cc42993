/** Questions of children about their work, and what becomes of them when the work or the child ends. */
import { expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { AbortFlag } from '../../src/core/async/abort-flag.ts'
import { Cancelled, ChildDied, InvalidArgument } from '../../src/core/errors.ts'
import type { WorkOptions } from '../../src/pool/index.ts'
import { rejectionOf } from '../board/events.ts'
import { newFile, pidsIn, sendSignal, testPool } from './pools.ts'

/** An owner that answers no question, and notes the question that it has and when it is ended. */
function silentOwner() {
  const asked = createDeferred<unknown>()
  const ended = createDeferred()
  const onAsk: WorkOptions['onAsk'] = async (question, { signal }) => {
    asked.resolve(question)
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    ended.resolve()
    throw signal.reason
  }
  return { asked: asked.promise, ended: ended.promise, onAsk }
}

test('each question has its own answer, also if a later one is answered first', async () => {
  await using pool = await testPool({ max: 1 })
  const first = createDeferred()
  const answers = await pool.run(
    { kind: 'ask', questions: ['first', { second: 2 }] },
    {
      onAsk: async (asked) => {
        if (asked === 'first') await first.promise
        else first.resolve()
        return { asked }
      },
    },
  )
  expect(answers).toEqual([{ asked: 'first' }, { asked: { second: 2 } }])
})

test('a refusal keeps its class and its message, and other errors their message', async () => {
  await using pool = await testPool({ max: 1 })
  const errors: Record<string, Error> = { known: new InvalidArgument('no such key'), other: new RangeError('too far') }
  const questions = ['known', 'other']
  const answers = await pool.run(
    { kind: 'ask', questions },
    {
      onAsk: async (asked) => {
        throw errors[String(asked)]
      },
    },
  )
  expect(answers).toMatchObject([
    { name: 'InvalidArgument', code: 'JOBBOARD_INVALID_ARGUMENT', message: 'no such key' },
    { name: 'WrappedFailure', message: expect.stringContaining('too far') },
  ])
})

test('a question that the child gives up is ended, and its work goes on', async () => {
  await using pool = await testPool({ max: 1 })
  const { onAsk, asked, ended } = silentOwner()
  expect(await pool.run({ kind: 'askAndDrop', question: 'how long?' }, { onAsk })).toBe('dropped')
  expect(await asked).toBe('how long?')
  await ended
})

test('a question ends with the signal of its work', async () => {
  await using pool = await testPool({ max: 1 })
  const { onAsk, asked, ended } = silentOwner()
  const stop = new AbortFlag()
  const answers = pool.run({ kind: 'ask', questions: ['how long?'] }, { onAsk, stop })
  await asked
  stop.abort(new Cancelled('not needed'))
  expect(await answers).toMatchObject([{ name: 'Cancelled', message: 'not needed' }])
  await ended
})

test('a question of a child that is killed is ended', async () => {
  await using pool = await testPool({ max: 1 })
  const { onAsk, asked, ended } = silentOwner()
  const file = await newFile()
  const died = rejectionOf(pool.run({ kind: 'askInFile', file, question: 'how long?' }, { onAsk }))
  const [pid = 0] = await pidsIn(file, 1)
  await asked
  sendSignal(pid, 'SIGKILL')
  expect(await died).toBeInstanceOf(ChildDied)
  await ended
})
