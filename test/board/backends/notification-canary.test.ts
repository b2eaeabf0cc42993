/** Notifications of the server that do not arrive are noticed, on real servers behind a proxy that drops them; late ones are no alarm. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import { NotificationCanary } from '../../../src/board/backends/notification-canary.ts'
import type { HealthEvent } from '../../../src/board/contract/index.ts'
import type { JobBoard } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { startPostgres } from '../../support/postgres.ts'
import { startRedis } from '../../support/redis.ts'
import { usual as test, variant } from '../../variant.ts'
import { nextEvent } from '../events.ts'
import { postgresPlaceOn } from './postgres/boards.ts'
import { redisPlace } from './redis/places.ts'

describe('an announcement', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function watched() {
    const events: HealthEvent[] = []
    return {
      events,
      canary: new NotificationCanary({ period: 10_000, sink: { health: (event) => events.push(event) } }),
    }
  }

  test('is missed if none has come for a period after a change was read', () => {
    const { events, canary } = watched()
    canary.onRead()
    vi.advanceTimersByTime(9_999)
    canary.check()
    expect(events).toEqual([])
    vi.advanceTimersByTime(1)
    canary.check()
    canary.check()
    canary.onAnnounced()
    expect(events).toEqual(['notificationMissed', 'notificationsArrive'])
  })

  test.each(['onAnnounced', 'restart'] as const)(
    'is not missed after %s, even if the change was read before',
    (call) => {
      const { events, canary } = watched()
      canary.onRead()
      vi.advanceTimersByTime(9_999)
      canary[call]()
      vi.advanceTimersByTime(10_000)
      canary.check()
      expect(events).toEqual([])
    },
  )
})

/** Drops what the filter of a connection leaves out of the server's bytes. */
async function startFilter({ port, keep }: { readonly port: number; readonly keep: () => (chunk: Buffer) => Buffer }) {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port, noDelay: true })
    const filter = keep()
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => undefined)
      from.on('close', () => to.destroy())
    }
    client.on('data', (chunk: Buffer) => upstream.write(chunk))
    upstream.on('data', (chunk: Buffer) => client.write(filter(chunk)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Whether notifications are dropped at the moment. */
let drops = true
beforeEach(() => {
  drops = true
})

/** Leaves out the frames of Postgres that are notifications. */
function withoutNotifications(): (chunk: Buffer) => Buffer {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    const kept: Buffer[] = []
    while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
      const frame = rest.subarray(0, rest.readUInt32BE(1) + 1)
      rest = rest.subarray(frame.length)
      if (!drops || frame.toString('latin1', 0, 1) !== 'A') kept.push(frame)
    }
    return Buffer.concat(kept)
  }
}

/** Leaves out the messages of Redis' channels. */
function withoutMessages(): (chunk: Buffer) => Buffer {
  return (chunk) => (drops && chunk.toString('latin1').startsWith('*3\r\n$7\r\nmessage\r\n') ? Buffer.alloc(0) : chunk)
}

/** Posts a job on the other board whenever the board has seen the last one, so that something changes in each period. */
async function expectToNotice(board: JobBoard, other: JobBoard): Promise<void> {
  const post = () => other.post('flow', {}).catch(() => undefined)
  const off = board.on('posted', () => void post())
  const missing = nextEvent(board, 'notifications')
  await post()
  expect(await missing).toEqual({ state: 'missing' })
  expect(boardInternals(board).healthCounters).toMatchObject({ missedNotifications: 3, areNotificationsMissing: true })
  const arriving = nextEvent(board, 'notifications')
  drops = false
  await post()
  expect(await arriving).toEqual({ state: 'arriving' })
  expect(boardInternals(board).healthCounters.areNotificationsMissing).toBe(false)
  off()
}

test('a board on Postgres notices that its notifications are dropped, and that they come again', async () => {
  await using server = await startPostgres()
  await using place = await postgresPlaceOn(server.uri)
  await using proxy = await startFilter({ port: Number(new URL(server.uri).port), keep: withoutNotifications })
  await using board = await place.openAt(proxy.port, { parameters: '&scanPeriod=100ms' })
  await using other = await place.open()
  await expectToNotice(board, other)
})

variant('a board on Redis notices that its messages are dropped, and that they come again', async () => {
  await using server = await startRedis()
  await using place = await redisPlace(server)
  await using proxy = await startFilter({ port: server.port, keep: withoutMessages })
  await using board = await place.openAt(`127.0.0.1:${proxy.port}`, { parameters: '&ttl=3s' })
  await using other = await place.open()
  await expectToNotice(board, other)
})
