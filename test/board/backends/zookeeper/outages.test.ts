/** Servers that go away and come back, connections that are gone for a while, processes that start at the same moment. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import type { JobBoard } from '../../../../src/board/index.ts'
import { sleep } from '../../../../src/core/time.ts'
import { ACL, PERMISSION } from '../../../../src/zookeeper/index.ts'
import { compiled } from '../../../support/compiled.ts'
import { expireSession } from '../../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../../support/namespace.ts'
import { startProxy } from '../../../support/proxy.ts'
import { startZooKeeper } from '../../../support/zookeeper.ts'
import { usual as test, variant } from '../../../variant.ts'
import { portOf } from '../../../zookeeper/clients.ts'
import { zookeeperPlace } from '../../boards.ts'
import { nextEvent, nextSession, recordEvents, whenLost } from '../../events.ts'
import { claimed, namesOn, refresh } from '../../jobs.ts'
import { checkLimitsInOutage } from '../../outage-limits.ts'
import { checkPassingRefusal } from '../../passing-refusals.ts'
import { ProxiedBoard } from '../../proxied-board.ts'
import { checkLoopOverRestart, restartedUnderLoad } from '../../restarts.ts'

const CHILD = fileURLToPath(new URL('../../board-child.ts', import.meta.url))

/** What a process of its own said that opened the board, posted a job and claimed one. */
async function inProcess(uri: string, name: string): Promise<string> {
  const child = spawn(process.execPath, [await compiled(CHILD), uri, name], { stdio: ['ignore', 'pipe', 'inherit'] })
  return text(child.stdout)
}

