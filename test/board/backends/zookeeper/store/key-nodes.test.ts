/** The window of a key counts from the last write of its znode, by the servers' clock. */
import { describe, expect, test } from 'vitest'
import { decodeKey } from '../../../../../src/board/backends/zookeeper/store/encoding.ts'
import { KeyNodes } from '../../../../../src/board/backends/zookeeper/store/key-nodes.ts'
import { ZooKeeperLayout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'
import { encode } from '../../../../../src/core/codec.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { jobIdFor, type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'

/** What a board finds whose servers' clock shows this time. */
function findAt({ observer, path }: ZooKeeperPlace, now: number) {
  const layout = new ZooKeeperLayout(path)
  return new KeyNodes({ zookeeper: observer, layout, encoding: 'msgpack', now: () => now }).find('looking', 'import')
}

async function writtenAt({ observer, path }: ZooKeeperPlace): Promise<number> {
  return (await observer.getData(`${path}/.keys/import`)).stat.mtime
}

describe.skipIf(!zookeeperHosts)('a key', () => {
  test('with a window is taken while its job is there, in its window after that, and free from then on', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const job = await board.post('flow', {}, { key: { name: 'import', for: '1h' } })
    const [id, end] = [jobIdFor(job), (await writtenAt(place)) + 3_600_000]
    expect(await findAt(place, end + 1)).toEqual({ uuid: job.uuid, revision: 0, id, state: 'taken' })
    await (await board.claim(job)).consume()
    expect(await findAt(place, end - 1)).toMatchObject({ id, state: 'window' })
    expect(await findAt(place, end)).toMatchObject({ id, revision: 0, state: 'free' })
  })

  test('has the window of the post that replaced its job', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const key = { name: 'import', on: 'replace' } as const
    const job = await board.post('flow', {}, { key })
    expect(await findAt(place, 0)).toMatchObject({ id: undefined, state: 'taken' })
    await board.post('flow', {}, { key: { ...key, for: '1h' } })
    await (await board.claim(await board.find(job.uuid))).consume()
    const end = (await writtenAt(place)) + 3_600_000
    expect(await findAt(place, end - 1)).toMatchObject({ revision: 1, id: jobIdFor(job), state: 'window' })
    expect(await findAt(place, end)).toMatchObject({ state: 'free' })
  })

  test.each([
    { uuid: 'u', job: '../x', for: 1 },
    { uuid: 'u', job: 'job0000000000', for: 'long' },
    { uuid: 'u', job: 'job0000000000', for: -1 },
    { uuid: 'u', for: 1 },
  ])('with the window %j has none', (record) => {
    expect(decodeKey(encode(record, 'msgpack'), 'msgpack')).toEqual({ uuid: 'u' })
  })
})
