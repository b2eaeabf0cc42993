/** The same for what others carry out, for keys and resources, for whole batches, and where others act in between. */
import { describe, expect } from 'vitest'
import type { PostedJob } from '../../../../src/board/api/posting/posted-job.ts'
import type { Claim, JobBoard, TrashedJob } from '../../../../src/board/index.ts'
import { NotFound, OutcomeUnknown, Unclaimable } from '../../../../src/core/errors.ts'
import { expireSession } from '../../../support/expire-session.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { usual as test, variant } from '../../../variant.ts'
import type { ZooKeeperPlace } from '../../boards.ts'
import { nextEvent, nextSession, rejectionOf, whenAborted } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { CUTS, ProxiedBoard, waitForStableConnection } from '../../proxied-board.ts'

const RESOURCES = { exclusive: ['disk'], shared: ['net', 'tape'] }

/** One operation, made ready so that it is one request; and what has to be so when it was done, once. */
interface Case {
  readonly name: string
  ready(setup: ProxiedBoard): Promise<() => Promise<unknown>>
  check(setup: ProxiedBoard, result: unknown): Promise<void>
}

async function trashed({ board }: ProxiedBoard): Promise<TrashedJob> {
  await board.post('flow', {}, { name: 'job', key: 'one' })
  await (await claimed(board, 'job')).trash()
  const [entry] = await all(board.trashed())
  if (!entry) throw new Error('it was trashed')
  return entry
}

async function consumeAll(board: JobBoard): Promise<string[]> {
  const names: string[] = []
  await refresh(board)
  while ((board.jobCount ?? 0) > 0) {
    for (const claim of await board.claimNext({ max: 100 })) {
      names.push(claim.job.name)
      await (claim.cancelled.aborted ? claim.trash() : claim.consume())
    }
  }
  return names
}

/** What lies in a folder of the board. */
async function lying({ place }: ProxiedBoard, folder: string): Promise<string[]> {
  return (await place.observer.getChildren(`${place.path}/${folder}`)).names
}

