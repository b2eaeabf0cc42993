/** The choice of a free port on the loopback interface. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { InvalidArgument } from '../../core/errors.ts'

/** ZooKeeper's default port, used in the examples. */
const DEFAULT_PORT = 2181

/**
 * Returns a port that is free.
 *
 * @param wanted by default the usual one, or any free one if that is in use
 * @throws InvalidArgument if the wanted port is in use
 */
export async function freePort(wanted?: number): Promise<number> {
  return wanted === undefined ? tryPort(DEFAULT_PORT).catch(() => tryPort(0)) : tryPort(wanted)
}

async function tryPort(wanted: number): Promise<number> {
  const server = createServer().listen(wanted, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (cause) {
    const code = String((cause as { code?: unknown }).code)
    const why = code === 'EADDRINUSE' ? 'the port is in use' : code
    throw new InvalidArgument(`--port ${wanted}: ${why}; give another, or none`, { cause })
  }
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
