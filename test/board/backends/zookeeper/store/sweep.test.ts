/** What a job that was removed by hand leaves behind goes in time; what somebody needs stays. */
import { describe, expect, test } from 'vitest'
import { encodeKey } from '../../../../../src/board/backends/zookeeper/store/encoding.ts'
import { ZooKeeperLayout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'
import { sweep } from '../../../../../src/board/backends/zookeeper/store/sweep.ts'
import { Waits } from '../../../../../src/board/backends/zookeeper/store/waits.ts'
import { encode } from '../../../../../src/core/codec.ts'
import { Duplicate } from '../../../../../src/core/errors.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { jobIdFor, type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'
import { rejectionOf, whenAborted } from '../../../events.ts'
import { refresh } from '../../../jobs.ts'
import { BareBackend, boardAt, postingOf } from '../bare-backends.ts'

describe.skipIf(!zookeeperHosts)('sweeping', () => {
  const MINUTE = 60_000

  const namesIn = async ({ observer, path }: ZooKeeperPlace, folder: string) =>
    (await observer.getChildren(`${path}/${folder}`)).names.sort()

  /** As a board would that holds these jobs, so much later. */
  async function sweepAt(place: ZooKeeperPlace, options: { later: number; uuids?: readonly string[] }): Promise<void> {
    const { later, uuids = [] } = options
    const layout = new ZooKeeperLayout(place.path)
    await sweep({
      ...{ zookeeper: place.observer, layout },
      waits: new Waits({ zookeeper: place.observer, layout }),
      batches: { run: async () => undefined },
      encoding: 'msgpack',
      now: Date.now() + later,
      mayExist: (uuid) => uuids.includes(uuid),
    })
  }

  test('takes away keys and requests of jobs that are gone, and resources that no job holds', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const gone = await board.post('flow', {}, { name: 'gone', key: 'gone' })
    await (await board.claim(gone)).abandon()
    await board.cancel(gone, { reason: 'never mind' })
    await place.removeRaw(gone)
    const free = await board.post('flow', {}, { resources: { exclusive: ['free'] } })
    await (await board.claim(free)).consume()
    const kept = await board.post('flow', {}, { key: 'kept', resources: { exclusive: ['held'], shared: ['shared'] } })
    const claim = await board.claim(kept)
    await board.cancel(kept)
    await whenAborted(claim.cancelled)
    const before = await Promise.all(['.keys', '.cancel', '.permits'].map((folder) => namesIn(place, folder)))
    expect(before).toEqual([['gone', 'kept'], [jobIdFor(gone), jobIdFor(kept)].sort(), ['free', 'held', 'shared']])

    await sweepAt(place, { later: 2 * MINUTE, uuids: [kept.uuid] })
    expect(await namesIn(place, '.keys')).toEqual(['kept'])
    expect(await namesIn(place, '.cancel')).toEqual([jobIdFor(kept)])
    expect(await namesIn(place, '.permits')).toEqual(['held', 'shared'])
    await claim.consume()
    for (const folder of ['.keys', '.cancel']) expect(await namesIn(place, folder)).toEqual([])
  })

  test('leaves a resource a while, and one that was swept is made again when it is wanted', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const resources = { exclusive: ['disk'], shared: ['net'] }
    const job = await board.post('flow', {}, { resources })
    await (await board.claim(job)).abandon()
    await sweepAt(place, { later: 0 })
    expect(await namesIn(place, '.permits')).toEqual(['disk', 'net'])
    await sweepAt(place, { later: 2 * MINUTE })
    expect(await namesIn(place, '.permits')).toEqual([])
    const claim = await board.claim(job)
    expect(claim.run).toBe(2)
    expect(await namesIn(place, '.permits')).toEqual(['disk', 'net'])
    await claim.consume()
  })

  test('leaves a key for its window, and takes it away after that', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const job = await board.post('flow', {}, { key: { name: 'import', for: '10m' } })
    await sweepAt(place, { later: 20 * MINUTE, uuids: [job.uuid] })
    expect(await namesIn(place, '.keys')).toEqual(['import'])
    await (await board.claim(job)).consume()
    await sweepAt(place, { later: 9 * MINUTE })
    expect(await namesIn(place, '.keys')).toEqual(['import'])
    await sweepAt(place, { later: 11 * MINUTE })
    expect(await namesIn(place, '.keys')).toEqual([])
    expect(await board.post('flow', {}, { key: 'import' })).toMatchObject({ created: true })
  })

  test('by several at once does no harm', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const jobs = await Promise.all(
      Array.from({ length: 20 }, (_, n) => board.post('flow', {}, { key: `${n}`, resources: { shared: [`${n}`] } })),
    )
    for (const claim of await board.claimNext({ max: 20 })) await claim.abandon()
    await Promise.all(jobs.slice(0, 10).map((job) => place.removeRaw(job)))
    const uuids = jobs.slice(10).map(({ uuid }) => uuid)
    await Promise.all([1, 2, 3].map(() => sweepAt(place, { later: 2 * MINUTE, uuids })))
    expect(await namesIn(place, '.keys')).toHaveLength(10)
    expect(await namesIn(place, '.permits')).toEqual([])
  })

  test('is done by a board at leisure, among what it scans', async () => {
    await using place = await zookeeperPlace()
    await using board = await boardAt(place, { scanPeriod: '2ms' })
    const job = await board.post('flow', {}, { key: 'gone' })
    await (await board.claim(job)).abandon()
    await board.cancel(job)
    await place.removeRaw(job)
    while ((await namesIn(place, '.keys')).length + (await namesIn(place, '.cancel')).length > 0) {
      // It looks about as long as something happens.
      await (await board.claim(await board.post('flow', {}))).consume()
    }
  })

  test('is done by a process that looks for work without a view, too', async () => {
    await using place = await zookeeperPlace()
    await using bare = await BareBackend.openUnsubscribed(place, { scanPeriod: '2ms' })
    await bare.backend.jobs.post({ posting: postingOf() })
    const [id = ''] = await place.jobNodes()
    await bare.backend.signals.cancel({ id, job: 'gone', who: 'somebody', reason: 'none' })
    await place.observer.delete(`${place.path}/${id}`)
    while ((await namesIn(place, '.cancel')).length > 0) await bare.backend.jobs.listUnclaimed()
  })

  test('the key of a posting that only a newer release can read is neither swept nor taken over', async () => {
    await using place = await zookeeperPlace()
    await using board = await boardAt(place, { scanPeriod: '2ms' })
    const posting = { uuid: '00000000-0000-7000-8000-000000000000', name: 'later', details: {}, format: 99, key: 'one' }
    await place.putRaw(encode(posting, 'msgpack'))
    await place.observer.create(`${place.path}/.keys/one`, encodeKey({ uuid: posting.uuid }, 'msgpack'))
    for (let round = 0; round < 30; round++) await (await board.claim(await board.post('flow', {}))).consume()
    await refresh(board)
    const failure = await rejectionOf(board.post('flow', {}, { key: 'one' }))
    expect(failure).toBeInstanceOf(Duplicate)
    expect(String(failure)).toMatch(/unreadable here/)
    expect(await namesIn(place, '.keys')).toEqual(['one'])
    expect(await place.jobNodes()).toHaveLength(1)
  })
})
