/**
 * Answers whoever asks over HTTP how a conductor is doing: an orchestrator's probes, a load balancer, a person with curl.
 *
 * - `/healthz`: 200 as long as the conductor has not stopped. An outage of its servers is survived, not cured by a restart.
 * - `/readyz`: 200 while it can claim; 503 while it cannot, be it paused, stopping, or its servers away.
 *
 * Both answer with the same JSON, which names no job and no place.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { InvalidArgument } from '../core/errors.ts'

export interface HealthAddress {
  /** 0 for any that is free. */
  readonly port: number
  /** Which interface: this machine's own by default; 0.0.0.0 for all, as probes from outside a container need. */
  readonly host?: string
}

export interface Health {
  readonly state: string
  /** Whether it can claim, if there is a slot free. */
  readonly healthy: boolean
  readonly running: number
  readonly slots: number
  readonly board: string
  readonly storage: 'there' | 'away'
  /** When it last could have claimed a job, if there had been one. */
  readonly lastClaimableCheck?: Date
}

export interface HealthServer extends AsyncDisposable {
  readonly url: string
}

/** More than all probes and load balancers of a site have open at once; each costs a file descriptor. */
const MAX_CONNECTIONS = 100
/** How long the head of a request, and all of it, may take to arrive, and how long a connection is kept without one. */
const REQUEST_TIMEOUT_MS = 5_000
/** How often connections that are over their time are looked for. Node's default is half a minute. */
const CHECK_PERIOD_MS = 1_000
/** A probe asks for a path. */
const MAX_HEADER_BYTES = 4_096

export interface HealthLimits {
  readonly maxConnections?: number
  readonly requestTimeoutMs?: number
}

/**
 * Connections are few and short: whoever reaches the port could otherwise hold them open until the process has no file
 * descriptors left for its board.
 *
 * @throws InvalidArgument when it cannot listen there
 */
export async function serveHealth(
  { port, host = '127.0.0.1' }: HealthAddress,
  {
    health,
    failed,
    limits: { maxConnections = MAX_CONNECTIONS, requestTimeoutMs = REQUEST_TIMEOUT_MS } = {},
  }: {
    readonly health: () => Health
    readonly failed: (error: unknown) => void
    /** For tests. */
    readonly limits?: HealthLimits
  },
): Promise<HealthServer> {
  const server = createServer(
    {
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(CHECK_PERIOD_MS, requestTimeoutMs),
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    (request, response) => respond(request, response, health()),
  )
  server.maxConnections = maxConnections
  await new Promise<void>((resolve, reject) => {
    const refused = (cause: Error) => {
      reject(new InvalidArgument(`health: cannot listen on ${host} port ${port}: ${cause.message}`, { cause }))
    }
    server.once('error', refused)
    server.listen(port, host, () => {
      // Out of file descriptors, say: no reason for the process, and its jobs, to go down.
      server.on('error', failed).off('error', refused)
      resolve()
    })
  })
  const address = server.address()
  const listening = typeof address === 'object' && address ? address.port : port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listening}`,
    [Symbol.asyncDispose]: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      return closed
    },
  }
}

const READY_STATES: ReadonlySet<string> = new Set(['busy', 'idle'])

function respond({ method, url = '/' }: IncomingMessage, response: ServerResponse, health: Health): void {
  const [path = ''] = url.split('?')
  const [status, body] = method === 'GET' || method === 'HEAD' ? toResponse(path, health) : METHOD_NOT_ALLOWED
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(`${JSON.stringify(body)}\n`)
}

const METHOD_NOT_ALLOWED = [405, { error: 'GET or HEAD' }] as const

function toResponse(path: string, health: Health): readonly [status: number, body: object] {
  if (path === '/healthz') return [health.state === 'stopped' ? 503 : 200, health]
  if (path === '/readyz') return [health.healthy && READY_STATES.has(health.state) ? 200 : 503, health]
  return [404, { error: 'there are /healthz and /readyz' }]
}
