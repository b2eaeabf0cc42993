/** A TCP proxy that stands between a client and its server and does what networks do. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * - `pass`: as if it were not there
 * - `blackhole`: connections stay open and nothing gets through, in neither direction; new ones are taken
 * - `refuse`: new connections are reset; those there are go on
 * - `swallow-replies`: requests get through, answers do not: "it was done, and nobody knows"
 */
export type ProxyMode = 'pass' | 'blackhole' | 'refuse' | 'swallow-replies'

export interface Proxy extends AsyncDisposable {
  readonly hosts: string
  readonly port: number
  mode: ProxyMode
  /** Connections that were taken so far. */
  readonly accepted: number
  /** Bytes that came from clients so far, whether they got through or not. */
  readonly received: number
  /** Resolves at the next bytes from a client. */
  nextRequest(): Promise<void>
  /** Breaks every connection with a reset. */
  resetAll(): void
  close(): Promise<void>
}

export async function startProxy(target: { readonly port: number; readonly host?: string }): Promise<Proxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  const waiting = new Set<() => void>()
  const counts = { accepted: 0, received: 0 }
  let mode: ProxyMode = 'pass'

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
    client.on('data', (chunk) => {
      counts.received += chunk.length
      for (const wake of waiting) wake()
      waiting.clear()
      if (mode !== 'blackhole') upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (mode === 'pass' || mode === 'refuse') client.write(chunk)
    })
    upstream.on('error', () => undefined)
    client.on('close', () => {
      pairs.delete(pair)
      upstream.destroy()
    })
    // In a black hole not even the end of a connection gets through.
    upstream.on('close', () => {
      if (mode !== 'blackhole') client.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const resetAll = () => {
    for (const [client, upstream] of pairs) {
      client.resetAndDestroy()
      upstream.resetAndDestroy()
    }
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
    get accepted() {
      return counts.accepted
    },
    get received() {
      return counts.received
    },
    nextRequest: () => new Promise((resolve) => waiting.add(resolve)),
    resetAll,
    close,
    [Symbol.asyncDispose]: close,
  }
}
