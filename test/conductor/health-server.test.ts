/** The health server against those who hold on to it: connections end, and there are only so many. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type Health, type HealthLimits, serveHealth } from '../../src/conductor/health-server.ts'

const HEALTH: Health = {
  ...{ state: 'idle', healthy: true, running: 0, slots: 1, board: 'connected', storage: 'there' },
  counts: { done: 0, failed: 0, other: 0, workedMs: 0 },
}

async function serving(limits?: HealthLimits): Promise<URL> {
  const onError = (error: unknown) => {
    throw error
  }
  const server = await serveHealth({ port: 0 }, { health: () => HEALTH, onError, ...(limits ? { limits } : {}) })
  onTestFinished(() => server[Symbol.asyncDispose]())
  return new URL(server.url)
}

/** A connection that says this, and nothing more. */
async function client({ port, hostname }: URL, text: string): Promise<Socket> {
  const socket = connect(Number(port), hostname)
  onTestFinished(() => {
    socket.destroy()
  })
  await once(socket, 'connect')
  socket.resume().write(text)
  return socket
}

test('a request that never arrives, or never ends, does not keep its connection', async () => {
  const url = await serving({ requestTimeoutMs: 50 })
  const halves = ['', 'GET /healthz HTTP/1.1\r\nHost: x\r\n', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n']
  const clients = await Promise.all(halves.map((text) => client(url, text)))
  await Promise.all(clients.map((socket) => once(socket, 'close')))
  // On a busy machine 50 ms may be too short for an honest request, too.
  await expect.poll(async () => (await fetch(new URL('/healthz', url))).status).toBe(200)
})

test('a connection more than there can be is closed, and one that ends makes room', async () => {
  const url = await serving({ maxConnections: 1 })
  const first = await client(url, '')
  await once(await client(url, ''), 'close')
  first.destroy()
  // The server notices the end in its own time: whoever asks is refused until then.
  await expect
    .poll(() =>
      fetch(new URL('/healthz', url)).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(200)
})

test('a head that is too large is refused', async () => {
  const url = await serving()
  const response = await fetch(new URL('/healthz', url), { headers: { 'x-much': 'x'.repeat(10_000) } })
  expect(response.status).toBe(431)
})

test('without limits of its own there are some', async () => {
  const url = await serving()
  const clients = await Promise.all(Array.from({ length: 101 }, () => client(url, '')))
  const closed = clients.map((socket) => once(socket, 'close').then(() => socket))
  expect(clients).toContain(await Promise.race(closed))
})

test('what has failed is logged, and its text is not sent to whoever reads the port', async () => {
  const logged: unknown[] = []
  const health = () => {
    throw new Error('connect ECONNREFUSED db.internal:5432 as jobs')
  }
  const server = await serveHealth({ port: 0 }, { health, onError: (error) => void logged.push(error) })
  onTestFinished(() => server[Symbol.asyncDispose]())
  const answer = await fetch(`${server.url}/readyz`)
  expect([answer.status, await answer.json()]).toEqual([500, { error: 'the server has failed; its log says why' }])
  expect(logged).toEqual([expect.objectContaining({ message: expect.stringContaining('db.internal') })])
})
