/** What becomes of an operation when the connection breaks in the middle of it: found out, exactly. */
import { describe, expect } from 'vitest'
import { zooKeeperBackend } from '../../../../src/board/backends/zookeeper/index.ts'
import type { BoardEvents, Claim, Job, JobBoard } from '../../../../src/board/index.ts'
import { ClaimLost, NotFound, OutcomeUnknown } from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { expireSession } from '../../../support/expire-session.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { startProxy } from '../../../support/proxy.ts'
import { usual as test, variant } from '../../../variant.ts'
import { portOf } from '../../../zookeeper/clients.ts'
import { zookeeperPlace } from '../../boards.ts'
import { nextEvent, nextSession, recordEvents, rejectionOf, whenLost } from '../../events.ts'
import { all, namesOn, refresh } from '../../jobs.ts'
import { openReplacing, replaceUnheard } from '../../lost-replacement.ts'
import { takeUnheard } from '../../lost-tokens.ts'
import { CUTS, ProxiedBoard, waitForStableConnection } from '../../proxied-board.ts'
import { checkWritten, writeOn } from '../../records.ts'

type Kind = 'posted' | 'claimed' | 'consumed' | 'abandoned' | 'trashed'

/** One operation, made ready so that it is one request; and what has to be so when it was done, once. */
interface Case {
  readonly name: string
  readonly kind: Kind & keyof BoardEvents
  ready(setup: ProxiedBoard): Promise<() => Promise<unknown>>
  check(setup: ProxiedBoard, result: unknown): Promise<void>
}

async function claimOn(board: JobBoard): Promise<Claim> {
  return board.claim(await board.post('flow', {}, { name: 'job' }))
}

const CASES: readonly Case[] = [
  {
    name: 'post',
    kind: 'posted',
    ready:
      async ({ board }) =>
      () =>
        board.post('flow', { n: 1 }, { name: 'job' }),
    check: async ({ board, place }, result) => {
      const job = result as Job
      expect(await place.jobNodes()).toHaveLength(1)
      expect(job).toMatchObject({ name: 'job', state: 'UNCLAIMED' })
      expect((await board.find(job.uuid)).uuid).toBe(job.uuid)
      const claim = await board.claim(job)
      expect(claim.run).toBe(1)
      await claim.consume()
      expect(job.state).toBe('COMPLETE')
    },
  },
  {
    name: 'post after another job',
    kind: 'posted',
    ready: async ({ board, other }) => {
      const first = await board.post('flow', {}, { name: 'other' })
      const claim = await other.claim(await other.find(first.ref))
      // The folder of the jobs that wait is created with the first of them.
      await board.cancel(await board.post('flow', {}, { name: 'earlier', after: [first] }))
      other.on('posted', ({ job }) => job.name === 'job' && claim.consume())
      return () => board.post('flow', {}, { name: 'job', after: [first] })
    },
    check: async ({ board }, result) => {
      const job = result as Job
      const [next] = await board.claimNext()
      expect(next).toMatchObject({ run: 1, job: { uuid: job.uuid } })
      await next.consume()
      expect(job.state).toBe('COMPLETE')
    },
  },
  {
    name: 'write of a record with a post',
    kind: 'posted',
    ready: ({ board }) => writeOn(board),
    check: async ({ board, place }, result) => {
      expect(await place.jobNodes()).toHaveLength(1)
      await checkWritten(board, result)
    },
  },
  {
    name: 'claim',
    kind: 'claimed',
    ready: async ({ board }) => {
      const job = await board.post('flow', {}, { name: 'job' })
      return () => board.claim(job)
    },
    check: async ({ board, other, place }, result) => {
      const claim = result as Claim
      expect(claim).toMatchObject({ who: 'board', run: 1 })
      expect(claim.lost.aborted).toBe(false)
      const [id] = await place.jobNodes()
      const lock = await place.observer.exists(`${place.path}/${id}.lock`)
      expect((lock?.czxid ?? 0n) + (await place.fenceBase())).toBe(claim.fence)
      expect(await other.findOwner(await other.find(claim.job.uuid))).toBe('board')
      await claim.consume()
      expect(await namesOn(board)).toEqual([])
    },
  },
  {
    name: 'consume',
    kind: 'consumed',
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.consume()
    },
    check: async ({ board, place }) => {
      expect(await namesOn(board)).toEqual([])
      expect(await place.jobNodes()).toEqual([])
      expect(await place.trashNodes()).toEqual([])
    },
  },
  {
    name: 'abandon',
    kind: 'abandoned',
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.abandon({ failed: true, reason: 'tried' })
    },
    check: async ({ board, place }) => {
      expect(await namesOn(board, { onlyUnclaimed: true })).toEqual(['job'])
      expect(await place.jobNodes()).toHaveLength(1)
      const [claim] = await board.claimNext()
      expect(claim.run).toBe(2)
      expect(claim.job.attempts).toMatchObject([{ ended: 'failed', reason: 'tried' }, { who: 'board' }])
      await claim.consume()
    },
  },
  {
    name: 'trash',
    kind: 'trashed',
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.trash({ reason: 'why' })
    },
    check: async ({ board, place }) => {
      expect(await namesOn(board)).toEqual([])
      expect(await place.jobNodes()).toEqual([])
      const entries = await all(board.trashed())
      expect(entries.map(({ reason }) => reason)).toEqual(['why'])
    },
  },
]

