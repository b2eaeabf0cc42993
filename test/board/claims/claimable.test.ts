/**
 * A wait for a claimable job resolves only when a claim would find one. A conductor of several boards repeats both in turn: if the two did not agree,
 * it would do so for ever, without an answer of the server or a timer in between.
 */
import { describe, expect, test } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, MemorySpace } from '../../../src/board/backends/memory/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { QueueTurns } from '../../../src/board/queue/queue-turns.ts'
import { QueueChoice, type ServedQueues } from '../../../src/board/queue/served-queues.ts'
import { SuspectPlace } from '../../../src/board/queue/suspect-place.ts'
import { Timeout } from '../../../src/core/errors.ts'
import { systemAlarmClock } from '../../../src/core/time.ts'
import { rejectionOf } from '../events.ts'
import { withRole } from '../override-role.ts'
import { claimable, createEntry, createQueue, readNow, unreadEntry } from '../queue/entries.ts'

const accept = () => true

test('while a board rests after refused claims, there is no job to claim', async () => {
  let isFull = true
  const memory = new MemoryBackend({ uri: 'memory:', space: new MemorySpace({ clock: systemAlarmClock }) })
  const backend = withRole(memory, 'claims', (claims) => ({
    claim: async (requests) =>
      isFull ? requests.map(() => ({ error: new Error('no room') })) : claims.claim(requests),
  }))
  await using board = new JobBoard(backend, { who: 'who' })
  await boardInternals(board).open()
  for (let job = 0; job < 6; job += 1) await board.post('flow', {})
  const tryToClaim = () => rejectionOf(board.claimNext({ timeout: 0 }))
  expect(await tryToClaim()).toBeInstanceOf(Timeout)
  let hasResolved = false
  const waiting = boardInternals(board)
    .waitToClaim({ accept, signal: new AbortController().signal })
    .then(() => {
      hasResolved = true
    })
  for (let turn = 0; turn < 100; turn += 1) await Promise.resolve()
  expect(hasResolved).toBe(false)
  isFull = false
  await waiting
  const [claim] = await board.claimNext({ timeout: 0 })
  await claim.consume()
})

describe.each<[string, ServedQueues]>([
  ['in order', ['a', 'b']],
  ['by weight', { a: 2, b: 1 }],
])('of queues that are served %s', (_how, served) => {
  test('none has a job to claim while the next job of the first one is read, or is behind the end of the view', () => {
    const queues = new QueueTurns(QueueChoice.parse(served, 'queues'))
    const later = createEntry({ name: 'later', queue: 'b' })
    const next = unreadEntry()
    next.queueKey = { id: next.id ?? '', order: 0n, priority: 'NORMAL', queue: 'a', dueAt: 0 }
    const queue = createQueue(later, next)
    const wanted = { queues, accept, suspects: new SuspectPlace() }
    expect([claimable(queue, wanted), queue.hasClaimable(wanted)]).toEqual([[], false])
    readNow(next, { name: 'next', queue: 'a' })
    queue.update(next)
    expect([claimable(queue, { ...wanted, max: 1 }), queue.hasClaimable(wanted)]).toEqual([['next'], true])
    next.claimed = true
    queue.update(next)
    expect([claimable(queue, wanted), queue.hasClaimable(wanted)]).toEqual([['later'], true])
    const behind = { ...wanted, continued: ['a'] }
    expect([claimable(queue, behind), queue.hasClaimable(behind)]).toEqual([[], false])
  })
})
