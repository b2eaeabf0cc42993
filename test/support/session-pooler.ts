/**
 * A session pooler for tests: a client that ends its session leaves its server process to the next client with the same startup message. A new server
 * process must read the catalogues and compile the functions of the board, which takes longer than most tests do with it.
 *
 * | event | what the pooler does |
 * |---|---|
 * | a client connects | gives it an idle server process, or opens a new one; passes bytes in both directions |
 * | the client ends its session (`Terminate`) | resets the server process, which is idle when that is done |
 * | the client breaks its connection | breaks the connection of the server process, too |
 * | the server process ends | breaks the connection of the client |
 *
 * Clients receive the process id of their server process, so tests may end or suspend it. Where the server does not listen, a client sees a
 * connection that is closed, and not one that is refused. A request to cancel a statement is passed on, and may come too late: to the next client.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres.ts'

interface SessionPooler extends AsyncDisposable {
  readonly port: number
}

const TERMINATE = 0x58
const READY_FOR_QUERY = 0x5a
/** The codes that are in the place of a protocol version. */
const SSL_REQUEST = 80_877_103
const CANCEL_REQUEST = 80_877_102

/** `DISCARD ALL` without `DISCARD PLANS`: what the server process has compiled stays. */
const RESET_STATEMENTS = [
  'CLOSE ALL',
  'SET SESSION AUTHORIZATION DEFAULT',
  'RESET ROLE',
  'RESET ALL',
  'DEALLOCATE ALL',
  'UNLISTEN *',
  'SELECT pg_advisory_unlock_all()',
  'DISCARD SEQUENCES',
  'DISCARD TEMP',
  "SELECT 'the session was reset'",
]
/** The last answer of a reset. */
const RESET_DONE = Buffer.from('the session was reset', 'latin1')
/** A client may leave amid the messages of a statement that has failed: the server process ignores everything up to a `Sync`. */
const SYNC = Buffer.from('S\0\0\0\x04', 'latin1')
// Two requests: the statements of one are one transaction, which can only begin where the one before is over.
const RESET_REQUEST = Buffer.concat([SYNC, toQuery('ROLLBACK'), toQuery(RESET_STATEMENTS.join('; '))])

interface ServerProcess {
  readonly socket: Socket
  /** The answer to the startup, up to the first `ReadyForQuery`: a later client receives the same. */
  startupAnswer: Buffer
  client: Socket | undefined
}

/**
 * Starts a Postgres with a pooler in front of it: its URI leads to the pooler, its port to the server. For tests that open very many boards. Tests of
 * the connection itself use `startPostgres`.
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
async function startSessionPooler(serverPort: number): Promise<SessionPooler> {
  const sockets = new Set<Socket>()
  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    return socket
  }
  const pool: Pool = { idle: new Map(), open: () => track(connect({ port: serverPort, host: '127.0.0.1' })) }
  const listening = createServer((client) => readStartup(track(client), pool))
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
  /** Idle server processes by the startup message of their clients. */
  readonly idle: Map<string, ServerProcess[]>
  open(): Socket
}

/** Reads the startup message of a client, and connects it to a server process. */
function readStartup(client: Socket, pool: Pool): void {
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
      else connectToServer(client, { startup, rest: received, pool })
      return
    }
  }
  client.on('data', onData)
}

function passCancel(client: Socket, request: Buffer, { open }: Pool): void {
  const cancelling = open()
  cancelling.on('close', () => client.destroy())
  cancelling.end(request)
}

function connectToServer(client: Socket, { startup, rest, pool }: { startup: Buffer; rest: Buffer; pool: Pool }): void {
  const key = startup.toString('latin1')
  const used = takeIdle(key, pool)
  const server = used ?? openServerProcess(startup, pool)
  server.client = client
  if (used) client.write(server.startupAnswer)
  client.on('close', () => {
    if (server.client === client) server.socket.destroy()
  })
  let received: Buffer = Buffer.alloc(0)
  const onData = (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    let end = 0
    while (end + 5 <= received.length) {
      const next = end + 1 + received.readUInt32BE(end + 1)
      if (next > received.length) break
      if (received[end] === TERMINATE) {
        if (end > 0) server.socket.write(received.subarray(0, end))
        client.off('data', onData)
        client.end()
        release(server, { key, pool })
        return
      }
      end = next
    }
    if (end === 0) return
    server.socket.write(received.subarray(0, end))
    received = received.subarray(end)
  }
  client.on('data', onData)
  if (rest.length > 0) onData(rest)
}

function openServerProcess(startup: Buffer, { open }: Pool): ServerProcess {
  const socket = open()
  const server: ServerProcess = { socket, startupAnswer: Buffer.alloc(0), client: undefined }
  let isReady = false
  socket.write(startup)
  // What the server has said last must reach the client.
  socket.on('close', () => server.client?.destroySoon())
  socket.on('data', (chunk: Buffer) => {
    if (!isReady) {
      server.startupAnswer = Buffer.concat([server.startupAnswer, chunk])
      const end = findReady(server.startupAnswer)
      if (end !== undefined) server.startupAnswer = server.startupAnswer.subarray(0, end)
      isReady = end !== undefined
    }
    server.client?.write(chunk)
  })
  return server
}

/** Resets the server process, and makes it idle. */
function release(server: ServerProcess, { key, pool }: { key: string; pool: Pool }): void {
  const { socket } = server
  server.client = undefined
  let received: Buffer = Buffer.alloc(0)
  const onData = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    const answer = received.lastIndexOf(RESET_DONE)
    // The answer is a row: `CommandComplete` and `ReadyForQuery` follow.
    if (answer === -1 || received.indexOf(READY, answer) === -1) return
    socket.off('data', onData)
    pool.idle.set(key, [...(pool.idle.get(key) ?? []), server])
  }
  socket.on('data', onData)
  socket.write(RESET_REQUEST)
}

/** `ReadyForQuery` outside of a transaction. */
const READY = Buffer.from('Z\0\0\0\x05I', 'latin1')

/** Takes an idle server process that has not ended. */
function takeIdle(key: string, { idle }: Pool): ServerProcess | undefined {
  const servers = idle.get(key) ?? []
  for (let server = servers.pop(); server; server = servers.pop())
    if (server.socket.readyState === 'open') return server
  return undefined
}

function toQuery(text: string): Buffer {
  const query = Buffer.alloc(text.length + 6)
  query[0] = 0x51
  query.writeUInt32BE(text.length + 5, 1)
  query.write(text, 5, 'latin1')
  return query
}

/** Returns the end of the first `ReadyForQuery`. */
function findReady(messages: Buffer): number | undefined {
  for (let at = 0; at + 5 <= messages.length; ) {
    const end = at + 1 + messages.readUInt32BE(at + 1)
    if (end > messages.length) return undefined
    if (messages[at] === READY_FOR_QUERY) return end
    at = end
  }
  return undefined
}
