/** What never answers: logbooks, services, schemas. A conductor that is told to stop stops all the same. */
import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { ShuttingDown, StorageFailure } from '../../src/core/errors.ts'
import { openPersistence, type Persistence, startConductor } from '../../src/index.ts'
import { refresh } from '../board/jobs.ts'
import { boards, delegate, delegateLog, singleTaskFlow, startTestConductor } from './conducting.ts'

const fine = singleTaskFlow('fine', () => 1)
const limits = { drainTimeout: 0, abortTimeout: 0 } as const

function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined)
}

describe('logbooks that do not answer', () => {
  async function hanging(replaced: (inner: Persistence) => Partial<Persistence>): Promise<Persistence> {
    const inner = await openPersistence('memory:')
    return delegate(inner, replaced(inner))
  }

  test('acquiring a flow: a stop gives the job back', async () => {
    const [board] = await boards('a')
    const asked = createDeferred()
    const persistence = await hanging(() => ({
      acquire: () => {
        asked.resolve()
        return never()
      },
    }))
    const conductor = await startTestConductor({ board, persistence, flows: [fine], ...limits })
    const job = await board.post(fine, { n: 1 })
    await asked.promise
    await conductor.stop()
    await refresh(board)
    expect([job.state, job.attempts[0]?.ended]).toEqual(['UNCLAIMED', 'returned'])
  })

  test('acquiring a flow: what comes too late is closed', async () => {
    const [board] = await boards('a')
    const [asked, answer, closed] = [createDeferred(), createDeferred(), createDeferred()]
    const persistence = await hanging((inner) => ({
      acquire: async (request) => {
        asked.resolve()
        await answer.promise
        const log = await inner.acquire(request)
        return delegateLog(log, { [Symbol.asyncDispose]: async () => closed.resolve() })
      },
    }))
    const conductor = await startTestConductor({ board, persistence, flows: [fine], ...limits })
    await board.post(fine, { n: 1 })
    await asked.promise
    await conductor.stop()
    answer.resolve()
    await closed.promise
  })

  test('writing: a stop gives the job back', async () => {
    const [board] = await boards('a')
    const asked = createDeferred()
    const persistence = await hanging((inner) => ({
      acquire: async (request) => {
        const log = await inner.acquire(request)
        const write = () => {
          asked.resolve()
          return never<void>()
        }
        return delegateLog(log, { write })
      },
    }))
    const conductor = await startTestConductor({ board, persistence, flows: [fine], ...limits })
    const job = await board.post(fine, { n: 1 })
    await asked.promise
    await conductor.stop()
    expect(job.state).toBe('UNCLAIMED')
  })

  test('asking whether they are back', async () => {
    const [board] = await boards('a')
    const asked = createDeferred()
    const persistence = await hanging(() => ({
      acquire: () => {
        throw new StorageFailure('away', { retryable: true })
      },
      getBook: () => {
        asked.resolve()
        return never()
      },
    }))
    const conductor = await startTestConductor({ board, persistence, flows: [fine], ...limits })
    await board.post(fine, { n: 1 })
    await asked.promise
    await conductor.stop()
  })

  test('looking for old ones to remove', async () => {
    const [board] = await boards('a')
    const asked = createDeferred()
    const persistence = await hanging(() => ({
      listBooks: () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => {
            asked.resolve()
            return never()
          },
        }),
      }),
    }))
    const conductor = await startTestConductor({
      board,
      persistence,
      flows: [fine],
      removeLogbooksAfter: '1d',
      ...limits,
    })
    await asked.promise
    await conductor.stop()
  })
})

test('services that are never made: a start can be given up', async () => {
  const asked = createDeferred()
  const disposed = createDeferred()
  const made = createDeferred()
  const give = new AbortController()
  const starting = startConductor({
    board: 'memory:',
    persistence: 'memory:',
    flows: [fine],
    signal: give.signal,
    services: async () => {
      asked.resolve()
      await made.promise
      return { [Symbol.dispose]: disposed.resolve }
    },
  })
  await asked.promise
  const reason = new ShuttingDown('SIGTERM')
  give.abort(reason)
  await expect(starting).rejects.toBe(reason)
  made.resolve()
  await disposed.promise
})

test('a start that is given up before it began', async () => {
  const [board] = await boards('a')
  const reason = new ShuttingDown('SIGTERM')
  const starting = startConductor({
    board,
    persistence: 'memory:',
    flows: [fine],
    signal: AbortSignal.abort(reason),
  })
  await expect(starting).rejects.toBe(reason)
  expect(await board.entities('conductor')).toEqual([])
})
