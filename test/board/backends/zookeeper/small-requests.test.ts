/** A server whose `jute.maxbuffer` is smaller than clients believe: it closes the connection at a larger request. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { boardInternals } from '../../../../src/board/internal.ts'
import { PayloadTooLarge } from '../../../../src/core/errors.ts'
import { input, linear, openBoard, openPersistence, startConductor, task } from '../../../../src/index.ts'
import { RequestTooLarge } from '../../../../src/zookeeper/index.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { freePort } from '../../../support/ports.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../support/zookeeper.ts'
import { usual as test, variant } from '../../../variant.ts'
import { connected } from '../../../zookeeper/clients.ts'
import { zookeeperPlace } from '../../boards.ts'
import { nextEvent, rejectionOf } from '../../events.ts'

const LIMIT = 100_000

describe.skipIf(!zookeeperHosts)(`a server with jute.maxbuffer=${LIMIT}`, () => {
  let server: ZooKeeperServer
  beforeAll(async () => {
    server = await startZooKeeper({ java: [`-Djute.maxbuffer=${LIMIT}`] })
  })
  afterAll(() => server?.stop())

  test('is measured by the first request that is too large; the next ones break no connection', async () => {
    await using client = await connected({ hosts: server.hosts })
    await client.create('/measured', new Uint8Array(90_000))
    const first = await rejectionOf(client.setData('/measured', new Uint8Array(LIMIT)))
    expect(first).toMatchObject({ outcome: 'unknown' })
    const session = client.session?.id
    const second = await rejectionOf(client.setData('/measured', new Uint8Array(LIMIT)))
    expect(second).toBeInstanceOf(RequestTooLarge)
    expect(String(second)).toMatch(
      /100\d\d\d bytes exceed the 9\d\d\d\d that the server accepts.*jute\.maxbuffer.*maxRequestBytes/,
    )
    expect(client.maxRequestBytes).toBeGreaterThan(LIMIT - 1_100)
    expect(client.maxRequestBytes).toBeLessThanOrEqual(LIMIT)
    expect(client.counters().connections).toBe(2)
    expect(session).toBe(client.session?.id)
  })

  test('of a smaller request with a larger limit elsewhere nothing is concluded: a connection that breaks measures nothing', async () => {
    await using own = await startZooKeeper()
    await using client = await connected({ hosts: own.hosts })
    const writing = rejectionOf(client.create('/large', new Uint8Array(900_000)).then(() => client.sync('/')))
    await own.restart()
    await writing
    await client.sync('/')
    expect(client.maxRequestBytes).toBe(1_048_575)
  })

  test('refuses a job that is too large in one clear line, and keeps sessions, claims and the jobs beside it', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await place.open()
    const held = await board.claim(await board.post('flow', {}))
    const session = await place.sessionOf(board)
    const posting = rejectionOf(board.post('flow', { text: 'x'.repeat(300_000) }))
    const small = await board.post('flow', {})
    const failure = await posting
    expect(failure).toBeInstanceOf(PayloadTooLarge)
    expect(String(failure)).toMatch(/300\d\d\d bytes.*\d{5} .*jute\.maxbuffer.*maxRequestBytes/)
    expect(await rejectionOf(board.post('flow', { text: 'x'.repeat(300_000) }))).toBeInstanceOf(PayloadTooLarge)
    await (await board.claim(small)).consume()
    expect(await place.sessionOf(board)).toBe(session)
    expect(held.lost.aborted).toBe(false)
    await held.consume()
  })

  variant('takes 2,000 small jobs at once, and the largest job that it takes can be claimed and trashed', async () => {
    await using place = await zookeeperPlace(server.hosts)
    await using board = await place.open()
    const held = await board.claim(await board.post('flow', {}))
    const posts = Array.from({ length: 2_000 }, (_, n) => ({ flow: 'flow', store: { n, text: 'x'.repeat(500) } }))
    expect(await board.postMany(posts)).toHaveLength(2_000)
    const largest = await board.post('flow', { text: 'x'.repeat(45_000) })
    await (await board.claim(largest)).trash({ reason: 'y'.repeat(10_000) })
    await held.consume()
  })

  test('fails a flow whose result is too large for the logbook, with the reason', async () => {
    const make = task('make', { provides: 'large', execute: () => 'x'.repeat(300_000) })
    const flow = linear('large-result', input<{ n: number }>(), make)
    await using board = await openBoard(`zookeeper://${server.hosts}/large-result`)
    await using _conductor = await startConductor({
      board,
      persistence: `zookeeper://${server.hosts}/large-result-logbooks`,
      flows: [flow],
    })
    const job = await board.post(flow, { n: 1 }, { maxAttempts: 1 })
    expect(await job.wait()).toBe('TRASHED')
    expect(String((await board.findTrashed(job.uuid))?.reason)).toContain('jute.maxbuffer')
  })

  test.each([
    ['a board', (uri: string) => openBoard(uri)],
    ['logbooks', (uri: string) => openPersistence(uri)],
  ])('the URI of %s names the limit', async (what, open) => {
    const uri = (bytes: string) => `zookeeper://${server.hosts}/named-${what.length}?maxRequestBytes=${bytes}`
    for (const bytes of ['0', '65535', '1e6', '100kB', '9999999999', ''])
      expect(String(await rejectionOf(open(uri(bytes))))).toContain('maxRequestBytes must be a number of bytes')
    await using opened = await open(uri(String(LIMIT)))
    if (!('post' in opened)) return
    const failure = await rejectionOf(opened.post('flow', { text: 'x'.repeat(60_000) }))
    expect(String(failure)).toMatch(
      /60\d\d\d bytes, at most 46875 are allowed on this board \(maxRequestBytes; the servers' jute/,
    )
  })
})

variant.skipIf(!zookeeperHosts)(
  'a job that was too large for the server is claimed once the server accepts it',
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'jobboard-limit-'))
    const port = await freePort()
    // A server reads its own files with a limit of their own, so that it can start with the large job.
    const lowered = [`-Djute.maxbuffer=${LIMIT}`, '-Dzookeeper.jute.maxbuffer.extrasize=4000000']
    try {
      await using first = await startZooKeeper({ port, dataDir })
      await using place = await zookeeperPlace(first.hosts)
      await using board = await place.openAt(first.hosts, { parameters: '?sessionTimeout=30s' })
      const large = await board.post('flow', { text: 'x'.repeat(300_000) })
      await first.kill()
      await using second = await startZooKeeper({ port, dataDir, java: lowered })
      const reported = nextEvent(board, 'error')
      const claiming = board.claimNext()
      expect((await reported).error).toBeInstanceOf(PayloadTooLarge)
      // The connection that broke is made again: the view is read again, and the job is refused once more.
      await expect.poll(() => board.waitingFor(large), { timeout: 60_000 }).toMatchObject({ kind: 'refusal' })
      // The board does not rest: the next job is claimed at once.
      await board.post('flow', {}, { name: 'small' })
      const [small] = await claiming
      expect(small?.job.name).toBe('small')
      expect(boardInternals(board).claimFault).toBeUndefined()
      await second.kill()
      await first.restart()
      const [claim] = await board.claimNext()
      expect(claim?.job.uuid).toBe(large.uuid)
      await claim?.consume()
      await small?.consume()
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  },
)
