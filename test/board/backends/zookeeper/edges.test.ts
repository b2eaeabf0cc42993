/** Ends and edges of a board on ZooKeeper: the gate under load, the largest jobs, what is asked behind a board's back. */
import { describe, expect } from 'vitest'
import { decodeGate } from '../../../../src/board/backends/zookeeper/store/encoding.ts'
import { makePosting, type PostOptions } from '../../../../src/board/model/posting/post-options.ts'
import { encodePosting, MAX_POSTING_BYTES } from '../../../../src/board/model/posting/posting-codec.ts'
import { decode, encode } from '../../../../src/core/codec.ts'
import { Duplicate, PayloadTooLarge, Unclaimable } from '../../../../src/core/errors.ts'
import { ACL } from '../../../../src/zookeeper/index.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { usual as test, variant } from '../../../variant.ts'
import { jobIdFor, zookeeperPlace } from '../../boards.ts'
import { nextEvent, rejectionOf } from '../../events.ts'
import { all, namesOn, refresh } from '../../jobs.ts'
import { BareBackend, postingOf } from './bare-backends.ts'

test('a frame has room for a job of the largest size twice: as it is posted, and as it is trashed with what was added', () => {
  const requestBytes = 32 * 1_024
  expect(2 * MAX_POSTING_BYTES + requestBytes).toBeLessThanOrEqual(1_048_575)
})

