/** Views that hold three jobs: what rests, what wakes all at once, and who holds on to jobs further back. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { JobBoard } from '../../../../src/board/api/job-board.ts'
import { redisBackend } from '../../../../src/board/backends/redis/index.ts'
import type { PostOptions } from '../../../../src/board/index.ts'
import { boardInternals } from '../../../../src/board/internal.ts'
import { createDeferred } from '../../../../src/core/async/abort.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { usual as test, variant } from '../../../variant.ts'
import { nextEvent } from '../../events.ts'
import { all, refresh } from '../../jobs.ts'
import { overrideRole } from '../../override-role.ts'
import { type RedisPlace, redisPlace } from './places.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

const place = ({ window = 3 } = {}): Promise<RedisPlace> => redisPlace(server, { parameters: `&window=${window}` })

async function post(board: JobBoard, names: readonly string[], options: PostOptions = {}): Promise<void> {
  await Promise.all(names.map((name) => board.post('flow', {}, { name, ...options })))
}

const numbered = (what: string, count: number) => Array.from({ length: count }, (_, index) => `${what} ${index}`)

test('many jobs that rest at the head do not hide those behind, also from a board that is opened later', async () => {
  await using there = await place()
  await using board = await there.open()
  await post(board, numbered('resting', 30), { delay: '1h', priority: 'VERY_HIGH' })
  const names = numbered('awake', 8)
  for (const name of names) await post(board, [name])
  await using other = await there.open()
  expect(await other.countJobs()).toBe(38)
  for (const name of names) {
    const [claim] = await other.claimNext()
    expect(claim.job.name).toBe(name)
    await claim.consume()
  }
  await refresh(board)
  expect([await board.countJobs(), (await all(board.jobs())).length]).toEqual([30, 30])
})

test('a caller that drains a busy board reads it to its end before it polls', async () => {
  await using there = await place()
  await using busy = await there.open()
  await post(busy, ['mine'])
  await post(busy, numbered('other', 9))
  await post(busy, ['mine'])
  const backend = await redisBackend(parseUri(there.uri, 'board'), {})
  await using draining = new JobBoard(backend, { who: 'draining' })
  await boardInternals(draining).open()
  const [asked, answer] = [createDeferred(), createDeferred()]
  overrideRole(backend, 'sections', (sections) => ({
    range: async (options) => {
      if (options.after) {
        asked.resolve()
        await answer.promise
      }
      return sections.range(options)
    },
  }))
  let unsubscribed = 0
  overrideRole(backend, 'changes', (changes) => ({
    unsubscribe: () => {
      unsubscribed += 1
      return changes.unsubscribe()
    },
  }))
  const next = () => draining.claimNext({ accept: ({ name }) => name === 'mine' })
  const [first] = await next()
  const claiming = next()
  await asked.promise
  // More changes than a caller that finds nothing receives before it polls.
  await post(busy, numbered('later', 2_400))
  await vi.waitFor(() => expect([undefined, 2_411]).toContain(draining.jobCount), 60_000)
  answer.resolve()
  const [second] = await claiming
  expect([first.job.name, second.job.name, unsubscribed]).toEqual(['mine', 'mine', 0])
})

variant('a caller that polls a busy board claims a job that is far behind the window', async () => {
  await using there = await place({ window: 50 })
  await using busy = await there.open()
  await using idle = await there.openUnviewed()
  const claiming = idle.claimNext({ accept: ({ name }) => name === 'mine' })
  const others = { many: numbered('other', 350), few: numbered('other', 20) }
  await vi.waitFor(() => expect(idle.jobCount).toBeDefined(), 60_000)
  while (idle.jobCount !== undefined) await post(busy, others.many)
  await post(busy, ['mine'])
  let isClaimed = false
  const keepBusy = async () => {
    while (!isClaimed) await post(busy, others.few)
  }
  const [[claim]] = await Promise.all([claiming.finally(() => (isClaimed = true)), keepBusy()])
  expect(claim.job.name).toBe('mine')
})

test('many that wake at one instant are all claimed', async () => {
  await using there = await place()
  await using board = await there.open()
  await using other = await there.open()
  await post(board, numbered('low', 12), { delay: '2s', priority: 'LOW' })
  await post(board, numbered('high', 12), { delay: '2s', priority: 'HIGH' })
  await post(board, ['last'], { priority: 'VERY_LOW' })
  const [claim] = await other.claimNext()
  expect(claim.job.name).toBe('last')
  await claim.consume()
  const claimed = new Set<string>()
  while (claimed.size < 24) {
    for (const each of await other.claimNext({ max: 5 })) {
      claimed.add(each.job.name)
      await each.consume()
    }
  }
  expect([...claimed].sort()).toEqual([...numbered('low', 12), ...numbered('high', 12)].sort())
})

test('a caller that holds a job further back is notified of its end, whichever owner brings it about', async () => {
  await using there = await place()
  await using board = await there.open()
  await using other = await there.open()
  await post(board, numbered('waiting', 12))
  const job = await board.post('flow', {}, { name: 'far' })
  const found = await other.find(job.uuid)
  expect([job.state, found.state]).toEqual(['UNCLAIMED', 'UNCLAIMED'])
  const heard = nextEvent(other, 'claimed')
  const claim = await board.claim(job)
  expect((await heard).job.uuid).toBe(job.uuid)
  await refresh(other)
  expect(found.state).toBe('CLAIMED')
  await claim.abandon({ failed: true, delay: 0 })
  await refresh(other)
  expect([job.state, found.state, found.runs]).toEqual(['UNCLAIMED', 'UNCLAIMED', 1])
  await other.cancel(found)
  const ended = Promise.all([job.wait(), found.wait()])
  while ((other.jobCount ?? 0) > 12)
    for (const each of await other.claimNext({ accept: ({ name }) => name === 'far' })) await each.trash()
  expect(await ended).toEqual(['TRASHED', 'TRASHED'])
})

test('a caller that waits for the end of a job further back, and keeps nothing else of it, is notified of it', async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  await using there = await place()
  await using board = await there.open()
  await using other = await there.open()
  await post(board, numbered('waiting', 12))
  const waitFor = async () => {
    const job = await board.post('flow', {}, { name: 'far' })
    return { uuid: job.uuid, ended: job.wait() }
  }
  const { uuid, ended } = await waitFor()
  for (let turn = 0; turn < 5; turn += 1) {
    // What was looked up weakly lives until the turn is over.
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  await (await other.claim(await other.find(uuid))).consume()
  expect(await ended).toBe('COMPLETE')
})
