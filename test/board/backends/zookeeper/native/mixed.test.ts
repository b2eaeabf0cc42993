/** Boards over the C client and boards over our own on one path: no job is ever owned twice, and each goes on with the other's. */
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { Layout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'
import {
  encodeBoardRecord,
  NEW_BOARD,
  UNFINISHED_BOARD,
} from '../../../../../src/board/backends/zookeeper/store/records.ts'
import { type Claim, type JobBoard, openBoard } from '../../../../../src/board/index.ts'
import { InvalidArgument, Timeout, Unclaimable, UnsupportedCapability } from '../../../../../src/core/errors.ts'
import { OPCODE } from '../../../../../src/zookeeper/protocol/opcodes.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import {
  COMPILING_LIMIT_MS,
  ensureNativePackage,
  nativeLeftOut,
  nativePackage,
} from '../../../../support/native-package.ts'
import { recordFrames } from '../../../../support/overhearing.ts'
import { startProxy } from '../../../../support/proxy.ts'
import { portOf } from '../../../../zookeeper/clients.ts'
import { type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'
import { nextEvent, rejectionOf, whenAborted, whenLost } from '../../../events.ts'
import { all, claimed, namesOn, refresh } from '../../../jobs.ts'
import { faultyDriver } from '../faulty-driver.ts'
import { nativeBoardAt } from './boards.ts'

describe.skipIf(!zookeeperHosts || nativeLeftOut)('boards of both kinds on one path', () => {
  beforeAll(ensureNativePackage, COMPILING_LIMIT_MS)

  const JOBS = 120

  test('who want the same jobs never both own one, whatever becomes of it', async () => {
    await using place = await zookeeperPlace()
    const boards = await Promise.all([place.open(), nativeBoardAt(place), place.open(), nativeBoardAt(place)])
    const owners = new Map<string, number>()
    const runs = new Map<string, { run: number; fence: bigint }>()
    const done = new Map<string, number>()
    const faults: string[] = []
    const finished = new AbortController()
    const work = async (board: JobBoard, number: number) => {
      for await (const claim of board.claims({ signal: finished.signal })) {
        const { uuid, name } = claim.job
        if (owners.has(uuid)) faults.push(`${name} is owned by ${owners.get(uuid)} and ${number}`)
        owners.set(uuid, number)
        const before = runs.get(uuid)
        if (before && !(claim.run === before.run + 1 && claim.fence > before.fence)) faults.push(`${name}: run, fence`)
        runs.set(uuid, claim)
        await board.findOwner(claim.job)
        owners.delete(uuid)
        if (claim.run < 3 && (claim.run + Number(name)) % 2 === 0) await claim.abandon()
        else {
          done.set(name, (done.get(name) ?? 0) + 1)
          await (Number(name) % 5 === 0 ? claim.trash() : claim.consume())
        }
        if (done.size === JOBS) finished.abort()
      }
    }
    const working = boards.flatMap((board, number) => [work(board, number), work(board, number)])
    const names = Array.from({ length: JOBS }, (_, number) => `${number}`)
    await Promise.all(names.map((name, number) => boards[number % boards.length]?.post('flow', {}, { name })))
    await Promise.all(working)
    expect(faults).toEqual([])
    expect([...done.values()].every((times) => times === 1)).toBe(true)
    const [ours] = boards
    expect(await namesOn(ours)).toEqual([])
    expect(await all(ours.trashed())).toHaveLength(JOBS / 5)
    expect(await place.trashNodes()).toHaveLength(JOBS / 5)
    expect(new Set([...runs.values()].map(({ run }) => run)).size).toBeGreaterThan(1)
    await Promise.all(boards.map((board) => board.close()))
    expect(await place.jobNodes()).toEqual([])
  })

  test('between the lock and the posting of a claim over the C client no other owner gets the job', async () => {
    await using place = await zookeeperPlace()
    const driver = faultyDriver()
    await using native = await nativeBoardAt(place, { who: 'native', wrap: driver.wrap })
    await using ours = await place.open({ who: 'ours' })
    const job = await native.post('flow', {}, { name: 'job' })
    driver.arm('held', 2)
    const claiming = native.claim(job)
    await driver.struck
    const failure = await rejectionOf(ours.claim(await ours.find(job.uuid)))
    expect(failure).toBeInstanceOf(Unclaimable)
    expect(String(failure)).toContain('native')
    expect(await namesOn(ours, { onlyUnclaimed: true })).toEqual([])
    driver.letGo()
    expect((await claiming).run).toBe(1)
  })

  test('a claim over the C client that chose too long ago is refused, takes its lock away, and chooses anew', async () => {
    await using place = await zookeeperPlace()
    const driver = faultyDriver()
    await using native = await nativeBoardAt(place, { wrap: driver.wrap })
    await using ours = await place.open()
    const job = await native.post('flow', {}, { name: 'job' })
    driver.arm('held', 1)
    const claiming = native.claim(job)
    await driver.struck
    await (await ours.claim(job)).abandon()
    driver.letGo()
    const claim = await claiming
    expect(claim.run).toBe(2)
    // Lock and refused posting, lock away; lock and posting.
    expect(driver.writes).toBe(5)
    await claim.consume()
    expect(await place.jobNodes()).toEqual([])
  })

  test('what one trashes is hidden by the other, in its trash, moved there, and comes back from it', async () => {
    await using place = await zookeeperPlace()
    await using native = await nativeBoardAt(place, { who: 'native' })
    await using other = await nativeBoardAt(place)
    const failure = { name: 'TypeError', message: 'x', stack: 'at y', causes: [] }
    await native.post('flow', { n: 1 }, { name: 'marked' })
    await (await claimed(native, 'marked')).trash({ failure })
    // Nobody there can move it.
    expect(await place.trashNodes()).toEqual([])
    expect(await namesOn(other)).toEqual([])
    expect(await other.countJobs()).toBe(0)
    const [seen] = await all(other.trashed())
    expect(seen).toMatchObject({ name: 'marked', who: 'native', failure, details: { store: { n: 1 } } })

    await using ours = await place.open()
    const errors: unknown[] = []
    ours.on('error', ({ error }) => errors.push(error))
    expect(await namesOn(ours)).toEqual([])
    const [entry] = await all(ours.trashed())
    expect(entry).toMatchObject({
      uuid: seen?.uuid,
      name: 'marked',
      who: 'native',
      failure,
      attempts: [{ ended: 'failed' }],
    })
    expect(await place.trashNodes()).toHaveLength(1)
    expect(await place.jobNodes()).toEqual([])
    expect((await all(native.trashed())).map(({ name }) => name)).toEqual(['marked'])
    // As it was seen where it lay before.
    if (seen) await ours.restore(seen)
    expect((await claimed(native, 'marked')).run).toBe(2)
    expect(errors).toEqual([])
  })

  test('what is marked as trashed is in the trash, and ends a wait, also for a board that is not viewed', async () => {
    await using place = await zookeeperPlace()
    await using native = await nativeBoardAt(place, { who: 'native' })
    await using board = await place.openUnviewed()
    const [first, second] = [
      await board.post('flow', {}, { name: 'first' }),
      await board.post('flow', {}, { name: 'second' }),
    ]
    await (await claimed(native, 'first')).trash()
    expect((await all(board.trashed())).map(({ name }) => name)).toEqual(['first'])
    expect(await place.trashNodes()).toHaveLength(1)
    const ended = second.wait()
    await (await claimed(native, 'second')).trash()
    expect(await ended).toBe('TRASHED')
    expect(await first.wait()).toBe('TRASHED')
    expect(board.jobCount).toBeUndefined()
    await using opening = await place.openUnviewed()
    await native.post('flow', {}, { name: 'third' })
    await (await claimed(native, 'third')).trash()
    opening.on('trashed', () => undefined)
    expect((await all(opening.trashed())).map(({ name }) => name)).toEqual(['first', 'second', 'third'])
  })

  test('a job that is trashed over the C client is reported to those who wait for it', async () => {
    await using place = await zookeeperPlace()
    await using native = await nativeBoardAt(place)
    await using ours = await place.open()
    const job = await ours.post('flow', {}, { name: 'job' })
    const ended = job.wait({ timeout: '20s' })
    const trashed = nextEvent(ours, 'trashed')
    await (await claimed(native, 'job')).trash()
    expect(await ended).toBe('TRASHED')
    expect((await trashed).job.uuid).toBe(job.uuid)
  })

  test('what is marked as trashed is purged where it lies, and where it was moved to', async () => {
    await using place = await zookeeperPlace()
    await using native = await nativeBoardAt(place)
    for (const name of ['here', 'there']) await native.post('flow', {}, { name })
    for (const name of ['here', 'there']) await (await claimed(native, name)).trash()
    const [here, there] = await all(native.trashed())
    if (!here || !there) throw new Error('both are in the trash')
    await native.purge(here)
    expect(await place.jobNodes()).toHaveLength(1)
    await using ours = await place.open()
    expect(await all(ours.trashed())).toHaveLength(1)
    await native.purge(there)
    for (const board of [ours, native]) expect(await all(board.trashed())).toEqual([])
    expect(await place.jobNodes()).toEqual([])
  })

  test.each([
    ['resources', { resources: { exclusive: ['disk'] } }],
    ['keys', { key: 'one' }],
  ] as const)('a job with %s stays for those who can claim it', async (capability, options) => {
    await using place = await zookeeperPlace()
    await using native = await nativeBoardAt(place)
    await using ours = await place.open()
    const job = await ours.post('flow', {}, { name: 'theirs', ...options })
    const errors: unknown[] = []
    native.on('error', ({ error }) => errors.push(error))
    expect(await namesOn(native, { onlyUnclaimed: true })).toEqual(['theirs'])
    expect(await rejectionOf(native.wait({ timeout: 1 }))).toBeInstanceOf(Timeout)
    const failure = await rejectionOf(native.claim(await native.find(job.uuid)))
    expect(failure).toBeInstanceOf(UnsupportedCapability)
    expect(failure).toMatchObject({ capability })
    await ours.post('flow', {}, { name: 'anybody’s', priority: 'LOW' })
    const [claim, ...others] = await native.claimNext({ max: 2 })
    expect([claim.job.name, others]).toEqual(['anybody’s', []])
    await (await claimed(ours, 'theirs')).consume()
    expect(job.state).toBe('COMPLETE')
    expect(errors).toEqual([])
  })

  test('requests of one reach the other: to give a job up, to pause, to resume', async () => {
    await using place = await zookeeperPlace()
    const native = await nativeBoardAt(place, { who: 'native' })
    const ours = await place.open({ who: 'ours' })
    for (const [owner, asker] of [
      [native, ours],
      [ours, native],
    ] as const) {
      const job = await owner.post('flow', {}, { name: 'job' })
      const claim = await owner.claim(job)
      await asker.cancel(await asker.find(job.uuid), { reason: 'enough' })
      expect(String(await whenAborted(claim.cancelled))).toContain('enough')
      await claim.trash()
      expect((await place.witness.getChildren(`${place.path}/.cancel`)).names).toEqual([])

      await asker.pause()
      const next = await owner.post('flow', {}, { name: 'next' })
      expect(await rejectionOf(owner.claim(next))).toBeInstanceOf(Unclaimable)
      const waiting = owner.claimNext()
      await asker.resume()
      await (await waiting)[0].consume()
    }
    await Promise.all([native.close(), ours.close()])
  })

  describe('a board that is made over the C client', () => {
    const layoutOf = (place: ZooKeeperPlace) => new Layout(place.path)

    test.each(['ours', 'native'] as const)('and not finished is finished by who comes next, %s', async (kind) => {
      await using place = await zookeeperPlace()
      const { folders, gate, path } = layoutOf(place)
      // Whoever made it died behind so many of its steps.
      for (let steps = 0; steps <= folders.length; steps++) {
        await place.witness.create(path, encodeBoardRecord({ ...NEW_BOARD, ...UNFINISHED_BOARD }))
        for (const folder of folders.slice(0, steps)) await place.witness.create(folder)
        const board = await (kind === 'ours' ? place.open() : nativeBoardAt(place))
        await (await board.claim(await board.post('flow', {}))).trash()
        expect(await all(board.trashed())).toHaveLength(1)
        expect(await place.witness.exists(gate)).toBeDefined()
        expect(String((await place.witness.getData(path)).data)).not.toContain('unfinished')
        await board.close()
        await removeAll(place, path)
      }
    })

    test('is the same to both kinds', async () => {
      await using place = await zookeeperPlace()
      await using native = await nativeBoardAt(place)
      await using ours = await place.open()
      expect(ours.shared).toBe(false)
      await ours.post('flow', { at: new Date(5) }, { name: 'job' })
      expect((await claimed(native, 'job')).job.details.store).toEqual({ at: new Date(5) })
    })

    async function removeAll({ witness }: ZooKeeperPlace, path: string): Promise<void> {
      for (const name of (await witness.getChildren(path)).names)
        await removeAll({ witness } as ZooKeeperPlace, `${path}/${name}`)
      await witness.delete(path)
    }
  })

  test('a claim over the C client is lost before another owner gets the job', async () => {
    await using place = await zookeeperPlace()
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    const native = await nativeBoardAt(place, { hosts: proxy.hosts, client: { sessionTimeout: '4s' } })
    await using ours = await place.open()
    const job = await ours.post('flow', {}, { name: 'job' })
    const claim = await native.claim(job)
    const heard: string[] = []
    const lost = whenLost(claim).then(() => heard.push('lost'))
    await refresh(ours)
    const inherited = ours.claimNext().then(([taken]) => {
      heard.push('taken')
      return taken
    })
    proxy.mode = 'blackhole'
    const taken: Claim = await inherited
    await lost
    expect(heard).toEqual(['lost', 'taken'])
    expect(taken.run).toBe(claim.run + 1)
    await taken.consume()
    proxy.mode = 'pass'
    proxy.resetAll()
    await native.close()
  })

  test('an idle owner over the C client keeps its claim for longer than a session lasts', async () => {
    await using place = await zookeeperPlace()
    await using ear = await recordFrames({ port: portOf(zookeeperHosts) })
    await using native = await nativeBoardAt(place, { hosts: ear.hosts, client: { sessionTimeout: '2s' } })
    const claim = await native.claim(await native.post('flow', {}, { name: 'job' }))
    // Six proofs in a session's timeout, each with a write that the server refuses.
    for (let proofs = 0; proofs < 14; proofs++) await ear.nextAsked(OPCODE.delete)
    claim.assertHeld()
    expect(claim.lost.aborted).toBe(false)
    await claim.consume()
  })

  test('a missed change is found by the next look', async () => {
    await using place = await zookeeperPlace()
    // It is told of nothing: what it asks to watch it does not.
    const deaf = await nativeBoardAt(place, {
      scanPeriod: 20,
      wrap: (driver) =>
        new Proxy(driver, {
          get: (target, name) => {
            const value: unknown = Reflect.get(target, name, target)
            if (typeof value !== 'function') return value
            if (!['getChildren', 'getData', 'exists'].includes(String(name))) return value.bind(target)
            return (path: string) => value.call(target, path)
          },
        }),
    })
    await using ours = await place.open()
    const waiting = deaf.claimNext()
    await ours.post('flow', {}, { name: 'job' })
    const [claim] = await waiting
    await ours.cancel(await ours.find(claim.job.uuid))
    await whenAborted(claim.cancelled)
    await ours.pause()
    while (!deaf.paused) await refresh(deaf)
    await deaf.close()
  })
})

describe('client=native in a URI', () => {
  afterEach(() => {
    vi.doUnmock('zookeeper')
  })

  test.skipIf(!zookeeperHosts || nativeLeftOut)('opens a board over the package, which is loaded then', async () => {
    const zookeeper = await nativePackage()
    vi.doMock('zookeeper', () => ({ default: zookeeper }))
    await using place = await zookeeperPlace()
    const board = await place.openAt(zookeeperHosts, { parameters: '?client=native' })
    expect(board.uri).toContain('client=native')
    const job = await board.post('flow', {})
    await (await board.claim(job)).consume()
    expect(job.state).toBe('COMPLETE')
    await board.close()
  })

  test('says how to install the package where it is not there', async () => {
    const error = await rejectionOf(openBoard('zookeeper://127.0.0.1:1/demo?client=native'))
    expect(error).toBeInstanceOf(InvalidArgument)
    expect(String(error)).toContain('npm install zookeeper@7.3.0')
  })

  test.each([
    ['client=own', InvalidArgument, 'native'],
    ['client=native&encoding=json', UnsupportedCapability, 'TaskFlow'],
  ] as const)('is refused as %s', async (parameters, type, said) => {
    const error = await rejectionOf(openBoard(`zookeeper://127.0.0.1:1/demo?${parameters}`))
    expect(error).toBeInstanceOf(type)
    expect(String(error)).toContain(said)
  })

  test.skipIf(!zookeeperHosts || nativeLeftOut)('is refused on a board that is shared with TaskFlow', async () => {
    await using place = await zookeeperPlace()
    await (await place.openAt(zookeeperHosts, { parameters: '?encoding=json' })).close()
    const error = await rejectionOf(nativeBoardAt(place))
    expect(error).toBeInstanceOf(UnsupportedCapability)
    expect(String(error)).toContain('TaskFlow')
  })
})
