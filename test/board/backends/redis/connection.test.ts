/** A connection to Redis that breaks while many commands are under way: nothing is left of them. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as driver from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { RedisConnection } from '../../../../src/board/backends/redis/store/connection.ts'
import { parseRedisLocation } from '../../../../src/board/backends/redis/store/location.ts'
import { openBoard } from '../../../../src/board/index.ts'
import { parseUri } from '../../../../src/core/uri.ts'
import { count } from '../../../support/counts.ts'
import { startRedis } from '../../../support/redis.ts'

const INFO = 'redis_version:7.2.0\r\n'
const COMMANDS = 100

/** A server that answers what a client asks at its beginning, and hangs up when it is asked to. */
async function startSilentServer() {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      if (/setname/i.test(String(chunk))) socket.write('+OK\r\n')
      if (/info/i.test(String(chunk))) socket.write(`$${INFO.length}\r\n${INFO}\r\n`)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    uri: `redis://127.0.0.1:${(server.address() as AddressInfo).port}/0`,
    hangUp: () => {
      for (const socket of sockets) socket.resetAndDestroy()
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

test('a server that hangs up while many commands are under way, again and again: each socket has few listeners for its close', async () => {
  await using server = await startSilentServer()
  const listeners = new Map<unknown, number>()
  const add = vi.spyOn(Socket.prototype, 'on')
  try {
    for (let times = 0; times < count({ test: 10, long: 1_000 }); times += 1) {
      const connection = await RedisConnection.open(driver, {
        location: await parseRedisLocation(parseUri(server.uri, 'board')),
        timeoutMs: 30_000,
        onMessage: () => undefined,
        signal: new AbortController().signal,
      })
      const commands = Array.from({ length: COMMANDS }, () => connection.command('get', 'x').catch(() => undefined))
      server.hangUp()
      await Promise.all(commands)
      await connection.broken
    }
    for (const [index, [event]] of add.mock.calls.entries()) {
      const socket = add.mock.contexts[index]
      if (String(event) === 'close') listeners.set(socket, (listeners.get(socket) ?? 0) + 1)
    }
    expect(Math.max(...listeners.values())).toBeLessThan(10)
  } finally {
    add.mockRestore()
  }
})

test('a board by a Unix socket, which others see by TCP', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-socket-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const socket = join(folder, 'redis.sock')
  await using server = await startRedis({ config: { unixsocket: socket, unixsocketperm: '700' } })
  await using here = await openBoard(`redis+unix:${socket}?db=1&prefix=sockets&timeout=2s`)
  await using there = await openBoard(`${server.uri}/1?prefix=sockets`)
  const job = await here.post('flow', {})
  const [claim] = await there.claimNext({ timeout: '20s' })
  expect(claim.job.uuid).toBe(job.uuid)
  await claim.consume()
  await job.wait({ timeout: '20s' })
  expect(job.state).toBe('COMPLETE')
})
