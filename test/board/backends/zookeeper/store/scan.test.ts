/** What watches do not tell is found all the same, and an idle board asks for nothing. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { JobBoard } from '../../../../../src/board/api/job-board.ts'
import { ZooKeeperBackend } from '../../../../../src/board/backends/zookeeper/backend.ts'
import { ZooKeeperLayout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'
import type { ZooKeeperBackendOptions } from '../../../../../src/board/backends/zookeeper/store/options.ts'
import { boardInternals } from '../../../../../src/board/internal.ts'
import { OPCODE } from '../../../../../src/zookeeper/protocol/opcodes.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { type FrameRecorder, recordFrames } from '../../../../support/overhearing.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../support/zookeeper.ts'
import { usual as test, variant } from '../../../../variant.ts'
import { portOf } from '../../../../zookeeper/clients.ts'
import { type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'
import { nextEvent, whenAborted } from '../../../events.ts'
import { claimed, namesOn, refresh } from '../../../jobs.ts'
import { overrideRole } from '../../../override-role.ts'
import { BareBackend, boardAt } from '../bare-backends.ts'

/** Does something before it reads postings. */
class SlowReader extends ZooKeeperBackend {
  beforeRead: (() => Promise<void>) | undefined

  constructor(options: ZooKeeperBackendOptions) {
    super(options)
    overrideRole(this, 'jobs', (jobs) => ({
      read: async (ids) => {
        await this.beforeRead?.()
        return jobs.read(ids)
      },
    }))
  }
}

describe.skipIf(!zookeeperHosts)('a change whose event was lost', () => {
  interface Setup {
    readonly recorder: FrameRecorder
    readonly place: ZooKeeperPlace
    /** A board that receives no watch events while the recorder drops them. */
    readonly board: JobBoard
    readonly other: JobBoard
  }

  async function among(work: (setup: Setup) => Promise<void>): Promise<void> {
    await using place = await zookeeperPlace()
    await using recorder = await recordFrames({ port: portOf(zookeeperHosts) })
    await using board = await boardAt(place, { hosts: recorder.hosts, scanPeriod: '20ms' })
    await using other = await place.open()
    await work({ recorder, place, board, other })
    expect(recorder.missed).toBeGreaterThan(0)
  }

  test('a posting, a claim, a return and an end are found by the next scan', async () => {
    await among(async ({ recorder, board, other }) => {
      for (const name of ['kept', 'consumed', 'trashed']) await other.post('flow', {}, { name })
      await refresh(board)
      recorder.dropsWatchEvents = true
      const posted = nextEvent(board, 'posted')
      await other.post('flow', {}, { name: 'new' })
      expect((await found(board, posted)).job.name).toBe('new')

      const taken = nextEvent(board, 'claimed')
      const claim = await claimed(other, 'kept')
      expect((await found(board, taken)).job.name).toBe('kept')
      const free = board.claimNext({ accept: ({ name }) => name === 'kept' })
      await claim.abandon()
      expect((await found(board, free))[0].run).toBe(2)

      const [consumed, trashed] = [nextEvent(board, 'consumed'), nextEvent(board, 'trashed')]
      await (await claimed(other, 'consumed')).consume()
      await (await claimed(other, 'trashed')).trash()
      expect((await found(board, consumed)).job.name).toBe('consumed')
      expect((await found(board, trashed)).job.name).toBe('trashed')
      expect(await namesOn(board)).toEqual(['kept', 'new'])
    })
  })

  test('a job that is trashed between a listing and the read of its posting was not consumed', async () => {
    await using place = await zookeeperPlace()
    await using recorder = await recordFrames({ port: portOf(zookeeperHosts) })
    const hosts = recorder.hosts
    // Longer than what happens before the read takes: a second listing would say how the job ended.
    const backend = new SlowReader({
      uri: place.uri,
      hosts,
      layout: new ZooKeeperLayout(place.path),
      scanPeriod: '500ms',
    })
    await using board = new JobBoard(backend)
    await boardInternals(board).open()
    await board.view()
    await using other = await place.open()
    await other.post('flow', {}, { name: 'doomed' })
    await refresh(board)
    recorder.dropsWatchEvents = true
    const ended = Promise.race(
      (['trashed', 'consumed'] as const).map((kind) => nextEvent(board, kind).then(() => kind)),
    )
    // The scan lists the board for this one, and reads what is listed.
    backend.beforeRead = async () => {
      backend.beforeRead = undefined
      await (await claimed(other, 'doomed')).trash()
    }
    await other.post('flow', {}, { name: 'new' })
    expect(await found(board, ended)).toBe('trashed')
  })

  test('what others asked for is found too: a cancellation, a pause, a resumption', async () => {
    await among(async ({ recorder, board, other }) => {
      const job = await board.post('flow', {})
      const [claim] = await board.claimNext()
      await refresh(other)
      recorder.dropsWatchEvents = true
      await other.cancel(job, { reason: 'enough' })
      expect(String(await found(board, whenAborted(claim.cancelled)))).toContain('enough')
      await claim.trash()

      await other.pause()
      while (!board.paused) await refresh(board)
      const waiting = board.claimNext()
      await other.post('flow', {}, { name: 'later' })
      await other.resume()
      expect((await found(board, waiting))[0].job.name).toBe('later')
    })
  })
})

