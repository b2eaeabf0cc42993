/**
 * The official C client (the package `zookeeper`) as an observer that shares no code with ours: it reads what boards write, sees which znodes are
 * ephemeral, takes a lock that boards must respect, and posts a job that they run.
 */
import { pack, unpack } from 'msgpackr'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Unclaimable } from '../../../../src/core/errors.ts'
import { newUuid } from '../../../../src/core/uuid.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { COMPILING_LIMIT_MS, nativeLeftOut, nativePackage } from '../../../support/native-package.ts'
import { jobIdFor, type ZooKeeperPlace, zookeeperPlace } from '../../boards.ts'
import { rejectionOf } from '../../events.ts'
import { refresh } from '../../jobs.ts'

const ANY_VERSION = -1
/** The flags of the protocol. */
const EPHEMERAL = 1
const SEQUENTIAL = 2

/** The part of the package that is used here. */
interface CClient {
  init(options: object): void
  on(event: 'connect', listener: () => void): void
  close(): void
  get(path: string, watch: boolean): Promise<[stat: CStat, data: Buffer | null]>
  get_children(path: string, watch: boolean): Promise<string[]>
  create(path: string, data: Uint8Array, flags: number): Promise<string>
  delete_(path: string, version: number): Promise<unknown>
  sync(path: string): Promise<unknown>
}

interface CStat {
  readonly version: number
  readonly dataLength: number
  readonly numChildren: number
  /** The number of the session in hexadecimal digits; 0 for a znode that is not ephemeral. */
  readonly ephemeralOwner: string
}

interface SeenNode {
  readonly path: string
  readonly stat: CStat
  readonly data: Buffer | null
}

