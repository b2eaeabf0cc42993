/**
 * Serves the health of a conductor over HTTP, for an orchestrator's probes, a load balancer, or a person with curl.
 *
 * - `/healthz`: 200 as long as the conductor has not stopped. The conductor survives an outage of its servers, and a
 *   restart would not cure it.
 * - `/readyz`: 200 while it can claim; 503 while it cannot, because it is paused, stopping, or its servers are away. Of several boards, one
 *   has to be usable.
 *
 * Both answer with the same JSON, which names no job and no location.
 *
 * - `/metrics`: the metrics in the text format of Prometheus, which name flows and schedules; 404 where none are recorded.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { InvalidArgument } from '../core/errors.ts'
import type { ConductorCounts } from './counters.ts'
import type { ChildrenHealth } from './isolation/isolated-atoms.ts'
import type { ConductorMetrics } from './metrics.ts'

export interface HealthAddress {
  /** The port number; 0 selects any free port. */
  readonly port: number
  /** The network interface: this machine's own by default; 0.0.0.0 for all, as probes from outside a container need. */
  readonly host?: string
}

/** The health of one of several boards. */
export interface BoardHealth {
  /** The name of the board, without its servers. */
  readonly name: string
  readonly state: string
  /** Whether a job of this board could be claimed if a slot were free. */
  readonly usable: boolean
  /** The number of jobs of this board that run now. */
  readonly running: number
  /** The state of its logbooks. */
  readonly storage: 'there' | 'away'
}

export interface Health {
  readonly state: string
  /** Whether it can claim when a slot is free. */
  readonly healthy: boolean
  readonly running: number
  readonly slots: number
  /** What it has done since its start. */
  readonly counts: ConductorCounts
  /** The state of the board, and of its logbooks. */
  readonly board?: string
  readonly storage?: 'there' | 'away'
  /** The same of each board, where there are several. */
  readonly boards?: readonly BoardHealth[]
  /** The child processes for isolated tasks. */
  readonly children?: ChildrenHealth
  /** Each service that has a health check: `healthy`, or why it is not. */
  readonly services?: Readonly<Record<string, string>>
  /** The last time at which it could have claimed a job. */
  readonly lastClaimableCheck?: Date
}

export interface HealthServer extends AsyncDisposable {
  readonly url: string
}

/**
 * The maximum number of open connections: more than all probes and load balancers of a site use. Each costs a file
 * descriptor.
 */
const MAX_CONNECTIONS = 100
/** The time limit for the head of a request, for the whole request, and for an idle connection. */
const REQUEST_TIMEOUT_MS = 5_000
/** The period between checks for connections over their time limit. Node's default is 30 seconds. */
const CHECK_PERIOD_MS = 1_000
/** The maximum size of a request's headers: a probe asks for a path only. */
const MAX_HEADER_BYTES = 4_096

export interface HealthLimits {
  readonly maxConnections?: number
  readonly requestTimeoutMs?: number
}

/**
 * Serves `/healthz` and `/readyz`. Connections are limited in number and time: a client that reaches the port could
 * otherwise hold them open until the process has no file descriptors left for its board.
 *
 * @throws InvalidArgument when it cannot listen there
 */
export async function serveHealth(
  { port, host = '127.0.0.1' }: HealthAddress,
  {
    health,
    metrics,
    failed,
    limits: { maxConnections = MAX_CONNECTIONS, requestTimeoutMs = REQUEST_TIMEOUT_MS } = {},
  }: {
    readonly health: () => Health
    readonly metrics?: Pick<ConductorMetrics, 'text' | 'contentType'> | undefined
    readonly failed: (error: unknown) => void
    /** The limits, for tests. */
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
    (request, response) => {
      if (metrics && isMetricsRequest(request)) sendMetrics(response, metrics)
      else respond(request, response, health())
    },
  )
  server.maxConnections = maxConnections
  await new Promise<void>((resolve, reject) => {
    const refused = (cause: Error) => {
      reject(new InvalidArgument(`health: cannot listen on ${host} port ${port}: ${cause.message}`, { cause }))
    }
    server.once('error', refused)
    server.listen(port, host, () => {
      // A later error, such as running out of file descriptors, must not end the process and its jobs.
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

function isMetricsRequest({ method, url = '/' }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && url.split('?')[0] === '/metrics'
}

function sendMetrics(response: ServerResponse, metrics: Pick<ConductorMetrics, 'text' | 'contentType'>): void {
  response.writeHead(200, { 'content-type': metrics.contentType, 'cache-control': 'no-store' })
  response.end(metrics.text())
}

const METHOD_NOT_ALLOWED = [405, { error: 'the method must be GET or HEAD' }] as const

function toResponse(path: string, health: Health): readonly [status: number, body: object] {
  if (path === '/healthz') return [health.state === 'stopped' ? 503 : 200, health]
  if (path === '/readyz') return [health.healthy && READY_STATES.has(health.state) ? 200 : 503, health]
  return [404, { error: 'not found; use /healthz, /readyz, or /metrics of a conductor with metrics' }]
}
