/** Writes what a board on ZooKeeper keeps, as everyone can who has access to its path. */
import { ZooKeeperLayout } from '../../src/board/backends/zookeeper/store/layout.ts'
import { encodePlain } from '../../src/core/codec.ts'
import { NodeExists } from '../../src/zookeeper/index.ts'
import type { ZooKeeperPlace } from '../board/boards.ts'
import type { Random } from '../support/random.ts'
import { BATCH, CANCELLATION, ENDED, ENTITY, ODD_TEXTS, TRASH } from './real.ts'
import type { RecordMaker } from './records.ts'

/** Less than the limit of a request, which also contains the path. */
const MAX_NODE_BYTES = 1_000_000

export async function plantZnodes(place: ZooKeeperPlace, make: RecordMaker, random: Random): Promise<void> {
  const { observer, path } = place
  const id = await place.putRaw(fitting(make.posting()))
  const sometimes = async (child: string, bytes: () => Uint8Array) => {
    if (random.next() >= 0.3) return
    const parent = child.slice(0, child.lastIndexOf('/'))
    if (parent !== '') await observer.mkdirp(`${path}/${parent}`)
    await observer.create(`${path}/${child}`, fitting(bytes())).catch(unlessThere)
  }
  // The conductor may have trashed the job by now.
  await observer.create(`${path}/.trash/${id}`, fitting(make.record(TRASH))).catch(unlessThere)
  await sometimes(`.cancel/${id}`, () => make.record(CANCELLATION))
  await sometimes(`.keys/${id}`, () => make.record({ uuid: 'u' }))
  await sometimes(`.entities/conductor/${id}`, () => make.record(ENTITY))
  await sometimes(`.permits/${id}/x`, () => make.record({ job: id }))
  await sometimes(`${id}.lock`, () => make.record({ owner: 'w' }))
  const kind = random.pick(['schedule', 'limit', 'limit-hold', 'outline', 'once'])
  await sometimes(`.records/${kind}/${random.pick(['raw', '%ff', '~x'])}${random.between(1, 20)}`, () =>
    make.record({ id: 'planted/raw', value: encodePlain({ format: 1, value: { by: 'w', at: 0 } }, 'msgpack') }),
  )
  const aside = new ZooKeeperLayout(path)
  const put = async (node: string, bytes: Uint8Array) => {
    await observer.mkdirp(node.slice(0, node.lastIndexOf('/')))
    await observer.create(node, fitting(bytes)).catch(unlessThere)
  }
  const batch = `batch${random.between(1, 20)}`
  if (random.next() < 0.3) {
    await put(aside.batch(batch), make.record(BATCH))
    await put(aside.batchState(batch), make.record({ sealed: true, generation: 1, endedAt: 1 }))
    await put(aside.batchOpen(batch), new Uint8Array())
    await put(aside.batchFailed(batch), new Uint8Array())
  }
  if (random.next() < 0.3)
    await put(
      `${aside.historyFolder}/${random.pick(['odd', '3-'])}${String(random.between(1, 20)).padStart(10, '0')}`,
      encodePlain([make.record(ENDED), make.record(ENDED), make.value()], 'msgpack'),
    )
  const name = encodeURIComponent(random.pick(ODD_TEXTS)) || 'empty'
  const folder = random.pick(['', '.trash/', '.cancel/', '.keys/', '.entities/', '.entities/conductor/', '.permits/'])
  await sometimes(`${folder}${name}`, () => make.record(TRASH))
}

/** The record at the root of the board, and its gate. */
export async function damageBoardNodes({ observer, path }: ZooKeeperPlace): Promise<{
  plant(make: RecordMaker): Promise<unknown>
  mend(): Promise<unknown>
}> {
  const nodes = [path, `${path}/.gate`]
  const real = await Promise.all(nodes.map(async (node) => (await observer.getData(node)).data))
  const records = real.map((data): Record<string, unknown> => JSON.parse(Buffer.from(data ?? []).toString()))
  const write = (bytes: (index: number) => Uint8Array | null) =>
    Promise.all(nodes.map((node, index) => observer.setData(node, bytes(index))))
  return {
    plant: (make) => write((index) => make.record({ ...records[index], fenceBase: '1' })),
    mend: () => write((index) => real[index] ?? null),
  }
}

/** Returns the bytes, cut to a size that a server accepts: a mutation may have made them too large. */
function fitting(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(0, MAX_NODE_BYTES)
}

function unlessThere(error: unknown): void {
  if (!(error instanceof NodeExists)) throw error
}