const CASES: readonly Case[] = [
  {
    name: 'a post with a key',
    ready: async ({ board }) => {
      return () => board.post('flow', { n: 1 }, { name: 'job', key: 'one' })
    },
    check: async ({ board, other, place }, result) => {
      const job = result as PostedJob
      expect(await place.jobNodes()).toHaveLength(1)
      expect(job).toMatchObject({ name: 'job', created: true })
      for (const each of [board, other]) {
        expect(await each.post('flow', {}, { key: 'one' })).toMatchObject({ created: false, uuid: job.uuid })
      }
      await (await board.claim(job)).consume()
    },
  },
  {
    name: 'a claim with resources',
    ready: async ({ board }) => {
      const job = await board.post('flow', {}, { name: 'job', resources: RESOURCES })
      await (await board.claim(job)).abandon()
      await board.post('flow', {}, { name: 'next', resources: { exclusive: ['net', 'disk'] } })
      await refresh(board)
      return () => board.claim(job)
    },
    check: async (setup, result) => {
      const claim = result as Claim
      expect(claim.run).toBe(2)
      expect(await lying(setup, '.permits/disk')).toEqual(['x'])
      expect(await lying(setup, '.permits/net')).toHaveLength(1)
      await refresh(setup.other)
      const waiting = setup.other.claimNext()
      await claim.consume()
      const [nextOwner] = await waiting
      expect(nextOwner.job.name).toBe('next')
      await nextOwner.consume()
      for (const name of ['disk', 'net', 'tape']) expect(await lying(setup, `.permits/${name}`)).toEqual([])
    },
  },
  {
    name: 'a cancellation of a job that never ran',
    ready: async ({ board }) => {
      const job = await board.post('flow', {}, { name: 'job', key: 'one' })
      return () => board.cancel(job, { reason: 'why' })
    },
    check: async (setup) => {
      const [entry, ...others] = await all(setup.board.trashed())
      expect(others).toEqual([])
      expect(entry?.reason).toContain('why')
      expect(await lying(setup, '.keys')).toEqual([])
    },
  },
  {
    name: 'a cancellation of a job that ran before',
    ready: async ({ board }) => {
      const job = await board.post('flow', {}, { name: 'job' })
      await (await board.claim(job)).abandon({ delay: '1h' })
      return () => board.cancel(job, { reason: 'why' })
    },
    check: async (setup) => {
      expect(await lying(setup, '.cancel')).toHaveLength(1)
      const [claim] = await setup.other.claimNext()
      expect(String(await whenAborted(claim.cancelled))).toContain('why')
      await claim.trash()
      expect(await lying(setup, '.cancel')).toEqual([])
    },
  },
  {
    name: 'a pause',
    ready: async ({ board }) => {
      await board.post('flow', {}, { name: 'job' })
      return () => board.pause({ reason: 'why' })
    },
    check: async ({ board, other }) => {
      expect(board.paused).toBe(true)
      expect(await board.pauseOrigin()).toMatchObject({ by: 'board', reason: 'why' })
      for await (const job of other.jobs()) expect(await rejectionOf(other.claim(job))).toBeInstanceOf(Unclaimable)
      await other.resume()
      expect(await consumeAll(other)).toEqual(['job'])
    },
  },
  {
    name: 'a resumption',
    ready: async ({ board }) => {
      await board.post('flow', {}, { name: 'job' })
      await board.pause()
      return () => board.resume()
    },
    check: async ({ board }) => {
      expect(board.paused).toBe(false)
      expect(await consumeAll(board)).toEqual(['job'])
    },
  },
  {
    name: 'a restoration',
    ready: async (setup) => {
      const entry = await trashed(setup)
      return () => setup.board.restore(entry)
    },
    check: async ({ board, other }) => {
      expect(await namesOn(board)).toEqual(['job'])
      expect(await all(board.trashed())).toEqual([])
      expect(await other.post('flow', {}, { key: 'one' })).toMatchObject({ created: false, name: 'job' })
      expect((await claimed(board, 'job')).run).toBe(2)
      await board.consume(await board.find((await all(board.jobs()))[0]?.uuid ?? ''))
    },
  },
  {
    name: 'a purge',
    ready: async (setup) => {
      const entry = await trashed(setup)
      return () => setup.board.purge(entry)
    },
    check: async ({ board, other }) => {
      expect(await all(board.trashed())).toEqual([])
      expect(await namesOn(other)).toEqual([])
    },
  },
]

/** Resolves at the next change of anything on the board. */
async function changing({ observer, path }: ZooKeeperPlace): Promise<{ readonly changed: Promise<void> }> {
  let told: (() => void) | undefined
  const changed = new Promise<void>((resolve) => {
    told = resolve
  })
  await observer.watch(path, { mode: 'recursive' }, { events: () => told?.(), gap: () => undefined })
  return { changed }
}

/** Starts what is to be done, whose answer gets lost; resolves when the server has done it. */
async function doneUnheard<T>(setup: ProxiedBoard, act: () => Promise<T>): Promise<{ readonly acting: Promise<T> }> {
  await refresh(setup.other)
  const { changed } = await changing(setup.place)
  setup.proxy.mode = 'swallow-replies'
  const acting = act()
  acting.catch(() => undefined)
  await changed
  await refresh(setup.other)
  return { acting }
}

function reconnect({ proxy }: ProxiedBoard): void {
  proxy.mode = 'pass'
  proxy.resetAll()
}

