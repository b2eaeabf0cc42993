import type { Logger } from '../../../../core/log.ts'
import type { Duration } from '../../../../core/time.ts'
import type { Security } from '../../../../zookeeper/index.ts'
import type { BoardPathOptions } from './board-path.ts'
import type { ZooKeeperLayout } from './layout.ts'

/** The options of a board on ZooKeeper. */
export interface ZooKeeperBackendOptions extends BoardPathOptions, Security {
  readonly uri: string
  readonly hosts: string
  readonly layout: ZooKeeperLayout
  readonly sessionTimeout?: Duration
  /** The servers' tick, on which leases depend. */
  readonly tick?: Duration
  /** The maximum size of a request. */
  readonly maxRequestBytes?: number
  readonly scanPeriod?: Duration
  /** The count of children from which this client numbers postings itself; for tests. */
  readonly numbersFrom?: number
  /** The time for which a key of a limit is unused before it is swept, in milliseconds; for tests. */
  readonly limitsUnusedAfterMs?: number
  /** The maximum size of an answer that the client accepts; for tests. */
  readonly maxReplyBytes?: number
  readonly log?: Logger
}