describe.skipIf(!zookeeperHosts || nativeLeftOut)('the C client beside a board', () => {
  let observer: CClient

  beforeAll(async () => {
    const Package = (await nativePackage()) as new (options: object) => CClient
    observer = new Package({
      connect: zookeeperHosts,
      timeout: 10_000,
      debug_level: 0,
      host_order_deterministic: false,
    })
    const ready = new Promise<void>((resolve) => observer.on('connect', resolve))
    observer.init({})
    await ready
  }, COMPILING_LIMIT_MS)

  afterAll(() => observer?.close())

  /** Returns the znode and everything below it, as the C client reads it. */
  async function readTree(path: string): Promise<SeenNode[]> {
    const [stat, data] = await observer.get(path, false)
    const names = await observer.get_children(path, false)
    const below = await Promise.all(names.map((name) => readTree(`${path}/${name}`)))
    return [{ path, stat, data }, ...below.flat()]
  }

  /** Returns the trees of the board and of its sessions folder. */
  async function readBoard({ path }: Pick<ZooKeeperPlace, 'path'>): Promise<SeenNode[]> {
    await observer.sync(path)
    const cut = path.lastIndexOf('/')
    const trees = await Promise.all([
      readTree(path),
      readTree(`${path.slice(0, cut)}/.${path.slice(cut + 1)}-sessions`),
    ])
    return trees.flat()
  }

  test('reads every kind of znode that a board writes, and the same bytes as our client', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open({ who: 'ada' })
    await using _entity = await board.registerEntity({ kind: 'worker', name: 'w1', metadata: { pid: 7 } })
    await board.limits.set('api', { concurrency: 2 })
    const batch = await board.batch({ name: 'import' })
    const job = await batch.post(
      'work',
      { n: 1 },
      { name: 'claimed', key: 'k1', limits: ['api'], resources: { exclusive: ['disk'], shared: ['net'] } },
    )
    const later = await board.post('work', {}, { name: 'later', after: [job] })
    const doomed = await board.post('work', {}, { name: 'doomed' })
    const gone = await board.post('work', {}, { name: 'gone' })
    await (await board.claim(gone)).consume()
    await (await board.claim(doomed)).trash({ reason: 'it broke' })
    await using claim = await board.claim(job)
    await board.cancel(job, { reason: 'not needed' })
    const session = await place.sessionOf(board)

    const seen = await readBoard(place)
    const [id, sessions] = [jobIdFor(job), toSessionsFolder(place)]
    const nodeAt = (path: string | RegExp) => {
      const node = seen.find((each) => (typeof path === 'string' ? each.path === path : path.test(each.path)))
      if (!node) throw new Error(`no znode ${path} among ${seen.map((each) => each.path).join('\n')}`)
      return node
    }
    const bytesAt = (path: string) => nodeAt(`${place.path}${path}`).data ?? Buffer.alloc(0)
    const fieldsAt = (path: string) => unpack(bytesAt(path)) as unknown
    const jsonAt = (path: string) => JSON.parse(String(bytesAt(path))) as unknown
    // 64 bits with a sign, which the package prints without.
    const ownerOf = (path: string | RegExp) => BigInt.asIntN(64, BigInt(`0x${nodeAt(path).stat.ephemeralOwner}`))

    expect(jsonAt('')).toMatchObject({ format: 1, encoding: 'msgpack' })
    expect(jsonAt('/.gate')).toMatchObject({ paused: false, fenceBase: expect.any(String) })
    expect(fieldsAt(`/${id}`)).toMatchObject({ uuid: job.uuid, name: 'claimed' })
    expect(fieldsAt(`/${id}.lock`)).toEqual({ owner: 'ada' })
    expect(fieldsAt(`/.trash/${jobIdFor(doomed)}`)).toMatchObject({ who: 'ada', reason: 'it broke' })
    expect(fieldsAt('/.entities/worker/w1')).toMatchObject({ kind: 'worker', name: 'w1', metadata: { pid: 7 } })
    expect(fieldsAt('/.keys/k1')).toMatchObject({ uuid: job.uuid })
    expect(fieldsAt(`/.cancel/${id}`)).toMatchObject({ who: 'ada', reason: 'not needed' })
    const { value } = fieldsAt('/.records/limit/api') as { readonly value: Uint8Array }
    expect(unpack(value)).toMatchObject({ value: { concurrency: 2 } })
    for (const path of [
      `${place.path}/.waits/${jobIdFor(later)}`,
      new RegExp(`^${sessions}/\\.history/.`),
      new RegExp(`^${sessions}/\\.batches/.`),
    ])
      expect([path, ownerOf(path)]).toEqual([path, 0n])
    for (const path of [
      `${place.path}/${id}.lock`,
      `${place.path}/.entities/worker/w1`,
      `${place.path}/.permits/disk/x`,
      `${place.path}/.permits/net/s-${id}`,
      new RegExp(`^${sessions}/\\.limits/api/\\d+$`),
    ])
      expect([path, ownerOf(path)]).toEqual([path, session])
    expect(ownerOf(`${place.path}/${id}`)).toBe(0n)

    for (const { path, stat, data } of seen) {
      const ours = await place.observer.getData(path)
      expect([path, toHex(ours.data)]).toEqual([path, toHex(data)])
      expect(ours.stat).toMatchObject({ version: stat.version, dataLength: stat.dataLength })
    }
    await claim.abandon()
  })

  test('a lock that it has created by hand is a claim, until it deletes it', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const job = await board.post('work', {})
    const lock = await observer.create(`${place.path}/${jobIdFor(job)}.lock`, pack({ owner: 'a person' }), EPHEMERAL)
    await refresh(board)
    expect(job.state).toBe('CLAIMED')
    const refusal = await rejectionOf(board.claim(job))
    expect(refusal).toBeInstanceOf(Unclaimable)
    expect(String(refusal)).toContain('a person')
    await observer.delete_(lock, ANY_VERSION)
    await refresh(board)
    await (await board.claim(job)).consume()
    expect(job.state).toBe('COMPLETE')
  })

  test('a job that it has posted is run', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const model = await board.post('work', { n: 1 }, { name: 'model' })
    const [, bytes] = await observer.get(`${place.path}/${jobIdFor(model)}`, false)
    const uuid = newUuid()
    const posting = { ...(unpack(bytes ?? Buffer.alloc(0)) as object), uuid, name: 'by hand' }
    await observer.create(`${place.path}/job`, pack(posting), SEQUENTIAL)
    await refresh(board)
    const claim = await board.claim(await board.find(uuid))
    expect(claim.job).toMatchObject({ uuid, name: 'by hand', details: { store: { n: 1 } } })
    await claim.consume()
    await expect.poll(async () => (await place.jobNodes()).length).toBe(1)
  })
})

/** Returns the folder beside the board that has what its tree is not to have. */
function toSessionsFolder({ path }: Pick<ZooKeeperPlace, 'path'>): string {
  const cut = path.lastIndexOf('/')
  return `${path.slice(0, cut)}/.${path.slice(cut + 1)}-sessions`
}

function toHex(data: Uint8Array | null): string {
  return Buffer.from(data ?? []).toString('hex')
}
