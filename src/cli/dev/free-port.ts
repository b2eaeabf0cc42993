/** A port on the loopback that nobody listens on. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { InvalidArgument } from '../../core/errors.ts'

/** ZooKeeper's own: what examples name. */
const DEFAULT_PORT = 2181

/** @param wanted by default the usual one, or any where that is taken. @throws InvalidArgument when somebody listens there */
export async function freePort(wanted?: number): Promise<number> {
  return wanted === undefined ? tryPort(DEFAULT_PORT).catch(() => tryPort(0)) : tryPort(wanted)
}

async function tryPort(wanted: number): Promise<number> {
  const server = createServer().listen(wanted, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (cause) {
    const code = String((cause as { code?: unknown }).code)
    const why = code === 'EADDRINUSE' ? 'somebody listens there already' : code
    throw new InvalidArgument(`--port ${wanted}: ${why}; give another, or none`, { cause })
  }
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
