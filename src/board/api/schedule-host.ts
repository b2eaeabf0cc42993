/** Gives schedules what they need of their board. */
import { NotFound } from '../../core/errors.ts'
import { systemAlarmClock } from '../../core/time.ts'
import type { Canceller } from '../claims/cancelling.ts'
import type { Backend } from '../contract/index.ts'
import type { BoardRecords } from '../records/board-records.ts'
import type { ScheduleHost } from '../schedules/schedule-host.ts'
import type { PostSettings } from '../settings/post-settings.ts'
import type { Lookup } from './lookup.ts'

export interface ScheduleHostParts {
  readonly backend: Backend
  readonly who: string
  readonly records: BoardRecords
  readonly postSettings: PostSettings
  readonly lookup: Lookup
  readonly canceller: Pick<Canceller, 'cancel'>
}

export function toScheduleHost({
  backend,
  who,
  records,
  postSettings,
  lookup,
  canceller,
}: ScheduleHostParts): ScheduleHost {
  return {
    ...{ uri: backend.uri, who, records },
    get shared() {
      return backend.shared
    },
    clock: backend.clock.alarms ?? systemAlarmClock,
    now: () => backend.clock.now(),
    async flowRules() {
      await postSettings.whenKnown()
      return postSettings.rules
    },
    readClock: () => backend.clock.read(),
    async cancelJob(uuid, reason) {
      try {
        await canceller.cancel(await lookup.toOwnEntry(await lookup.find(uuid)), { reason })
      } catch (error) {
        // It has ended meanwhile.
        if (!(error instanceof NotFound)) throw error
      }
    },
    isOnBoard: async (uuid) => (await lookup.locate(uuid)) !== undefined,
    conductorNames: async () => (await backend.entities.list('conductor')).map(({ name }) => name),
  }
}
