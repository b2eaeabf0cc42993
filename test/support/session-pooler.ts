/**
 * A pooler of sessions for tests: a client that says goodbye leaves its backend to the next one with the same user and database. A new backend must
 * read the catalogues and compile the functions of the board, which takes longer than most tests do with it.
 *
 *     a client connects ──→ an idle backend, or a new one ──→ bytes pass in both directions
 *     the client ends the session      the backend is reset, and is idle when the reset is done
 *     the client breaks the connection the backend's connection is broken, too
 *     the backend ends                 the client's connection is broken
 *
 * Clients are told the backend's own process id, so that they can name it to the server. A reset leaves nothing of a session but what
 * the server itself has cached.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres.ts'

interface SessionPooler extends AsyncDisposable {
  readonly port: number
}

const TERMINATE = 0x58
const READY = 0x5a
/** The codes that are in the place of a protocol version. */
const SSL_REQUEST = 80_877_103
const CANCEL_REQUEST = 80_877_102

/** `DISCARD ALL` without `DISCARD PLANS`. Each statement has a request of its own: not all of them may be in one transaction. */
const RESETS = ['ROLLBACK', 'CLOSE ALL', 'DEALLOCATE ALL', 'UNLISTEN *', 'SELECT pg_advisory_unlock_all()', 'RESET ALL']
const RESET = Buffer.concat(RESETS.map(toQuery))

interface Backend {
  readonly socket: Socket
  /** The server's answer to the startup, up to the first `ReadyForQuery`: a later client gets the same. */
  welcome: Buffer
  client: Socket | undefined
}

/**
 * Starts a Postgres with a pooler in front of it: its URI leads to the pooler, its port to the server. For tests that open very many boards, and do
 * nothing to their connections.
 */
export async function startPooledPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const server = await startPostgres(options)
  const pooler = await startSessionPooler(server.port)
  const stop = async () => {
    await pooler[Symbol.asyncDispose]()
    await server.stop()
  }
  return {
    uri: server.uri.replace(`:${server.port}/`, `:${pooler.port}/`),
    port: server.port,
    version: server.version,
    get pid() {
      return server.pid
    },
    stop,
    kill: () => server.kill(),
    restart: () => server.restart(),
    [Symbol.asyncDispose]: stop,
  }
}

/** Starts a pooler in front of the server on this port of 127.0.0.1. */
async function startSessionPooler(server: number): Promise<SessionPooler> {
  const idle = new Map<string, Backend[]>()
  const sockets = new Set<Socket>()
  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    return socket
  }
  const listening = createServer((socket) => {
    serve(track(socket), { idle, open: () => track(connect({ port: server, host: '127.0.0.1' })) })
  })
  listening.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  return {
    port: (listening.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      listening.close()
      await once(listening, 'close')
    },
  }
}

interface Pool {
  /** Idle backends by the startup message of their clients. */
  readonly idle: Map<string, Backend[]>
  open(): Socket
}

/** Reads the startup of a client, and joins it with a backend. */
function serve(client: Socket, pool: Pool): void {
  let received: Buffer = Buffer.alloc(0)
  const onData = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    while (received.length >= 8 && received.length >= received.readUInt32BE(0)) {
      const startup = received.subarray(0, received.readUInt32BE(0))
      received = received.subarray(startup.length)
      const code = startup.readUInt32BE(4)
      if (code === SSL_REQUEST) {
        client.write('N')
        continue
      }
      client.off('data', onData)
      if (code === CANCEL_REQUEST) passCancel(client, startup, pool)
      else join(client, { startup, rest: received, pool })
      return
    }
  }
  client.on('data', onData)
}

function passCancel(client: Socket, request: Buffer, { open }: Pool): void {
  const server = open()
  server.on('close', () => client.destroy())
  server.end(request)
}

function join(client: Socket, { startup, rest, pool }: { startup: Buffer; rest: Buffer; pool: Pool }): void {
  const key = startup.toString('latin1')
  const used = takeIdle(key, pool)
  const backend = used ?? openBackend(startup, pool)
  backend.client = client
  if (used) client.write(backend.welcome)
  client.on('close', () => {
    if (backend.client === client) backend.socket.destroy()
  })
  let received: Buffer = Buffer.alloc(0)
  const onData = (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    let end = 0
    for (; end + 5 <= received.length; ) {
      const next = end + 1 + received.readUInt32BE(end + 1)
      if (next > received.length) break
      if (received[end] === TERMINATE) {
        if (end > 0) backend.socket.write(received.subarray(0, end))
        release(backend, { key, client, pool })
        return
      }
      end = next
    }
    if (end === 0) return
    backend.socket.write(received.subarray(0, end))
    received = received.subarray(end)
  }
  client.on('data', onData)
  if (rest.length > 0) onData(rest)
}

function openBackend(startup: Buffer, { open }: Pool): Backend {
  const socket = open()
  const backend: Backend = { socket, welcome: Buffer.alloc(0), client: undefined }
  let isWelcomed = false
  socket.write(startup)
  socket.on('close', () => backend.client?.destroy())
  socket.on('data', (chunk: Buffer) => {
    if (!isWelcomed) {
      backend.welcome = Buffer.concat([backend.welcome, chunk])
      isWelcomed = countReady(backend.welcome) > 0
    }
    backend.client?.write(chunk)
  })
  return backend
}

/** Resets the backend, and makes it idle. */
function release(backend: Backend, { key, client, pool }: { key: string; client: Socket; pool: Pool }): void {
  const { socket } = backend
  backend.client = undefined
  client.removeAllListeners('data')
  client.end()
  let received: Buffer = Buffer.alloc(0)
  const onData = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (!received.includes(RESET_DONE)) return
    socket.off('data', onData)
    if (!socket.destroyed) pool.idle.set(key, [...(pool.idle.get(key) ?? []), backend])
  }
  socket.on('data', onData)
  socket.write(RESET)
}

/** Takes an idle backend that has not ended. */
function takeIdle(key: string, { idle }: Pool): Backend | undefined {
  const backends = idle.get(key) ?? []
  for (let backend = backends.pop(); backend; backend = backends.pop()) if (!backend.socket.destroyed) return backend
  return undefined
}

/** The answer to the last request of a reset, `CommandComplete` and `ReadyForQuery` outside of a transaction. */
const RESET_DONE = Buffer.from('C\0\0\0\nRESET\0Z\0\0\0\x05I', 'latin1')

function toQuery(text: string): Buffer {
  const query = Buffer.alloc(text.length + 6)
  query[0] = 0x51
  query.writeUInt32BE(text.length + 5, 1)
  query.write(text, 5, 'latin1')
  return query
}

/** Returns the number of `ReadyForQuery` among the complete messages. */
function countReady(messages: Buffer): number {
  let count = 0
  for (let at = 0; at + 5 <= messages.length; ) {
    const end = at + 1 + messages.readUInt32BE(at + 1)
    if (end <= messages.length && messages[at] === READY) count += 1
    at = end
  }
  return count
}