describe.skipIf(!zookeeperHosts)('a board on ZooKeeper', () => {
  variant('is made once by processes that start at the same moment on a fresh path, and shared', async () => {
    const uri = `zookeeper://${zookeeperHosts}${namespace('processes')}/board`
    const names = ['one', 'two', 'three']
    const said = await Promise.all(names.map((name) => inProcess(uri, name)))
    expect(said.map((line) => line.trim()).sort()).toEqual([...names].sort())
  })

  variant('goes on by itself when its server is killed and comes back, whatever was under way', async () => {
    await using server = await startZooKeeper()
    await using place = await zookeeperPlace(server.hosts)
    await restartedUnderLoad(server, () => place.openAt(server.hosts, { parameters: '?sessionTimeout=30s' }))
    expect(await place.jobNodes()).toEqual([])
  })

  variant.each([
    ['less', '30s', ['consumed', 'consumed']],
    ['more', '4s', [expect.stringMatching(/^(lost|unknown)$/), 'consumed', 'consumed']],
  ])("one's own loop outlives a server that is away for %s than its session lasts", async (away, timeout, endings) => {
    await using server = await startZooKeeper()
    await using place = await zookeeperPlace(server.hosts)
    await using board = await place.openAt(server.hosts, { parameters: `?sessionTimeout=${timeout}` })
    expect(await checkLoopOverRestart(board, { server, away })).toEqual(endings)
  })

  variant('keeps its claims while it cannot reach its server for five seconds of a session of ten', async () => {
    await using place = await zookeeperPlace()
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using board = await place.openAt(proxy.hosts, { parameters: '?sessionTimeout=10s' })
    await using other = await place.open()
    await board.post('flow', {})
    const [claim] = await board.claimNext()
    const states: string[] = []
    board.on('state', ({ state }) => states.push(state))
    const back = nextEvent(board, 'state', ({ state }) => state === 'connected')
    await refresh(board)
    proxy.mode = 'refuse'
    proxy.resetAll()
    // It is the time itself that this is about.
    await sleep(5_000)
    expect(claim.lost.aborted).toBe(false)
    expect(await namesOn(other, { onlyUnclaimed: true })).toEqual([])
    proxy.mode = 'pass'
    await back
    expect(states).toEqual(['disconnected', 'connected'])
    await claim.consume()
    expect(claim.lost.aborted).toBe(false)
    expect(await place.jobNodes()).toEqual([])
  })

  test('its claims are lost before it is connected again, where the server gives it another session without a word', async () => {
    await using place = await zookeeperPlace()
    let isSwapping = false
    // The session's id and password of a ConnectRequest: with an id of 0 the server opens a new session.
    const withoutSession = (first: Buffer) => {
      if (isSwapping) first.fill(0, 20, 28).fill(0, 32, 48)
      return first
    }
    await using proxy = await startProxy({ port: portOf(zookeeperHosts), rewrite: withoutSession })
    await using board = await place.openAt(proxy.hosts)
    await board.post('flow', {})
    const [claim] = await board.claimNext()
    const order: string[] = []
    claim.lost.addEventListener('abort', () => order.push('the claim is lost'))
    board.on('state', ({ state }) => order.push(state))
    const back = nextEvent(board, 'state', ({ state }) => state === 'connected')
    isSwapping = true
    proxy.resetAll()
    await back
    expect(order.slice(0, order.indexOf('connected')).toSorted()).toEqual(['disconnected', 'lost', 'the claim is lost'])
  })

  test('calls keep their time limits while nothing is answered, and what was given up is in the trash when the servers are back', async () => {
    await using setup = await ProxiedBoard.set({ sessionTimeout: '60s' })
    await checkLimitsInOutage(setup)
  })

  test('an ACL that forbids claims for some time hides no job: each is claimed once it is gone, and one error is reported', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    // Locks are created beside the jobs. One change forbids them all, or permits them all: a claim that is granted in between would be the end of the
    // refusals, and the next refusal another error.
    const setACL = async (acl: typeof ACL.open) => {
      await place.observer.setACL(place.path, acl)
    }
    await checkPassingRefusal(board, async () => {
      await setACL(ACL.open.map((entry) => ({ ...entry, permissions: PERMISSION.READ + PERMISSION.ADMIN })))
      return { [Symbol.asyncDispose]: () => setACL(ACL.open) }
    })
  })

  test('its claims survive a server that is killed and comes back', async () => {
    await using server = await startZooKeeper()
    await using place = await zookeeperPlace(server.hosts)
    await using board = await place.openAt(server.hosts, { parameters: '?sessionTimeout=60s' })
    await board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
    await board.post('flow', {})
    const [claim] = await board.claimNext()
    const back = nextEvent(board, 'state', ({ state }) => state === 'connected')
    await server.restart()
    await back
    expect(await board.entities('conductor')).toHaveLength(1)
    expect(claim.lost.aborted).toBe(false)
    await claim.consume()
    expect(await place.jobNodes()).toEqual([])
  })

  test('that was away while others worked sees what they did, and reports it correctly', async () => {
    for (const end of ['the connection', 'the session'] as const) {
      await using place = await zookeeperPlace()
      await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
      await using board = await place.openAt(proxy.hosts, { parameters: '?sessionTimeout=30s' })
      await using other = await place.open()
      const names = ['stays', 'claimed', 'returned', 'consumed', 'trashed', 'lost', 'settled', 'held']
      for (const name of names) await other.post('flow', {}, { name })
      const early = new Map(
        await Promise.all(
          ['returned', 'settled', 'held'].map(async (name) => [name, await claimed(other, name)] as const),
        ),
      )
      const own = await claimed(board, 'lost')
      await refresh(board)
      const jobs = new Map<string, Awaited<ReturnType<JobBoard['find']>>>()
      for await (const job of board.jobs()) jobs.set(job.name, job)
      const ends = Promise.all(['consumed', 'trashed', 'settled'].map((name) => jobs.get(name)?.wait()))
      const session = await place.sessionOf(board)
      const history = recordEvents(board)

      const away = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
      proxy.mode = 'refuse'
      proxy.resetAll()
      await away
      await claimed(other, 'claimed')
      await early.get('returned')?.abandon()
      await (await claimed(other, 'consumed')).consume()
      await (await claimed(other, 'trashed')).trash()
      await early.get('settled')?.trash()
      await other.post('flow', {}, { name: 'new' })
      await other.post('flow', {}, { name: 'fleeting' })
      await (await claimed(other, 'fleeting')).consume()
      // Held before and held after, but by another run: what was known of it is no longer so.
      await early.get('held')?.abandon()
      const heldAgain = await claimed(other, 'held')
      const back =
        end === 'the session' ? nextSession(board) : nextEvent(board, 'state', ({ state }) => state === 'connected')
      const lost = whenLost(own)
      if (end === 'the session') await expireSession(zookeeperHosts, session)
      proxy.mode = 'pass'
      await back
      if (end === 'the session') await lost

      expect(await ends).toEqual(['COMPLETE', 'TRASHED', 'TRASHED'])
      expect(await namesOn(board)).toEqual(await namesOn(other))
      const expected = [
        'claimed claimed',
        'abandoned returned',
        'consumed consumed',
        'trashed trashed',
        'trashed settled',
        'posted new',
      ]
      if (end === 'the session') expected.push('abandoned lost')
      expect(history.sort()).toEqual(expected.sort())
      expect(own.lost.aborted).toBe(end === 'the session')

      // Its owner dies: no change of the posting tells that it is another one than was last read.
      const free = board.claimNext({ accept: ({ name }) => name === 'held' })
      await place.expire(other)
      expect((await free)[0].run).toBe(heldAgain.run + 1)
    }
  })

  variant('that is opened while the server dies and comes back is open in the end, or says why not', async () => {
    await using server = await startZooKeeper()
    await using place = await zookeeperPlace(server.hosts)
    const boards = Array.from({ length: 5 }, () => place.openAt(server.hosts))
    await server.restart()
    for (const result of await Promise.allSettled(boards)) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'JOBBOARD_NOT_CONNECTED' })
      else await result.value.close()
    }
    await using board = await place.openAt(server.hosts)
    await board.post('flow', {})
    expect(await namesOn(board)).toEqual(['flow'])
  })
})
