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
import {
  type HttpAddress,
  type HttpAnswer,
  type HttpLimits,
  type HttpServer,
  serveHttp,
  toJsonAnswer,
} from '../telemetry/internal.ts'
import type { ConductorCounts } from './counters.ts'
import type { ChildrenHealth } from './isolation/isolated-atoms.ts'
import type { MetricsAnswer } from './metrics.ts'

export interface HealthAddress extends HttpAddress {}

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
  /** Present if the server's notifications do not arrive: jobs begin late then. */
  readonly notifications?: 'missing'
}

export interface Health {
  readonly state: string
  /** Whether it can claim when a slot is free. */
  readonly healthy: boolean
  readonly running: number
  readonly slots: number
  /** The counts of the conductor since its start. */
  readonly counts: ConductorCounts
  /** The state of the board, and of its logbooks. */
  readonly board?: string
  readonly storage?: 'there' | 'away'
  readonly notifications?: 'missing'
  /** The health of each board, where there are several. */
  readonly boards?: readonly BoardHealth[]
  /** The child processes for isolated tasks. */
  readonly children?: ChildrenHealth
  /** The start of the suspect that the conductor runs now, and whether other suspects wait for it. */
  readonly suspect?: { readonly since: Date; readonly othersWait: boolean }
  /** The services that have a health check, each with `healthy` or the reason why it is not. */
  readonly services?: Readonly<Record<string, string>>
  /** The last time at which it could have claimed a job. */
  readonly lastClaimableCheck?: Date
}

export interface HealthServer extends HttpServer {}

export interface HealthLimits extends HttpLimits {}

/** Serves `/healthz` and `/readyz`, and `/metrics` if there are metrics. @throws InvalidArgument if it cannot listen there */
export function serveHealth(
  address: HealthAddress,
  {
    health,
    metrics,
    onError,
    limits,
  }: {
    readonly health: () => Health
    readonly metrics?: MetricsAnswer | undefined
    readonly onError: (error: unknown) => void
    /** The limits, for tests. */
    readonly limits?: HealthLimits
  },
): Promise<HealthServer> {
  const answer = (path: string): HttpAnswer => {
    if (metrics && path === '/metrics') return { status: 200, contentType: metrics.contentType, body: metrics.text() }
    return toAnswer(path, health())
  }
  return serveHttp(address, { name: 'health', answer, onError, limits })
}

const READY_STATES: ReadonlySet<string> = new Set(['busy', 'idle'])

function toAnswer(path: string, health: Health): HttpAnswer {
  if (path === '/healthz') return toJsonAnswer(health.state === 'stopped' ? 503 : 200, health)
  if (path === '/readyz') return toJsonAnswer(health.healthy && READY_STATES.has(health.state) ? 200 : 503, health)
  return toJsonAnswer(404, { error: 'not found; use /healthz, /readyz, or /metrics of a conductor with metrics' })
}
