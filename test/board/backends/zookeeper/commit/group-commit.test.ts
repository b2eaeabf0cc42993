/** What is asked at the same time goes out together, and everybody gets an answer of their own. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { ClaimGrant, ClaimRequest, Settlement } from '../../../../../src/board/contract/index.ts'
import type { JobBoard } from '../../../../../src/board/index.ts'
import type { Posting } from '../../../../../src/board/model/posting/posting.ts'
import { createDeferred } from '../../../../../src/core/async/abort.ts'
import { type Result, settleEach } from '../../../../../src/core/result.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { startProxy } from '../../../../support/proxy.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../support/zookeeper.ts'
import { usual as test, variant } from '../../../../variant.ts'
import { type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'
import { all, namesOn, refresh } from '../../../jobs.ts'
import { BareBackend, postingOf } from '../bare-backends.ts'

describe.skipIf(!zookeeperHosts)('group commit', () => {
  /** Of these tests alone: its transactions are counted. */
  let server: ZooKeeperServer

  beforeAll(async () => {
    server = await startZooKeeper()
  })

  afterAll(async () => {
    await server.stop()
  })

  /** The last transaction of the server; those that it refused count too. */
  async function zxid(): Promise<number> {
    return Number.parseInt(/Zxid: (0x[0-9a-f]+)/.exec(await server.fourLetter('srvr'))?.[1] ?? '', 16)
  }

  /** A board that watches over its lease already, and has nothing more to do for it soon. */
  async function openBusy(place: ZooKeeperPlace): Promise<JobBoard> {
    const board = await place.openAt(server.hosts, { parameters: '?sessionTimeout=60s' })
    await board.post('flow', {})
    await (await board.claimNext())[0].consume()
    // Its first claim shows it as an owner, beside everything else: a transaction of its own.
    while ((await board.entities('jobboard-owner')).length === 0) await refresh(board)
    return board
  }

  async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
    const before = await zxid()
    await work()
    return (await zxid()) - before
  }

  test('a job alone is three transactions', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await openBusy(place)
    const count = await transactionsOf(async () => {
      await board.post('flow', {})
      const [claim] = await board.claimNext()
      await claim.consume()
    })
    expect(count).toBe(3)
  })

  test('ends of jobs whose dependents their owner did not know are refused together', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await openBusy(place)
    const parts = await Promise.all(Array.from({ length: 100 }, () => board.post('flow', {}, { name: 'part' })))
    // Nobody reports to it what is posted after its claims.
    await using owner = await BareBackend.openUnsubscribed(place)
    const ids = (await owner.backend.jobs.list()).jobs
    const read = (await owner.backend.jobs.read(ids)).flatMap((stored) =>
      stored && 'posting' in stored ? [stored] : [],
    )
    const grants = await owner.backend.claims.claim(
      read.map(({ id, revision, posting }) => ({ id, revision, posting, who: 'owner' })),
    )
    await board.post('flow', {}, { name: 'collector', after: parts })
    const settle = (index: number): Promise<void> => {
      const [stored, grant] = [read[index], grants[index]]
      if (!stored || !grant || !('value' in grant)) throw new Error('it was claimed')
      const { id, posting } = stored
      const { session, revision } = grant.value
      return owner.backend.claims.settle({
        ...{ kind: 'consume', who: 'owner', cancelRequested: false },
        ...{ id, posting, session, revision },
      })
    }
    const ended = await transactionsOf(() => Promise.all(parts.map((_, index) => settle(index))))
    expect(ended).toBeLessThanOrEqual(8)
    const [collector] = await board.claimNext()
    expect(collector.job.name).toBe('collector')
  })

  variant(
    'posts after jobs that another board has ended are refused together, and the ends of those they wait for free them together',
    async () => {
      await using place = await zookeeperPlace(server.hosts)
      await using board = await openBusy(place)
      await using other = await openBusy(place)
      const endElsewhere = async (count: number) => {
        const refs = await Promise.all(Array.from({ length: count }, async () => (await board.post('flow', {})).ref))
        const claims = []
        while (claims.length < count) claims.push(...(await other.claimNext({ max: count - claims.length })))
        await Promise.all(claims.map((claim) => claim.consume()))
        return refs
      }
      const refs = await endElsewhere(100)
      const posted = await transactionsOf(() =>
        Promise.all(refs.map((ref) => board.post('flow', {}, { after: [ref] }))),
      )
      // A transaction of posts after all jobs is refused; another one posts the jobs without dependencies.
      expect(posted).toBeLessThanOrEqual(4)
      const again = await transactionsOf(() => Promise.all(refs.map((ref) => board.post('flow', {}, { after: [ref] }))))
      expect(again).toBe(1)
      const firsts = await board.claimNext({ max: 200 })
      await Promise.all(firsts.map(({ job }) => board.post('flow', {}, { name: 'last', after: [job] })))
      const lasts = await Promise.all(
        [1, 2].map(() => board.post('flow', {}, { name: 'collector', after: firsts.map(({ job }) => job) })),
      )
      const ended = await transactionsOf(() => Promise.all(firsts.map((claim) => claim.consume())))
      expect(ended).toBeLessThanOrEqual(8)
      // The other board sees the ends one after another, and claims what is ready by then.
      const names: (string | undefined)[] = []
      while (names.length < firsts.length + lasts.length)
        names.push(...(await other.claimNext({ max: 1_000 })).map(({ job }) => job.name))
      expect(names.filter((name) => name === 'collector')).toHaveLength(lasts.length)
      expect(names.filter((name) => name === 'last')).toHaveLength(firsts.length)
    },
  )

  test.each(['consume', 'abandon', 'trash'] as const)(
    'two hundred posts, claims and settles (%s) in one turn each are three',
    async (settle) => {
      await using place = await zookeeperPlace(server.hosts)
      await using board = await openBusy(place)
      const names = Array.from({ length: 200 }, (_, number) => `job ${number}`)
      let jobs: string[] = []
      const posted = await transactionsOf(async () => {
        jobs = (await Promise.all(names.map((name) => board.post('flow', {}, { name })))).map(({ name }) => name)
      })
      expect(jobs).toEqual(names)
      let claims: Awaited<ReturnType<typeof board.claimNext>> | undefined
      const claimed = await transactionsOf(async () => {
        claims = await board.claimNext({ max: 200 })
      })
      expect(claims?.map(({ job }) => job.name)).toEqual(names)
      const settled = await transactionsOf(() => Promise.all((claims ?? []).map((claim) => claim[settle]())))
      expect([posted, claimed, settled]).toEqual([1, 1, 1])
      expect(await namesOn(board)).toEqual(settle === 'abandon' ? names : [])
    },
  )

  test('jobs that share a resource are claimed together, and let go together', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await openBusy(place)
    const posting = Array.from({ length: 50 }, () => board.post('flow', {}, { resources: { shared: ['disk'] } }))
    await Promise.all(posting)
    const count = await transactionsOf(async () => {
      const claims = await board.claimNext({ max: 50 })
      expect(claims).toHaveLength(50)
      await Promise.all(claims.map((claim) => claim.consume()))
    })
    // The resource has to be made first.
    expect(count).toBe(3)
  })

  test('resources that are wanted for the first time are made before the claim, not one by one in its way', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await openBusy(place)
    const posting = Array.from({ length: 50 }, (_, number) =>
      board.post('flow', {}, { resources: { exclusive: [`disk ${number}`] } }),
    )
    await Promise.all(posting)
    const count = await transactionsOf(async () => expect(await board.claimNext({ max: 50 })).toHaveLength(50))
    expect(count).toBeLessThanOrEqual(50 + 3)
  })

  test('resources that were swept since they were last wanted are not found missing one by one', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await openBusy(place)
    const post = () =>
      Promise.all(
        Array.from({ length: 50 }, (_, n) => board.post('flow', {}, { resources: { exclusive: [`disk ${n}`] } })),
      )
    await post()
    for (const claim of await board.claimNext({ max: 50 })) await claim.consume()
    const { names } = await place.observer.getChildren(`${place.path}/.permits`)
    for (const name of names) await place.observer.delete(`${place.path}/.permits/${name}`)
    await post()
    const count = await transactionsOf(async () => expect(await board.claimNext({ max: 50 })).toHaveLength(50))
    expect(count).toBeLessThanOrEqual(50 + 3)
  })

  test('of jobs that others have stolen in part the rest is claimed in a handful of rounds', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using proxy = await startProxy({ port: server.port })
    await using board = await place.openAt(proxy.hosts, { parameters: '?sessionTimeout=60s' })
    await using thief = await openBusy(place)
    await Promise.all(Array.from({ length: 100 }, (_, n) => thief.post('flow', {}, { name: `${n}` })))
    await refresh(board)
    const count = await transactionsOf(async () => {
      const gate = createDeferred()
      proxy.manner = { until: gate.promise }
      const sent = proxy.nextRequest()
      const claiming = board.claimNext({ max: 100 })
      await sent
      const stolen = await thief.claimNext({ max: 100, accept: ({ name }) => Number(name) % 2 === 0 })
      await Promise.all(stolen.slice(0, 20).map((claim) => claim.consume()))
      await Promise.all(stolen.slice(20, 30).map((claim) => claim.abandon()))
      gate.resolve()
      proxy.manner = {}
      const claims = await claiming
      expect(claims.map(({ job }) => Number(job.name)).every((name) => name % 2 === 1)).toBe(true)
      expect(claims).toHaveLength(50)
      await Promise.all(claims.map((claim) => claim.consume()))
    })
    // The thief's three, a proof of the lease, and one to settle; what is left is the claims.
    expect(count - 5).toBeLessThanOrEqual(3)
    expect(await namesOn(board, { onlyUnclaimed: true })).toHaveLength(10)
  })

  test('of keys that are taken all are found out in a handful of rounds', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await openBusy(place)
    const post = () => Promise.all(Array.from({ length: 200 }, (_, n) => board.post('flow', {}, { key: `${n}` })))
    await post()
    for (let number = 0; number < 200; number += 20) await (await board.claimNext())[0].consume()
    let created = 0
    const count = await transactionsOf(async () => {
      created = (await post()).filter((job) => job.created).length
    })
    expect(created).toBe(10)
    expect(count).toBeLessThanOrEqual(3)
  })

  describe('refused in the middle of others', () => {
    /** What becomes of each, by what it was. */
    function outcomes<T>(results: readonly Result<T>[]): string[] {
      return results.map((result) => ('value' in result ? 'done' : result.error.name))
    }

    function settleAll({ backend }: BareBackend, settlements: readonly Settlement[]): Promise<Result<void>[]> {
      return settleEach(settlements, (settlement) => backend.claims.settle(settlement))
    }

    async function posted(bare: BareBackend, postings: readonly Posting[]) {
      const results = await Promise.all(postings.map((posting) => bare.backend.jobs.post({ posting })))
      return results.map((result, index) => {
        if (!result.created) throw new Error('it was to be posted')
        const { id = '', revision } = result
        const posting = postings[index] ?? postingOf()
        return { id, revision, posting, who: 'who' } satisfies ClaimRequest
      })
    }

    test('claims: the stale, the gone, the held and those without their resource, each for its own reason', async () => {
      await using place = await zookeeperPlace(server.hosts)
      await using bare = await BareBackend.open(place)
      await using other = await place.open()
      const alone = { resources: { exclusive: ['disk'] } }
      const [a, stale, b, gone, c, held, d, blocked, e] = await posted(
        bare,
        Array.from({ length: 9 }, (_, index) => postingOf(index === 7 ? alone : { name: `job ${index}` })),
      )
      if (!a || !stale || !b || !gone || !c || !held || !d || !blocked || !e) throw new Error('nine were posted')
      await other.post('flow', {}, { name: 'owner', ...alone, priority: 'VERY_HIGH' })
      const named = async (name: string) => (await other.claimNext({ accept: (posting) => posting.name === name }))[0]
      await named('owner')
      await (await named('job 1')).abandon()
      await (await named('job 3')).consume()
      await named('job 5')
      // An event that is still on its way would refuse a claim before the server does, as "changed".
      await bare.backend.changes.barrier()
      const results = await bare.backend.claims.claim([a, stale, b, gone, c, held, d, blocked, e])
      expect(outcomes(results)).toEqual([
        ...['done', 'Unclaimable', 'done', 'NotFound', 'done', 'Unclaimable', 'done', 'Unclaimable', 'done'],
      ])
      const said = results[7]
      expect(said && 'error' in said ? said.error.message : '').toContain('disk')
      const fences = new Set(results.flatMap((result) => ('value' in result ? [result.value.fence] : [])))
      expect(fences.size).toBeGreaterThan(0)
    })

    test('posts: a key that is taken, a job that is too large', async () => {
      await using place = await zookeeperPlace(server.hosts)
      await using bare = await BareBackend.open(place)
      await posted(bare, [postingOf({ key: 'taken' })])
      const large = { ...postingOf(), details: { text: 'x'.repeat(600_000) } }
      const postings = [
        postingOf(),
        postingOf({ key: 'taken' }),
        postingOf({ key: 'a' }),
        large,
        postingOf({ key: 'a' }),
        postingOf(),
      ]
      const results = await settleEach(postings, (posting) => bare.backend.jobs.post({ posting }))
      expect(outcomes(results)).toEqual(['done', 'done', 'done', 'PayloadTooLarge', 'done', 'done'])
      const created = results.map((result) => 'value' in result && result.value.created)
      expect(created).toEqual([true, false, true, false, false, true])
      expect(await place.jobNodes()).toHaveLength(4)
    })

    test('settles: those of former claims, among those of claims that stand', async () => {
      await using place = await zookeeperPlace(server.hosts)
      await using bare = await BareBackend.open(place)
      const choices = await posted(bare, [postingOf(), postingOf(), postingOf(), postingOf(), postingOf()])
      const claim = async (of: readonly ClaimRequest[]) =>
        (await bare.backend.claims.claim(of)).map((result): ClaimGrant => {
          if ('value' in result) return result.value
          throw result.error
        })
      const settlement = (
        choice: ClaimRequest | undefined,
        granted: ClaimGrant | undefined,
        kind: 'consume' | 'abandon',
      ) => {
        if (!choice || !granted) throw new Error('there is one')
        const { id, who, posting } = choice
        return { kind, id, who, posting, session: granted.session, revision: granted.revision, cancelRequested: false }
      }
      const first = await claim(choices)
      // The second and the fourth are given back, and claimed again by the same owner in the same session.
      const again = [1, 3].map((index) => choices[index]).filter((choice) => choice !== undefined)
      const given = again.map((choice) => settlement(choice, first[choices.indexOf(choice)], 'abandon'))
      expect(outcomes(await settleAll(bare, given))).toEqual(['done', 'done'])
      const second = await claim(again.map((choice) => ({ ...choice, revision: choice.revision + 2 })))
      const all: Settlement[] = choices.map((choice, index) => settlement(choice, first[index], 'consume'))
      expect(outcomes(await settleAll(bare, all))).toEqual(['done', 'ClaimLost', 'done', 'ClaimLost', 'done'])
      expect(await place.jobNodes()).toHaveLength(4)
      const late = again.map((choice, index) => settlement(choice, second[index], 'consume'))
      expect(outcomes(await settleAll(bare, late))).toEqual(['done', 'done'])
      expect(await place.jobNodes()).toEqual([])
    })
  })

  test('everything at the same time, of one job after the other, comes out as if asked one by one', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await place.open()
    await using other = await place.open()
    const life = async (number: number) => {
      const name = `job ${number}`
      const job = await board.post('flow', {}, { name, ...(number % 3 ? {} : { key: name }) })
      const claim = await board.claim(job)
      const cancelling = number % 5 ? undefined : other.cancel(job).catch(() => undefined)
      if (number % 2) await claim.trash({ reason: name })
      else await claim.consume()
      await cancelling
      return job.state
    }
    const count = await transactionsOf(async () => {
      const states = await Promise.all(Array.from({ length: 100 }, (_, number) => life(number)))
      expect(states).toEqual(Array.from({ length: 100 }, (_, number) => (number % 2 ? 'TRASHED' : 'COMPLETE')))
    })
    expect(count).toBeLessThan(100)
    expect(await place.jobNodes()).toEqual([])
    expect((await place.observer.getChildren(`${place.path}/.keys`)).names).toEqual([])
    expect(await all(board.trashed())).toHaveLength(50)
  })
})
