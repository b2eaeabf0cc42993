/** The HTTP server of `jobboard ui`. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InvalidArgument } from '../core/errors.ts'
import type { Dashboard } from './dashboard.ts'

/** The times within which a client must send the headers, and the whole request. */
const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
const KEEP_ALIVE_MS = 10_000
/** The time after which an idle connection is ended. A stream sends something every 15 s, so this ends one whose reader reads nothing. */
const STALLED_MS = 120_000
const MAX_CONNECTIONS = 2_000
const MAX_HEADER_BYTES = 32_768

export interface DashboardServer extends AsyncDisposable {
  readonly port: number
}

/** Serves a dashboard, which is closed with the server. @throws InvalidArgument for an address that cannot be used */
export async function serveDashboard(
  dashboard: Dashboard,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<DashboardServer> {
  const times = { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS, keepAliveTimeout: KEEP_ALIVE_MS }
  const server = createServer(
    { ...times, maxHeaderSize: MAX_HEADER_BYTES, connectionsCheckingInterval: 5_000 },
    dashboard.node,
  )
  server.timeout = STALLED_MS
  server.maxConnections = MAX_CONNECTIONS
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'the port is in use; give another with --port, or 0 for a free one' : code
    throw new InvalidArgument(`cannot listen on ${host} port ${port}: ${why}`, { cause })
  }
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      await dashboard.close()
      server.closeAllConnections()
      await closed
    },
  }
}
