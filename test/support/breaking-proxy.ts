/** A TCP proxy that breaks each of its connections while a client is sending on it. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface BreakingProxy extends AsyncDisposable {
  /** `127.0.0.1:PORT` */
  readonly hosts: string
}

/**
 * @param options.how a reset, or an orderly end, after which the client's next packet is answered with a reset
 * @param options.bytes how many bytes of the next connection's client get through before it breaks
 */
export async function startBreakingProxy(options: {
  readonly port: number
  readonly how: 'reset' | 'end'
  readonly bytes: () => number
}): Promise<BreakingProxy> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port: options.port, noDelay: true })
    let left = options.bytes()
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => undefined)
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
    upstream.on('data', (chunk: Buffer) => client.write(chunk))
    client.on('data', (chunk: Buffer) => {
      upstream.write(chunk)
      left -= chunk.length
      if (left > 0) return
      if (options.how === 'reset') client.resetAndDestroy()
      else client.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    hosts: `127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