describe.skipIf(!zookeeperHosts)('a connection that breaks', () => {
  describe.each(CASES)('in $name', (operation) => {
    test('after it was done: the result is what it would have been, and nothing is done twice', async () => {
      await using setup = await ProxiedBoard.set()
      const { acting } = await doneUnheard(setup, await operation.ready(setup))
      reconnect(setup)
      await operation.check(setup, await acting)
      await refresh(setup.other)
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
      reconnect(setup)
      await operation.check(setup, await acting)
      expect(await setup.place.jobNodes()).toEqual([])
    })

    variant.each(CUTS)('and breaks again after %d more requests while it is being found out', async (cut) => {
      await using setup = await ProxiedBoard.set()
      const { acting } = await doneUnheard(setup, await operation.ready(setup))
      let over = false
      const cutting = async () => {
        for (let request = 0; request < cut; request++) await setup.proxy.nextRequest()
        if (!over) setup.proxy.resetAll()
      }
      reconnect(setup)
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
      const { acting } = await doneUnheard(setup, await operation.ready(setup))
      const reborn = nextSession(board)
      proxy.mode = 'refuse'
      proxy.resetAll()
      await expireSession(zookeeperHosts, session)
      proxy.mode = 'pass'
      const failure = await rejectionOf(acting)
      expect(failure).toBeInstanceOf(OutcomeUnknown)
      expect(String(failure)).toMatch(/\(job\)|the board/)
      await reborn
      // Whatever became of it, nothing is doubled, nothing is stuck, and both boards see the same.
      await Promise.all([refresh(board), refresh(other)])
      expect(board.paused).toBe(other.paused)
      if (board.paused) await board.resume()
      const names = await namesOn(board)
      expect(await namesOn(other)).toEqual(names)
      expect(new Set(names).size).toBe(names.length)
      await consumeAll(board)
      expect(await place.jobNodes()).toEqual([])
    })
  })

  describe('while others go on with what was done', () => {
    test('a post with a key: its job is done by others, and another is posted with the key', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other } = setup
      const { acting } = await doneUnheard(setup, () => board.post('flow', {}, { name: 'first', key: 'one' }))
      await (await claimed(other, 'first')).consume()
      const second = await other.post('flow', {}, { name: 'second', key: 'one' })
      expect(second.created).toBe(true)
      reconnect(setup)
      const first = await acting
      expect(first).toMatchObject({ created: true, name: 'first', state: 'COMPLETE' })
      expect(first.uuid).not.toBe(second.uuid)
      expect(await namesOn(board)).toEqual(['second'])
      expect(await board.post('flow', {}, { key: 'one' })).toMatchObject({ created: false, uuid: second.uuid })
    })

    test('a post with a key that never arrived, and was posted by another meanwhile', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other, proxy } = setup
      proxy.mode = 'blackhole'
      const sent = proxy.nextRequest()
      const acting = board.post('flow', {}, { name: 'first', key: 'one' })
      await sent
      const second = await other.post('flow', {}, { name: 'second', key: 'one' })
      reconnect(setup)
      expect(await acting).toMatchObject({ created: false, uuid: second.uuid })
      expect(await namesOn(board)).toEqual(['second'])
    })

    test('a return: the job is claimed and done by others', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other } = setup
      const job = await board.post('flow', {}, { name: 'job', resources: RESOURCES })
      const claim = await board.claim(job)
      const { acting } = await doneUnheard(setup, () => claim.abandon())
      const taken = await claimed(other, 'job')
      await taken.consume()
      reconnect(setup)
      await acting
      expect([claim.settled, claim.lost.aborted]).toEqual([true, false])
      expect(await job.wait({ timeout: '20s' })).toBe('COMPLETE')
      expect(await rejectionOf(claim.consume())).toBeInstanceOf(NotFound)
    })

    test('a trashing: the job is restored and done by others', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other } = setup
      const job = await board.post('flow', {}, { name: 'job' })
      const claim = await board.claim(job)
      const { acting } = await doneUnheard(setup, () => claim.trash({ reason: 'why' }))
      for (const entry of await all(other.trashed())) await other.restore(entry)
      await (await claimed(other, 'job')).consume()
      reconnect(setup)
      await acting
      expect(claim.settled).toBe(true)
      expect(await namesOn(board)).toEqual([])
      expect(await all(board.trashed())).toEqual([])
    })

    test('a cancellation: the job is restored; a request: the job is given up', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other } = setup
      const unrun = await board.post('flow', {}, { name: 'unrun' })
      const first = await doneUnheard(setup, () => board.cancel(unrun))
      for (const entry of await all(other.trashed())) await other.restore(entry)
      reconnect(setup)
      await first.acting
      expect(await namesOn(board)).toEqual(['unrun'])
      const claim = await claimed(other, 'unrun')
      await refresh(board)
      const running = await board.find(claim.job.uuid)
      const second = await doneUnheard(setup, () => board.cancel(running))
      await whenAborted(claim.cancelled)
      await claim.trash()
      reconnect(setup)
      await second.acting
      expect(await running.wait({ timeout: '20s' })).toBe('TRASHED')
      expect(await lying(setup, '.cancel')).toEqual([])
    })

    test('a cancellation that never arrived, of a job that is claimed, or done, meanwhile', async () => {
      for (const meanwhile of ['claimed', 'done'] as const) {
        await using setup = await ProxiedBoard.set()
        const { board, other, proxy } = setup
        const job = await board.post('flow', {}, { name: 'job' })
        await refresh(other)
        proxy.mode = 'blackhole'
        const sent = proxy.nextRequest()
        const acting = board.cancel(job, { reason: 'why' })
        acting.catch(() => undefined)
        await sent
        const claim = await claimed(other, 'job')
        if (meanwhile === 'done') await claim.consume()
        reconnect(setup)
        if (meanwhile === 'done') expect(await rejectionOf(acting)).toBeInstanceOf(NotFound)
        else {
          await acting
          expect(String(await whenAborted(claim.cancelled))).toContain('why')
          await claim.consume()
        }
        expect(await all(other.trashed())).toEqual([])
      }
    })

    test('a restoration: the job is claimed and done; a purge: it is gone for everybody', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other } = setup
      const entry = await trashed(setup)
      const first = await doneUnheard(setup, () => board.restore(entry))
      await (await claimed(other, 'job')).trash()
      reconnect(setup)
      await first.acting
      const [again] = await all(other.trashed())
      if (!again) throw new Error('it was trashed again')
      const second = await doneUnheard(setup, () => board.purge(again))
      expect(await rejectionOf(other.purge(again))).toBeInstanceOf(NotFound)
      reconnect(setup)
      await second.acting
      expect(await namesOn(board)).toEqual([])
    })

    test('a pause: it is over already', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other } = setup
      await board.post('flow', {}, { name: 'job' })
      const { acting } = await doneUnheard(setup, () => board.pause())
      await other.resume()
      reconnect(setup)
      await acting
      expect(board.paused).toBe(false)
      expect(await consumeAll(board)).toEqual(['job'])
    })
  })

  describe('in a whole batch', () => {
    const COUNT = 20

    interface Stage {
      readonly claims: readonly Claim[]
      act(): Promise<{ readonly posted: PostedJob[]; readonly claimed: Claim[] }>
    }

    /** Posts, claims, settles, a cancellation and a pause, all in one turn. */
    async function stage({ board }: ProxiedBoard): Promise<Stage> {
      const names = (kind: string) => Array.from({ length: COUNT }, (_, number) => `${kind} ${number}`)
      await Promise.all(['held', 'free'].flatMap(names).map((name) => board.post('flow', {}, { name })))
      const claims = await board.claimNext({ max: COUNT })
      const act = async () => {
        const settling = claims.map((claim, index) => (index % 2 ? claim.consume() : claim.trash()))
        const posting = names('new').map((name, index) => {
          return board.post('flow', {}, { name, ...(index % 2 ? { key: name } : {}) })
        })
        const [posted, claimed] = await Promise.all([Promise.all(posting), board.claimNext({ max: COUNT })])
        await Promise.all(settling)
        return { posted, claimed }
      }
      return { claims, act }
    }

    async function check(
      setup: ProxiedBoard,
      { claims }: Stage,
      result: Awaited<ReturnType<Stage['act']>>,
    ): Promise<void> {
      const { board, place } = setup
      expect(claims.every(({ settled, lost }) => settled && !lost.aborted)).toBe(true)
      expect(result.claimed.map(({ job, run, lost }) => [job.name, run, lost.aborted])).toEqual(
        Array.from({ length: COUNT }, (_, number) => [`free ${number}`, 1, false]),
      )
      expect(result.posted.map(({ name, created, state }) => [name, created, state])).toEqual(
        Array.from({ length: COUNT }, (_, number) => [`new ${number}`, true, 'UNCLAIMED']),
      )
      expect(await all(board.trashed())).toHaveLength(COUNT / 2)
      for (const claim of result.claimed) await claim.consume()
      expect(await consumeAll(board)).toHaveLength(COUNT)
      expect(await place.jobNodes()).toEqual([])
      expect(await lying(setup, '.keys')).toEqual([])
    }

    test('that was done: everybody gets the answer of their own', async () => {
      await using setup = await ProxiedBoard.set()
      const prepared = await stage(setup)
      const { acting } = await doneUnheard(setup, prepared.act)
      reconnect(setup)
      await check(setup, prepared, await acting)
    })

    variant.each([1, 3, 5, 7])('that was done, and breaks again after %d more requests', async (cut) => {
      await using setup = await ProxiedBoard.set()
      const prepared = await stage(setup)
      const { acting } = await doneUnheard(setup, prepared.act)
      let over = false
      const cutting = async () => {
        for (let request = 0; request < cut; request++) await setup.proxy.nextRequest()
        if (!over) setup.proxy.resetAll()
      }
      reconnect(setup)
      void cutting()
      const result = await acting
      over = true
      await waitForStableConnection(setup.board)
      await check(setup, prepared, result)
    })

    test('that never arrived, half of which others have taken meanwhile: the other half is done', async () => {
      await using setup = await ProxiedBoard.set()
      const { board, other, proxy } = setup
      await Promise.all(Array.from({ length: COUNT }, (_, number) => board.post('flow', {}, { name: `${number}` })))
      await refresh(other)
      proxy.mode = 'blackhole'
      const sent = proxy.nextRequest()
      const claiming = board.claimNext({ max: COUNT })
      const posting = board.post('flow', {}, { name: 'posted' })
      await sent
      const stolen = await other.claimNext({ max: COUNT, accept: ({ name }) => Number(name) < COUNT / 2 })
      reconnect(setup)
      const claims = await claiming
      expect((await posting).name).toBe('posted')
      expect(stolen).toHaveLength(COUNT / 2)
      expect(claims.map(({ job }) => Number(job.name))).toEqual(
        Array.from({ length: COUNT / 2 }, (_, number) => COUNT / 2 + number),
      )
      for (const claim of [...claims, ...stolen]) await claim.consume()
      expect(await namesOn(other)).toEqual(['posted'])
    })
  })

  test('a keyed post whose outcome is unknown is found, or made, by posting it again', async () => {
    for (const arrived of [true, false]) {
      await using setup = await ProxiedBoard.set()
      const { board, proxy } = setup
      const session = await setup.place.sessionOf(board)
      const post = () => board.post('flow', {}, { name: 'job', key: 'one' })
      const reborn = nextSession(board)
      let acting: Promise<PostedJob>
      if (arrived) acting = (await doneUnheard(setup, post)).acting
      else {
        proxy.mode = 'blackhole'
        const sent = proxy.nextRequest()
        acting = post()
        acting.catch(() => undefined)
        await sent
      }
      proxy.mode = 'refuse'
      proxy.resetAll()
      await expireSession(zookeeperHosts, session)
      proxy.mode = 'pass'
      expect(await rejectionOf(acting)).toBeInstanceOf(OutcomeUnknown)
      await reborn
      const posted = nextEvent(setup.other, 'posted')
      const again = await post()
      expect(again.created).toBe(!arrived)
      if (!arrived) await posted
      expect(await namesOn(setup.other)).toEqual(['job'])
    }
  })
})
