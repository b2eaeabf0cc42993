/** What must end although the board never comes to rest. */
import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { JobBoard } from '../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../src/board/backends/memory/index.ts'
import { LostPosts } from '../../src/board/backends/zookeeper/store/lost-posts.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { ClaimLost, Unclaimable } from '../../src/core/errors.ts'
import { nextEvent, rejectionOf } from './events.ts'
import { namesOn } from './jobs.ts'
import { slowBoard } from './slow-backend.ts'

test('who wants to see what is there now does not wait for what is posted later', async () => {
  const { board, other, backend } = await slowBoard(randomUUID())
  const [first, second] = [backend.stop('read', 'after'), backend.stop('read', 'before')]
  await other.post('flow', {}, { name: 'before' })
  await first.there
  const looking = namesOn(board)
  await nextTurn()
  await other.post('flow', {}, { name: 'after' })
  first.release()
  await second.there
  expect(await looking).toEqual(['before'])
  const seen = nextEvent(board, 'posted')
  second.release()
  expect((await seen).job.name).toBe('after')
  await Promise.all([board.close(), other.close()])
})

test('a claim that is refused although nothing speaks against it is not asked for without end', async () => {
  const name = randomUUID()
  const backend = new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) })
  let asked = 0
  backend.claims.claim = async (choices) => {
    asked += 1
    await nextTurn()
    return choices.map(() => ({ error: new Unclaimable('somebody who cannot be seen holds its resource') }))
  }
  const board = new JobBoard(backend, { who: 'who' })
  await boardInternals(board).open()
  await board.view()
  await board.post('flow', {})
  const claiming = rejectionOf(board.claimNext())
  for (let turn = 0; turn < 200; turn++) await nextTurn()
  // Three times at once, then after pauses, the first of which may be over on a busy machine. Without end it would be a hundred times.
  expect(asked).toBeGreaterThanOrEqual(3)
  expect(asked).toBeLessThan(10)
  await board.close()
  await claiming
})

test('what became of posts whose answers were lost is looked up once for all of them', async () => {
  const asked: string[] = []
  const note = <T>(what: string, answer: T) => {
    asked.push(what)
    return Promise.resolve(answer)
  }
  const posts = new LostPosts({
    readPostedIn: () => note('board', new Map([['there', 'job1']])),
    trashIndex: () => note('trash', []),
    trashPage: () => note('page', []),
    read: () => note('read', []),
    isTrashed: () => note('isTrashed', true),
  })
  const uuids = ['there', ...Array.from({ length: 100 }, (_, number) => `gone ${number}`)]
  const found = await Promise.all(uuids.map((uuid) => posts.find({ zxid: 7n, uuid })))
  expect(found[0]).toEqual({ id: 'job1' })
  expect(new Set(found.slice(1).map((fate) => JSON.stringify(fate)))).toEqual(new Set(['{"trashed":false}']))
  expect(asked).toEqual(['board', 'trash'])
})

test('who lost every job of a batch waits for no proof of a session that may never come', async () => {
  const name = randomUUID()
  const backend = new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) })
  const refused = createDeferred()
  backend.claims.claim = async (choices) => {
    refused.resolve()
    return choices.map(() => ({ error: new Unclaimable('another was faster') }))
  }
  // As when all servers have gone between the answer and the next.
  backend.session.watchLease = () => ({
    whenAlive: () => new Promise(() => undefined),
    [Symbol.dispose]: () => undefined,
  })
  const board = new JobBoard(backend, { who: 'who' })
  await boardInternals(board).open()
  await board.view()
  await board.post('flow', {})
  const stop = new AbortController()
  const claiming = rejectionOf(board.claimNext({ signal: stop.signal }))
  await refused.promise
  stop.abort(new Error('enough'))
  expect(await claiming).toMatchObject({ message: 'enough' })
  await board.close()
})

test('a winner whose session ends before it was proven receives its claim, and the claim is reported as lost', async () => {
  const name = randomUUID()
  const space = memorySpace(name)
  const backend = new MemoryBackend({ uri: `memory:${name}`, space })
  const waiting = createDeferred()
  backend.session.watchLease = () => ({
    whenAlive: () => {
      waiting.resolve()
      return new Promise(() => undefined)
    },
    [Symbol.dispose]: () => undefined,
  })
  const board = new JobBoard(backend, { who: 'who' })
  await boardInternals(board).open()
  await board.view()
  await board.post('flow', {})
  const claiming = board.claimNext()
  await waiting.promise
  backend.expireSession()
  const [claim] = await claiming
  expect(claim.lost.reason).toBeInstanceOf(ClaimLost)
  await board.close()
})
