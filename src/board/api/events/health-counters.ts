/** Counts faults with which a board still works: notifications that do not arrive, and Postgres backends that do not end. */
import type { Logger } from '../../../core/log.ts'
import type { HealthEvent } from '../../contract/index.ts'
import type { ErrorReporter } from './events.ts'

/** The number of periods in a row without any notification after which notifications count as missing. */
const MISSED_IN_A_ROW = 3

const MISSING =
  'notifications of the server do not arrive: changes of the board are seen only when it is read periodically, so jobs begin late. ' +
  'Look for a proxy, a connection pooler or an access list that drops them (LISTEN and NOTIFY of Postgres, SUBSCRIBE of Redis)'

export interface HealthCountersOptions {
  readonly uri: string
  readonly log: Logger
  readonly errorReporter: ErrorReporter
}

/** The counters of one board, and the state of its notifications. */
export class HealthCounters {
  readonly #options: HealthCountersOptions
  #missedInRow = 0
  #missedNotifications = 0
  #stoppedBackends = 0

  constructor(options: HealthCountersOptions) {
    this.#options = options
  }

  /** The number of periods in which changes were read that no notification had announced. */
  get missedNotifications(): number {
    return this.#missedNotifications
  }

  /** The number of Postgres backends that were asked to end and did not. */
  get stoppedBackends(): number {
    return this.#stoppedBackends
  }

  /** Whether notifications are known to be missing. */
  get areNotificationsMissing(): boolean {
    return this.#missedInRow >= MISSED_IN_A_ROW
  }

  note(event: HealthEvent): void {
    if (event === 'backendStopped') this.#stoppedBackends += 1
    else if (event === 'notificationMissed') this.#noteMissed()
    else if (event === 'emptied') this.#options.errorReporter.events.emit('emptied', {})
    else this.#noteArrived()
  }

  #noteMissed(): void {
    const { uri, log, errorReporter } = this.#options
    this.#missedNotifications += 1
    this.#missedInRow += 1
    if (this.#missedInRow !== MISSED_IN_A_ROW) return
    log.warn({ board: uri }, MISSING)
    errorReporter.events.emit('notifications', { state: 'missing' })
  }

  #noteArrived(): void {
    const { uri, log, errorReporter } = this.#options
    const wereMissing = this.areNotificationsMissing
    this.#missedInRow = 0
    if (!wereMissing) return
    log.info({ board: uri }, 'notifications of the server arrive again')
    errorReporter.events.emit('notifications', { state: 'arriving' })
  }
}
