/** Checks the health of services periodically. While a service is unhealthy, the conductor claims nothing. */
import { abortAfter, followSignals, rejectOnAbort } from '../../core/async/abort.ts'
import { Timeout } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { sleep } from '../../core/time.ts'
import type { CheckableService } from './open.ts'

/** The pause between two checks of all services. */
const PERIOD_MS = 10_000
/** The pause between two checks while a service is unhealthy: it is short, because jobs wait. */
const UNHEALTHY_PERIOD_MS = 1_000
/** The time limit of one check. */
const CHECK_TIMEOUT_MS = 5_000

export interface ServiceHealthOptions {
  readonly services: readonly CheckableService[]
  readonly log: Logger
  /** Called when a service becomes unhealthy while all others are healthy, and when all services are healthy again. */
  readonly onChange: () => void
  /** The periods and the limit in milliseconds, for tests. */
  readonly times?: { readonly period: number; readonly unhealthyPeriod: number; readonly timeout: number }
}

const TIMES = { period: PERIOD_MS, unhealthyPeriod: UNHEALTHY_PERIOD_MS, timeout: CHECK_TIMEOUT_MS }

export class ServiceHealth {
  readonly #options: ServiceHealthOptions
  readonly #faults = new Map<string, string>()

  constructor(options: ServiceHealthOptions) {
    this.#options = options
  }

  /** The health of each service that has a check: `healthy`, or the reason why it cannot be used. Undefined if no service has a check. */
  get status(): Readonly<Record<string, string>> | undefined {
    const { services } = this.#options
    if (services.length === 0) return undefined
    return Object.fromEntries(services.map(({ name }) => [name, this.#faults.get(name) ?? 'healthy']))
  }

  get isHealthy(): boolean {
    return this.#faults.size === 0
  }

  /** Checks all services once. Never rejects. */
  async check(signal: AbortSignal): Promise<void> {
    const wasHealthy = this.isHealthy
    await Promise.all(this.#options.services.map((service) => this.#checkOne(service, signal)))
    if (!signal.aborted && wasHealthy !== this.isHealthy) this.#options.onChange()
  }

  /** Checks all services until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    const { services, times = TIMES } = this.#options
    while (services.length > 0 && !signal.aborted) {
      await sleep(this.isHealthy ? times.period : times.unhealthyPeriod, { signal }).catch(() => undefined)
      if (!signal.aborted) await this.check(signal)
    }
  }

  async #checkOne({ name, check }: CheckableService, signal: AbortSignal): Promise<void> {
    const { log, times = TIMES } = this.#options
    using stop = followSignals([signal])
    using _limit = abortAfter(stop, times.timeout, (time) => new Timeout(`the health check took longer than ${time}`))
    try {
      await rejectOnAbort(check(), stop)
      if (this.#faults.delete(name)) log.info({ service: name }, `service ${name} is healthy again`)
    } catch (error) {
      if (signal.aborted) return
      if (!this.#faults.has(name))
        log.warn(
          { service: name, err: error },
          `service ${name} is unhealthy: no job is claimed until it is healthy again`,
        )
      this.#faults.set(name, describeError(error))
    }
  }
}
