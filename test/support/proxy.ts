/** A TCP proxy that stands between a client and its server and does what networks do. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Lane, type Manner } from './proxy-lane.ts'

/**
 * - `pass`: as if it were not there
 * - `blackhole`: connections stay open and nothing gets through, in neither direction; new ones are taken
 * - `refuse`: new connections are reset; those there are go on
 * - `drop-requests`: nothing gets to the server, what the server says gets through
 * - `swallow-replies`: requests get through, answers do not: "it was done, and nobody knows"
 */
export type ProxyMode = 'pass' | 'blackhole' | 'refuse' | 'drop-requests' | 'swallow-replies'

export type Side = 'client' | 'server'

export interface TcpProxy extends AsyncDisposable {
  readonly hosts: string
  readonly port: number
  mode: ProxyMode
  /** How what gets through arrives, in both directions; as it is by default. */
  manner: Manner
  /** Connections that were taken so far. */
  readonly accepted: number
  /** Bytes that came from clients so far, whether they got through or not. */
  readonly received: number
  /** Resolves at the next bytes from a client. */
  nextRequest(): Promise<void>
  /** Lets nothing through on the connections that are open now, as a network that has dropped them; new ones pass. */
  freeze(): void
  /** Breaks every connection with a reset. */
  resetAll(): void
  /** The same for clients alone: in a black hole the server goes on as if they were there. */
  resetClients(): void
  /**
   * Lets so many bytes from that side through, counted from now over all connections. The connection with the byte
   * after them ends there, in the middle of a frame if need be; those to come are whole again.
   *
   * @returns resolves when the cut is made
   */
  cutAfter(bytes: number, options: { from: Side }): Promise<void>
  /** Forgets a cut that was not made yet. */
  stopCutting(): void
  close(): Promise<void>
}

export interface ProxyOptions {
  readonly port: number
  readonly host?: string
  /** Changes the first bytes of each connection. */
  readonly rewrite?: (first: Buffer) => Buffer
}

const DROPPED: Readonly<Record<Side, readonly ProxyMode[]>> = {
  client: ['blackhole', 'drop-requests'],
  server: ['blackhole', 'swallow-replies'],
}

interface Cut {
  readonly from: Side
  left: number
  readonly done: () => void
}

export async function startProxy(target: ProxyOptions): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  const frozen = new WeakSet<Socket>()
  const waiting = new Set<() => void>()
  const counts = { accepted: 0, received: 0 }
  let mode: ProxyMode = 'pass'
  let manner: Manner = {}
  let cut: Cut | undefined

  /** Hands a chunk on, unless the connection is to be cut in it. */
  const pass = (chunk: Buffer, from: Side, between: { sender: Socket; receiver: Socket; lane: Lane }) => {
    if (DROPPED[from].includes(mode) || frozen.has(between.sender)) return
    if (cut?.from !== from) return between.lane.push(chunk)
    if (chunk.length <= cut.left) {
      cut.left -= chunk.length
      return between.lane.push(chunk)
    }
    // A reset would take what was let through with it; so the receiver is told in peace.
    between.receiver.end(chunk.subarray(0, cut.left))
    between.sender.resetAndDestroy()
    cut.done()
    cut = undefined
  }

  const server = createServer((client) => {
    client.on('error', () => undefined)
    if (mode === 'refuse') {
      client.resetAndDestroy()
      return
    }
    counts.accepted++
    const upstream = connect({ host: target.host ?? '127.0.0.1', port: target.port, noDelay: true })
    const pair = [client, upstream] as const
    pairs.add(pair)
    client.setNoDelay(true)
    const lanes = { up: new Lane(upstream, () => manner), down: new Lane(client, () => manner) }
    let rewrite = target.rewrite
    client.on('data', (chunk) => {
      counts.received += chunk.length
      for (const wake of waiting) wake()
      waiting.clear()
      pass(rewrite?.(chunk) ?? chunk, 'client', { sender: client, receiver: upstream, lane: lanes.up })
      rewrite = undefined
    })
    upstream.on('data', (chunk) => {
      pass(chunk, 'server', { sender: upstream, receiver: client, lane: lanes.down })
    })
    upstream.on('error', () => undefined)
    // In a black hole not even the end of a connection gets through; one side goes on as if the other were there.
    client.on('close', () => {
      if (mode !== 'blackhole' && !frozen.has(client) && !upstream.writableEnded) upstream.destroy()
      if (upstream.destroyed) pairs.delete(pair)
    })
    upstream.on('close', () => {
      if (mode !== 'blackhole' && !frozen.has(upstream) && !client.writableEnded) client.destroy()
      if (client.destroyed) pairs.delete(pair)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const freeze = () => {
    for (const sockets of pairs) for (const socket of sockets) frozen.add(socket)
  }
  const resetAll = () => {
    for (const [client, upstream] of pairs) {
      client.resetAndDestroy()
      upstream.resetAndDestroy()
    }
  }
  const resetClients = () => {
    for (const [client] of pairs) client.resetAndDestroy()
  }
  const close = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    resetAll()
    await closed
  }
  return {
    hosts: `127.0.0.1:${port}`,
    port,
    get mode() {
      return mode
    },
    set mode(next) {
      mode = next
    },
    get manner() {
      return manner
    },
    set manner(next) {
      manner = next
    },
    get accepted() {
      return counts.accepted
    },
    get received() {
      return counts.received
    },
    nextRequest: () => new Promise((resolve) => waiting.add(resolve)),
    freeze,
    resetAll,
    resetClients,
    cutAfter: (bytes, { from }) =>
      new Promise((resolve) => {
        cut = { from, left: bytes, done: resolve }
      }),
    stopCutting: () => {
      cut = undefined
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