/** Starts the operation, whose answer gets lost, and resolves when the server has done it. */
async function doneUnheard(setup: ProxiedBoard, { kind, ready }: Case): Promise<Promise<unknown>[]> {
  const act = await ready(setup)
  await refresh(setup.other)
  const told = nextEvent(setup.other, kind)
  setup.proxy.mode = 'swallow-replies'
  const acting = act()
  acting.catch(() => undefined)
  await told
  return [acting]
}

describe.skipIf(!zookeeperHosts)('a connection that breaks', () => {
  describe.each(CASES)('in $name', (operation) => {
    test('after it was done: the result is what it would have been, and nothing is done twice', async () => {
      await using setup = await ProxiedBoard.set()
      const history = recordEvents(setup.other)
      const [acting] = await doneUnheard(setup, operation)
      setup.proxy.mode = 'pass'
      setup.proxy.resetAll()
      await operation.check(setup, await acting)
      await refresh(setup.other)
      expect(history.filter((told) => told === 'posted job').length).toBeLessThanOrEqual(1)
      expect(await setup.place.jobNodes()).toEqual([])
      expect(await setup.other.countJobs()).toBe(0)
    })

    test('before it arrived: it is done after all, once', async () => {
      await using setup = await ProxiedBoard.set()
      const act = await operation.ready(setup)
      setup.proxy.mode = 'blackhole'
      const sent = setup.proxy.nextRequest()
      const acting = act()
      await sent
      setup.proxy.mode = 'pass'
      setup.proxy.resetAll()
      await operation.check(setup, await acting)
      expect(await setup.place.jobNodes()).toEqual([])
    })

    test('while there is no connection: it is done when there is one', async () => {
      await using setup = await ProxiedBoard.set()
      const act = await operation.ready(setup)
      const suspended = nextEvent(setup.board, 'state', ({ state }) => state === 'disconnected')
      setup.proxy.mode = 'refuse'
      setup.proxy.resetAll()
      await suspended
      const acting = act()
      setup.proxy.mode = 'pass'
      await operation.check(setup, await acting)
    })

    variant.each(CUTS)('and breaks again after %d more requests while it is being found out', async (cut) => {
      await using setup = await ProxiedBoard.set()
      const [acting] = await doneUnheard(setup, operation)
      let over = false
      const cutting = async () => {
        for (let request = 0; request < cut; request++) await setup.proxy.nextRequest()
        if (!over) setup.proxy.resetAll()
      }
      setup.proxy.mode = 'pass'
      setup.proxy.resetAll()
      void cutting()
      const result = await acting
      over = true
      await waitForStableConnection(setup.board)
      await operation.check(setup, result)
      expect(await setup.place.jobNodes()).toEqual([])
    })

    test('and whose session ends before it can be found out: the outcome is unknown, and the error says so', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other, place, proxy } = setup
      const session = await place.sessionOf(board)
      const [acting] = await doneUnheard(setup, operation)
      const reborn = nextSession(board)
      proxy.mode = 'refuse'
      proxy.resetAll()
      await expireSession(zookeeperHosts, session)
      proxy.mode = 'pass'
      const failure = await rejectionOf(Promise.resolve(acting))
      expect(failure).toBeInstanceOf(OutcomeUnknown)
      expect(String(failure)).toContain('(job)')
      await reborn
      // Whatever became of it, nothing is doubled, nothing is stuck, and both boards see the same.
      const names = await namesOn(board, { onlyUnclaimed: true })
      expect(names).toEqual(operation.kind === 'consumed' || operation.kind === 'trashed' ? [] : ['job'])
      expect(await namesOn(other, { onlyUnclaimed: true })).toEqual(names)
      for (const _ of names) await (await board.claimNext())[0].consume()
      expect(await place.jobNodes()).toEqual([])
    })
  })

  test.each(['consumed', 'abandoned'] as const)(
    'work that was %s when the session ended: performed, and the outcome is unknown',
    async (kind) => {
      await using setup = await ProxiedBoard.set()
      const { board, other, place, proxy } = setup
      const claim = await claimOn(board)
      const session = await place.sessionOf(board)
      await refresh(other)
      const [told, reborn] = [nextEvent(other, kind), nextSession(board)]
      proxy.mode = 'swallow-replies'
      const performed = claim.perform((): void => {
        if (kind === 'abandoned') throw new Error('boom')
      })
      await told
      proxy.mode = 'refuse'
      proxy.resetAll()
      await expireSession(zookeeperHosts, session)
      proxy.mode = 'pass'
      expect(await performed).toBe('unknown')
      await reborn
      expect(await namesOn(board)).toEqual(kind === 'consumed' ? [] : ['job'])
    },
  )

  test('a replacement whose answer is lost is found to be done, once', async () => {
    await using place = await zookeeperPlace()
    await using other = await place.open()
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    const uri = parseUri(`zookeeper://${proxy.hosts}${place.path}?sessionTimeout=30s`, 'board')
    await using board = await openReplacing(await zooKeeperBackend(uri, {}), () => {
      proxy.mode = 'swallow-replies'
    })
    const { replacing, uuid } = await replaceUnheard(board, other)
    proxy.mode = 'pass'
    proxy.resetAll()
    expect(await replacing).toMatchObject({ created: false, because: 'waiting', replaced: true, uuid })
    const [id] = await place.jobNodes()
    expect((await place.observer.getData(`${place.path}/${id}`)).stat.version).toBe(1)
    const [claim] = await other.claimNext()
    expect(claim.job.details.store).toEqual({ n: 2 })
    await claim.consume()
    expect(await other.post('flow', {}, { key: 'sync' })).toMatchObject({ because: 'window', uuid })
  })

  test('tokens whose answer is lost are taken once', async () => {
    await using setup = await ProxiedBoard.set()
    const { board, other, proxy } = setup
    const loseAnswers = () => {
      proxy.mode = 'swallow-replies'
    }
    const { taking } = await takeUnheard({ board, other, loseAnswers })
    proxy.mode = 'pass'
    proxy.resetAll()
    await taking
  })

  test('a job that was done by others before the answer to its post was found out is known to be done', async () => {
    for (const settle of ['consume', 'trash'] as const) {
      await using setup = await ProxiedBoard.set()
      const { board, other, proxy } = setup
      proxy.mode = 'swallow-replies'
      const posting = board.post('flow', {}, { name: 'job' })
      const [claim] = await other.claimNext()
      await claim[settle]()
      proxy.mode = 'pass'
      proxy.resetAll()
      const job = await posting
      expect(job.uuid).toBe(claim.job.uuid)
      expect(await job.wait()).toBe(settle === 'consume' ? 'COMPLETE' : 'TRASHED')
      expect(await rejectionOf(board.claim(job))).toBeInstanceOf(NotFound)
    }
  })

  test('a job that changed before the answer to its post was found out is claimed as it is now', async () => {
    await using setup = await ProxiedBoard.set()
    const { board, other, proxy } = setup
    proxy.mode = 'swallow-replies'
    const posting = board.post('flow', {}, { name: 'job' })
    for (let run = 1; run <= 3; run++) await (await other.claimNext())[0].abandon({ reason: `run ${run}` })
    proxy.mode = 'pass'
    proxy.resetAll()
    const job = await posting
    const [claim] = await board.claimNext()
    expect(claim.run).toBe(4)
    expect(job.attempts).toHaveLength(4)
    await claim.consume()
  })

  test("a claim of another, while one's own was on its way, is a claim that was refused", async () => {
    await using setup = await ProxiedBoard.set()
    const { board, other, proxy } = setup
    const job = await board.post('flow', {}, { name: 'job' })
    const seen = await other.find(job.uuid)
    proxy.mode = 'blackhole'
    const sent = proxy.nextRequest()
    const acting = rejectionOf(board.claim(job))
    await sent
    const claim = await other.claim(seen)
    proxy.mode = 'pass'
    proxy.resetAll()
    expect(await acting).toMatchObject({ code: 'JOBBOARD_UNCLAIMABLE', message: expect.stringContaining('other') })
    await claim.consume()
  })

  test('a settle that was never sent when the session ended is a claim lost, and changes nothing', async () => {
    for (const settle of ['consume', 'abandon', 'trash'] as const) {
      await using setup = await ProxiedBoard.set()
      const { board, other, place, proxy } = setup
      const claim = await claimOn(board)
      const session = await place.sessionOf(board)
      const [lost, reborn] = [whenLost(claim), nextSession(board)]
      const suspended = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
      proxy.mode = 'refuse'
      proxy.resetAll()
      await suspended
      expect(claim.lost.aborted).toBe(false)
      const settling = rejectionOf(claim[settle]())
      await expireSession(zookeeperHosts, session)
      proxy.mode = 'pass'
      expect(await settling).toBeInstanceOf(ClaimLost)
      expect(await lost).toBeInstanceOf(ClaimLost)
      await reborn
      const [taken] = await other.claimNext()
      expect(taken.run).toBe(2)
      expect(await all(other.trashed())).toEqual([])
    }
  })
})
