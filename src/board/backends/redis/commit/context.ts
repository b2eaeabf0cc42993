/** The context that the parts of an open board share: the place of the board, and the receivers of their reports. */
import type { Logger } from '../../../../core/log.ts'
import type { BackendSink } from '../../../contract/index.ts'
import type { RedisLayout } from '../store/layout.ts'
import type { RedisLocation } from '../store/location.ts'

export interface BoardContext {
  readonly location: RedisLocation
  readonly layout: RedisLayout
  readonly log: Logger
  /** Whether a missing board is created. */
  readonly create: boolean
  readonly sink: BackendSink
  /** Called with a sentence for each damage that scripts have found. */
  readonly damaged: (fault: string) => void
  /** Called when ends of jobs are not finished, because many jobs depend on them, or because nothing has released these. */
  readonly onUnfinished: () => void
  /** Called when postings were added or removed by hand. */
  readonly onInconsistent: () => Promise<void>
}
