/** The interface by which schedules use their board. */
import type { AlarmClock } from '../../core/time.ts'
import type { BoardRecords } from '../records/board-records.ts'
import type { FlowRules } from '../settings/rules.ts'

export interface ScheduleHost {
  /** The URI without a password, for messages. */
  readonly uri: string
  /** The owner that the board's claims name: who has paused a schedule. */
  readonly who: string
  /** Whether other programs claim jobs here, too: they know no keys, resources and expiry. Known once the board is open. */
  readonly shared: boolean
  readonly records: BoardRecords
  /** Returns the settings of flows, which the jobs of schedules have. @throws NotConnected */
  flowRules(): Promise<FlowRules>
  readonly clock: AlarmClock
  /** Returns the time of the board's clock, in milliseconds since 1970. */
  now(): number
  /** Resolves when {@link now} is the servers' time: a machine's own clock may be wrong by hours. @throws NotConnected */
  readClock(): Promise<void>
  /** Cancels a job; does nothing if it has left the board. */
  cancelJob(uuid: string, reason: string): Promise<void>
  isOnBoard(uuid: string): Promise<boolean>
  /** Returns the names of the living conductors. */
  conductorNames(): Promise<readonly string[]>
}
