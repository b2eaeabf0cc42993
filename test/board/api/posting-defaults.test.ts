import { describe, expect, test } from 'vitest'
import { openBoard, type PostOptions } from '../../../src/board/index.ts'
import { InvalidArgument, InvalidPosting } from '../../../src/core/errors.ts'
import { graph, input, linear, type PostingDefaults, task, unordered } from '../../../src/flow/index.ts'

const work = task('work', { execute: () => undefined })
const flowWith = (posting: PostingDefaults) => linear({ name: 'call', posting }, input(), work)
/** As somebody without a compiler may write it. */
const untyped = (posting: unknown) => flowWith(posting as PostingDefaults)

describe('a job is posted as its flow says', () => {
  test('how often it is tried, how long it rests, how long it may take, where it goes', async () => {
    await using board = await openBoard('memory:')
    const backOff = { first: '1h', jitter: 'none' } as const
    const job = await board.post(
      flowWith({ maxAttempts: 7, backOff, deadline: '2h', queue: 'large', priority: 'LOW' }),
      {},
    )
    expect(job).toMatchObject({ maxAttempts: 7, deadline: 7_200_000, queue: 'large', priority: 'LOW' })
    await using claim = await board.claim(job)
    const before = Date.now()
    await claim.perform(() => {
      throw new Error('no')
    })
    const rests = await board.waitingFor(job)
    expect(rests?.kind).toBe('delay')
    expect(rests?.kind === 'delay' && rests.until.getTime() - before).toBeGreaterThanOrEqual(3_600_000)
  })

  test('how long it may wait for its first run: a caller can say otherwise', async () => {
    await using board = await openBoard('memory:')
    const flow = flowWith({ expiresAfter: '5m' })
    const timeOf = async (options: PostOptions) => {
      const { expiresAt, postedAt } = await board.post(flow, {}, options)
      return expiresAt && expiresAt.getTime() - (postedAt?.getTime() ?? 0)
    }
    expect([await timeOf({}), await timeOf({ expiresAfter: '1h' })]).toEqual([300_000, 3_600_000])
    await expect(board.post(flow, {}, { delay: '5m' })).rejects.toThrow('expiresAfter must be longer than delay')
    await expect(board.post(flowWith({ expiresAfter: 0 }), {})).rejects.toThrow(InvalidPosting)
  })

  test('whichever pattern the flow has', async () => {
    await using board = await openBoard('memory:')
    const head = { name: 'call', posting: { maxAttempts: 9 } }
    const flows = [linear(head, input(), work), unordered(head, input(), work), graph(head, input(), work)]
    for (const flow of flows) expect(await board.post(flow, {})).toMatchObject({ maxAttempts: 9 })
  })

  test('unless post says otherwise', async () => {
    await using board = await openBoard('memory:')
    const flow = flowWith({ maxAttempts: 7, queue: 'large' })
    expect(await board.post(flow, {}, { maxAttempts: 1 })).toMatchObject({ maxAttempts: 1, queue: 'large' })
  })

  test('and as usual where only the name is known', async () => {
    await using board = await openBoard('memory:')
    expect(await board.post(flowWith({ maxAttempts: 7 }).name, {})).toMatchObject({ maxAttempts: 3 })
  })
})

describe('what a flow says of its postings', () => {
  test('is not about one job alone', () => {
    expect(() => untyped({ delay: '1h' })).toThrow('flow call: posting has no option "delay"; there are')
    expect(() => untyped({ maxAttempt: 2 })).toThrow(/maxAttempts/)
    expect(() => untyped('often')).toThrow(InvalidArgument)
  })

  test('is judged where a job is posted', async () => {
    await using board = await openBoard('memory:')
    await expect(board.post(untyped({ maxAttempts: 0 }), {})).rejects.toThrow(InvalidPosting)
    await expect(board.post(untyped({ backOff: { first: 'soon' } }), {})).rejects.toThrow(InvalidArgument)
  })

  test('may be nothing', () => {
    expect(flowWith({})).toMatchObject({ posting: {} })
    expect(linear('call', input(), work).posting).toBeUndefined()
    expect(untyped({ maxAttempts: undefined }).posting).toEqual({})
  })
})
