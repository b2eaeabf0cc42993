/** Many posts with one call: an answer for each, or all of them in one transaction. */
import { describe, expect, test } from 'vitest'
import type { PostItem, PostManyResult } from '../../../src/board/index.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { Duplicate, InvalidArgument, InvalidPosting } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { namesOn } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

type Item = PostItem<{ n: number }>

function item(n: number, options: Omit<Item, 'flow' | 'store'> = {}): Item {
  return { flow: 'flow', store: { n }, name: `job ${n}`, ...options }
}

function items(count: number): Item[] {
  return Array.from({ length: count }, (_, n) => item(n))
}

/** Names of posted jobs, and messages of the others. */
function toAnswers(results: readonly PostManyResult[]): string[] {
  return results.map((result) => ('job' in result ? result.job.name : String(result.error)))
}

export function manyContract({ open }: Place): void {
  test('all are on the board, and each answer is that of its item', async () => {
    const board = await open()
    const results = await board.postMany(items(2_500))
    expect(toAnswers(results)).toEqual(items(2_500).map(({ name }) => name))
    expect(await board.countJobs()).toBe(2_500)
    const last = results.at(-1)
    expect(last && 'job' in last && (await board.find(last.job.uuid)).details).toMatchObject({ store: { n: 2_499 } })
  })

  test('an item that cannot be posted has an error, and the others are posted', async () => {
    const board = await open()
    const wrong = [item(1, { priority: 'TOP' as 'HIGH' }), { ...item(2), flow: '' }, { ...item(3), prio: 1 }, null, 7]
    const results = await board.postMany([item(0), ...(wrong as Item[]), item(4)])
    const isRefused = (error: Error) => error instanceof InvalidArgument || error instanceof InvalidPosting
    const answers = results.map((result) => ('job' in result ? result.job.name : isRefused(result.error)))
    expect(answers).toEqual(['job 0', true, true, true, true, true, 'job 4'])
    expect(await namesOn(board)).toEqual(['job 0', 'job 4'])
  })

  test('a key that is taken creates nothing, also by an earlier item', async () => {
    const board = await open()
    await board.post('flow', {}, { name: 'there', key: 'a' })
    const results = await board.postMany([item(0, { key: 'a' }), item(1, { key: 'b' }), item(2, { key: 'b' })])
    const created = results.map((result) => ('job' in result ? [result.job.name, result.job.created] : []))
    expect(created[0]).toEqual(['there', false])
    expect(created.filter(([, isCreated]) => isCreated)).toHaveLength(1)
    expect(await board.countJobs()).toBe(2)
  })

  test('no items are no jobs', async () => {
    const board = await open()
    expect(await board.postMany([])).toEqual([])
    expect(await board.postMany([], { atomic: true })).toEqual([])
    expect(await rejectionOf(board.postMany(7 as unknown as Item[]))).toBeInstanceOf(InvalidArgument)
    expect(await rejectionOf(board.postMany([], { atomc: true } as object))).toBeInstanceOf(InvalidArgument)
  })

  test('an async source is read as it is needed; when it fails, what was begun is on the board', async () => {
    const board = await open()
    const answers: string[] = []
    async function* source() {
      for (let n = 0; n < 20; n += 1) yield item(n)
      throw new Error('the file ends in the middle')
    }
    const onResult = (result: PostManyResult, index: number) => answers.push(`${index} ${toAnswers([result])}`)
    expect(String(await rejectionOf(board.postMany(source(), { onResult })))).toContain('in the middle')
    expect(answers.sort()).toEqual(
      items(20)
        .map(({ name }, n) => `${n} ${name}`)
        .sort(),
    )
    expect(await board.countJobs()).toBe(20)
  })

  test('a signal stops before the next item', async () => {
    const board = await open()
    const stop = new AbortController()
    function* source() {
      yield item(0)
      yield item(1)
      stop.abort(new Error('enough'))
      yield item(2)
    }
    expect(String(await rejectionOf(board.postMany(source(), { signal: stop.signal })))).toContain('enough')
    expect(await board.countJobs()).toBe(2)
  })

  test('a signal stops also while the source waits for its next item, and the source is closed after that', async () => {
    const board = await open()
    const [stop, waiting, arriving, closed] = [
      new AbortController(),
      createDeferred(),
      createDeferred(),
      createDeferred(),
    ]
    async function* source() {
      try {
        yield item(0)
        waiting.resolve()
        await arriving.promise
        yield item(1)
      } finally {
        closed.resolve()
      }
    }
    for (const atomic of [false, true]) {
      const stopped = rejectionOf(board.postMany(source(), { signal: stop.signal, atomic }))
      await waiting.promise
      stop.abort(new Error('enough'))
      expect(String(await stopped)).toContain('enough')
    }
    arriving.resolve()
    await closed.promise
    expect(await board.countJobs()).toBe(1)
  })

  test('an error of onResult ends the call, when all that was begun is answered', async () => {
    const board = await open()
    let [read, answered] = [0, 0]
    async function* source() {
      for (; read < 5_000; read += 1) yield item(read)
    }
    const onResult = () => {
      answered += 1
      throw new Error('no room for the answer')
    }
    expect(String(await rejectionOf(board.postMany(source(), { onResult })))).toContain('no room for the answer')
    expect(read).toBeLessThan(5_000)
    expect(await board.countJobs()).toBe(answered)
    expect(String(await rejectionOf(board.postMany([item(0)], { onResult })))).toContain('no room for the answer')
  })

  describe('in one transaction', () => {
    test('all are posted', async () => {
      const board = await open()
      const results = await board.postMany(items(100), { atomic: true })
      expect(toAnswers(results)).toEqual(items(100).map(({ name }) => name))
      expect(await namesOn(board)).toEqual(items(100).map(({ name }) => name))
      const [first] = await board.claimNext()
      expect(first.job.name).toBe('job 0')
    })

    test('none is posted where one cannot be', async () => {
      const board = await open()
      await board.post('flow', {}, { key: 'taken' })
      const refusals: [Item[], unknown][] = [
        [[item(0), item(1, { key: 'taken' })], Duplicate],
        [[item(0, { key: 'twice' }), item(1, { key: 'twice' })], Duplicate],
        [[item(0), item(1, { priority: 'TOP' as 'HIGH' })], InvalidPosting],
        [items(501), InvalidArgument],
      ]
      for (const [given, kind] of refusals) {
        expect(await rejectionOf(board.postMany(given, { atomic: true }))).toBeInstanceOf(kind)
        expect(await board.countJobs()).toBe(1)
      }
      const twice = rejectionOf(
        board.postMany([item(0), item(1, { key: 'own' }), item(2, { key: 'own' })], { atomic: true }),
      )
      expect(await twice).toMatchObject({
        code: 'JOBBOARD_DUPLICATE',
        message: expect.stringContaining('items 1 and 2'),
      })
      const error = await rejectionOf(board.postMany([item(0), item(1, { key: 'taken' })], { atomic: true }))
      expect(String(error)).toContain('the key of item 1')
    })
  })
}
