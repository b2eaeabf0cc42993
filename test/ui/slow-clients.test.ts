/** Clients that are slow on purpose, against the server of `jobboard ui`: each is cut off after a time, and costs little until then. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll } from 'vitest'
import { type JobBoard, openBoard } from '../../src/board/index.ts'
import { dashboard } from '../../src/ui/index.ts'
import { type DashboardServer, serveDashboard } from '../../src/ui/server.ts'
import { usual as test, variant } from '../variant.ts'

let board: JobBoard
let server: DashboardServer

beforeAll(async () => {
  board = await openBoard('memory:')
  server = await serveDashboard(dashboard({ board }), { host: '127.0.0.1', port: 0 })
})

afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await board?.close()
})

/** Connects, and sends a text a character at a time, one in each second, until the server ends the connection. */
async function sendSlowly(text: string, { first = '' }: { readonly first?: string } = {}): Promise<string> {
  const socket = await open()
  const answer = collect(socket)
  socket.write(first)
  let at = 0
  const timer = setInterval(() => {
    if (at < text.length) socket.write(text.charAt(at))
    at += 1
  }, 1_000)
  await once(socket, 'close')
  clearInterval(timer)
  return answer()
}

async function open(): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

function collect(socket: Socket): () => string {
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  return () => text
}

test.concurrent('one that sends its headers byte by byte is cut off', async ({ expect }) => {
  expect(await sendSlowly(`GET /api/v1/session HTTP/1.1\r\nHost: localhost\r\nX-Slow: ${'a'.repeat(300)}`)).toMatch(
    /^HTTP\/1\.1 408 /,
  )
})

test.concurrent('one that sends nothing is cut off', async ({ expect }) => {
  expect(await sendSlowly('')).not.toMatch(/ 200 /)
})

test.concurrent('one that sends its body byte by byte gets an error, and is cut off', async ({ expect }) => {
  const first = [
    ...['POST /api/v1/boards/main/pause HTTP/1.1', 'Host: localhost', 'Sec-Fetch-Site: same-origin'],
    ...['Content-Type: application/json', 'Content-Length: 1000', '', '{'],
  ].join('\r\n')
  expect(await sendSlowly(' '.repeat(999), { first })).toMatch(/^HTTP\/1\.1 408 .*"code":"TIMEOUT"/s)
  expect(board.paused).toBe(false)
})

variant.concurrent(
  'a thousand connections that send nothing do not keep another client from an answer',
  async ({ expect }) => {
    const waiting = await Promise.all(Array.from({ length: 1_000 }, open))
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/session`)
    expect(response.status).toBe(200)
    for (const socket of waiting) socket.destroy()
  },
)