describe.skipIf(!zookeeperHosts)('a board on ZooKeeper', () => {
  test('grants nothing between a pause and its end, by the transactions themselves', async () => {
    await using place = await zookeeperPlace()
    await using boss = await place.open()
    const fences: bigint[] = []
    const finished = new AbortController()
    const workers = await Promise.all(
      [1, 2, 3].map(async () => {
        const board = await place.open()
        const work = async () => {
          for await (const claim of board.claims({ signal: finished.signal })) {
            fences.push(claim.fence)
            await claim.abandon()
          }
        }
        return { board, working: Promise.all([work(), work()]) }
      }),
    )
    for (let number = 0; number < 8; number++) await boss.post('flow', {})
    const gateAt = async () => {
      const { data, stat } = await place.observer.getData(`${place.path}/.gate`)
      return decodeGate(data).fenceBase + stat.mzxid
    }
    const paused: { from: bigint; to: bigint }[] = []
    for (let round = 0; round < 15; round++) {
      const asker = workers[round % 3]?.board ?? boss
      await asker.pause()
      const from = await gateAt()
      await Promise.all(workers.map(({ board }) => refresh(board)))
      await boss.resume()
      paused.push({ from, to: await gateAt() })
      await boss.wait({ timeout: '20s' })
    }
    finished.abort()
    await Promise.all(workers.map(({ working }) => working))
    await Promise.all(workers.map(({ board }) => board.close()))
    expect(fences.length).toBeGreaterThan(paused.length)
    const wrong = fences.filter((fence) => paused.some(({ from, to }) => fence > from && fence < to))
    expect(wrong).toEqual([])
  })

  test('grants nothing that was chosen before the pause was known and is asked for after', async () => {
    await using place = await zookeeperPlace()
    await using bare = await BareBackend.open(place)
    await using boss = await place.open()
    const posting = postingOf()
    const posted = await bare.backend.jobs.post({ posting })
    if (!posted.created) throw new Error('it was to be posted')
    const { id = '', revision } = posted
    const seen = bare.sees({ paused: true })
    await boss.pause()
    await seen
    const [refused] = await bare.backend.claims.claim([{ id, revision, who: 'who', posting }])
    expect(refused && 'error' in refused ? refused.error : undefined).toBeInstanceOf(Unclaimable)
    const resumed = bare.sees({ paused: false })
    await boss.resume()
    await resumed
    expect(await bare.backend.claims.claim([{ id, revision, who: 'who', posting }])).toMatchObject([
      { value: { fence: {} } },
    ])
  })

  variant(
    'carries what it takes at the limit, with all that a job can want, through 20 runs into the trash and back',
    async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open({ who: 'w'.repeat(200) })
      const options: PostOptions = {
        uuid: '00000000-0000-7000-8000-000000000000',
        key: 'k'.repeat(1_024),
        resources: {
          exclusive: Array.from({ length: 128 }, (_, number) => `${number} ${'x'.repeat(180)}`),
          shared: Array.from({ length: 128 }, (_, number) => `${number} ${'s'.repeat(180)}`),
        },
        deadline: '1h',
      }
      const sizeWith = (text: string) => {
        const details = { flow: 'flow', store: { text } }
        const posting = makePosting({ ...options, name: 'flow', details, postedBy: board.who, explicit: ['deadline'] })
        return encodePosting(posting, { encoding: 'msgpack', limit: Number.POSITIVE_INFINITY }).length
      }
      const almost = 'x'.repeat(400_000)
      const text = 'x'.repeat(almost.length + MAX_POSTING_BYTES - sizeWith(almost))
      expect(sizeWith(text)).toBe(MAX_POSTING_BYTES)
      expect(await rejectionOf(board.post('flow', { text: `${text}x` }, options))).toBeInstanceOf(PayloadTooLarge)
      const job = await board.post('flow', { text }, options)
      for (let run = 1; run <= 20; run++) await (await board.claim(job)).abandon({ reason: '€'.repeat(600) })
      const claim = await board.claim(job)
      await board.cancel(job, { reason: '€'.repeat(600) })
      await claim.trash({ failure: { name: 'Error', message: 'm'.repeat(8_000), stack: 's'.repeat(8_000) } })
      const [entry] = await all(board.trashed())
      if (entry) await board.restore(entry)
      await refresh(board)
      const [again] = await board.claimNext()
      expect(again.job.details.store).toEqual({ text })
      await again.consume()
      for (const folder of ['.keys', '.cancel', '.trash']) {
        expect((await place.observer.getChildren(`${place.path}/${folder}`)).names).toEqual([])
      }
    },
  )

  test('a gate that was deleted is created again, open, and a key without content is taken over', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    await using other = await place.open()
    await place.observer.delete(`${place.path}/.gate`)
    await board.post('flow', {}, { name: 'job' })
    const [claim] = await Promise.race([board.claimNext(), other.claimNext()])
    await claim.abandon()
    await board.pause()
    expect(await rejectionOf(other.claim(claim.job))).toBeInstanceOf(Unclaimable)
    await board.resume()

    await place.observer.create(`${place.path}/.keys/one`, Buffer.from('garbage'))
    expect(await board.post('flow', {}, { name: 'keyed', key: 'one' })).toMatchObject({ created: true })
    expect(await other.post('flow', {}, { key: 'one' })).toMatchObject({ created: false, name: 'keyed' })
    expect(await namesOn(other)).toEqual(['job', 'keyed'])
  })

  test('a request to give a job up that says nothing is one all the same', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    await board.post('flow', {})
    const [claim] = await board.claimNext()
    const [id] = await place.jobNodes()
    await place.observer.create(`${place.path}/.cancel/${id}`, Buffer.from('garbage'))
    const ended = claim.perform(async (_, { signal }) => {
      // The request may have been heard before the work began.
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      throw signal.reason
    })
    expect(await ended).toBe('trashed')
    expect(String(claim.cancelled.reason)).toContain('an unknown owner')
    expect((await place.observer.getChildren(`${place.path}/.cancel`)).names).toEqual([])
  })

  test('does not take a job that its claim would be too large for: every resource carries the ACL along', async () => {
    await using place = await zookeeperPlace()
    const identities = Array.from({ length: 12 }, (_, number) => `service-${number}`.padEnd(120, 'x'))
    const acl = [...ACL.open, ...identities.map((id) => ({ scheme: 'digest', id: `${id}:hash`, permissions: 31 }))]
    await using board = await place.open({ acl })
    const names = (count: number) => Array.from({ length: count }, (_, number) => `${number}`.padEnd(200, 'r'))
    const post = (count: number) =>
      board.post('flow', { text: 'x'.repeat(400_000) }, { resources: { shared: names(count) } })
    expect(await rejectionOf(post(256))).toBeInstanceOf(PayloadTooLarge)
    const claim = await board.claim(await post(100))
    await claim.trash()
  })

  test('a job that has become unreadable here keeps its key', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const job = await board.post('flow', {}, { key: 'one' })
    const path = `${place.path}/${jobIdFor(job)}`
    const { data } = await place.observer.getData(path)
    const posting = Object(decode(data ?? new Uint8Array(), 'msgpack'))
    const told = nextEvent(board, 'error')
    await place.observer.setData(path, encode({ ...posting, format: 99 }, 'msgpack'))
    await told
    expect(await rejectionOf(board.post('flow', {}, { key: 'one' }))).toBeInstanceOf(Duplicate)
    expect(await place.jobNodes()).toEqual([jobIdFor(job)])
  })
})