/** Answers tell a board that something has happened on the server; else it hears so from the next ping. */
async function found<T>(board: JobBoard, wanted: Promise<T>): Promise<T> {
  let there = false
  void wanted.finally(() => {
    there = true
  })
  while (!there) await refresh(board)
  return wanted
}

describe.skipIf(!zookeeperHosts)('an idle board', () => {
  let server: ZooKeeperServer

  beforeAll(async () => {
    server = await startZooKeeper()
  })

  afterAll(async () => {
    await server.stop()
  })

  test('asks for nothing but the answer to pings, however often it is to scan; else it looks once', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using recorder = await recordFrames({ port: server.port })
    await using board = await boardAt(place, { hosts: recorder.hosts, scanPeriod: '5ms', sessionTimeout: '1s' })
    await board.post('flow', {}, { delay: '1h' })
    await refresh(board)
    // What was done before is looked at once, before the second ping at the latest.
    for (let ping = 0; ping < 2; ping++) await recorder.nextAsked(OPCODE.ping)
    const from = recorder.asked.length
    for (let ping = 0; ping < 3; ping++) await recorder.nextAsked(OPCODE.ping)
    expect(new Set(recorder.asked.slice(from))).toEqual(new Set([OPCODE.ping]))

    // Something happens elsewhere on the server: one look, and all is as it was.
    const looked = recorder.nextAsked(OPCODE.multiRead)
    await place.observer.create(`${place.path}-elsewhere`)
    await looked
    const after = recorder.asked.length
    for (let ping = 0; ping < 2; ping++) await recorder.nextAsked(OPCODE.ping)
    expect(recorder.asked.slice(after).filter((opcode) => opcode !== OPCODE.ping)).toEqual([])
  })

  test('sweeps what the last change left behind, and then asks for nothing', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using recorder = await recordFrames({ port: server.port })
    await using board = await boardAt(place, { hosts: recorder.hosts, scanPeriod: '5ms', sessionTimeout: '1s' })
    await refresh(board)
    // As a board leaves it that dies while its job ends.
    const orphan = `${place.path}/.cancel/job0000000042`
    await place.observer.create(orphan)
    const swept = new Promise((resolve) => place.observer.exists(orphan, { watch: resolve }))
    await swept
    for (let ping = 0; ping < 2; ping++) await recorder.nextAsked(OPCODE.ping)
    const from = recorder.asked.length
    for (let ping = 0; ping < 2; ping++) await recorder.nextAsked(OPCODE.ping)
    expect(new Set(recorder.asked.slice(from))).toEqual(new Set([OPCODE.ping]))
  })

  variant('that is scanned in the middle of changes is not listed again for them', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using bare = await BareBackend.open(place, { scanPeriod: '1ms' })
    await using other = await place.open()
    const gaps = bare.gaps
    const life = async (name: string) => {
      const job = await other.post('flow', {}, { name })
      const claim = await other.claim(job)
      if (Number(name) % 3) await claim.consume()
      else await other.cancel(job).then(() => claim.trash())
    }
    for (let round = 0; round < 30; round++) {
      await Promise.all(Array.from({ length: 5 }, (_, number) => life(`${round * 5 + number}`)))
    }
    await bare.backend.changes.barrier()
    expect(bare.changes.filter(({ kind }) => kind === 'gone')).toHaveLength(150)
    expect(bare.gaps).toBe(gaps)
  })
})
