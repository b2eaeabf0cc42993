/** The records of the settings of flows. */
import { MAX_ATTEMPTS } from '../model/attempts.ts'
import { parseBackOff } from '../model/back-off.ts'
import { PRIORITIES } from '../model/claim-order.ts'
import { queueProblem } from '../model/queues.ts'
import {
  count,
  exactly,
  fieldsOf,
  isCount,
  isDuration,
  optional,
  parseStored,
  text,
  time,
  where,
} from '../model/stored.ts'
import type { DeclarationMark } from '../records/declared-records.ts'
import type { RecordKind } from '../records/record-store.ts'
import type { StoredSettings } from './settings.ts'

/** The settings of a flow, or of all flows with the prefix of a pattern. */
export interface FlowSettingsRecord {
  readonly settings: StoredSettings
  /** Who has changed them last, a person or a program, and when, in milliseconds since 1970. */
  readonly by: string
  readonly at: number
  readonly reason?: string
  /** Who has changed `enabled` last, when and why; absent where that was the declaration of the record, or `enabled` is absent. */
  readonly switched?: ChangeOrigin
  /** The mark of a declaration; absent if no program declares these settings. */
  readonly declared?: DeclarationMark
}

interface ChangeOrigin {
  readonly by: string
  readonly at: number
  readonly reason?: string
}

/** The maximum size of a record: every process that posts or claims keeps all of them in memory. */
const MAX_BYTES = 16 * 1_024

export const FLOW_SETTINGS: RecordKind<FlowSettingsRecord> = {
  ...{ name: 'flow-setting', format: 1, maxBytes: MAX_BYTES },
  parse: (value, id) => parseStored(value, RECORD, `settings of flow ${id}`),
}

const duration = where(isDuration)
const flag = where((value): value is boolean => typeof value === 'boolean')
const attempts = where((value): value is number => isCount(value) && value >= 1 && value <= MAX_ATTEMPTS)
const queue = where((value): value is string => queueProblem(value) === undefined)
const keep = where((value): value is number | 'forever' => value === 'forever' || isDuration(value))

const RECORD = fieldsOf<FlowSettingsRecord>({
  settings: fieldsOf<StoredSettings>({
    priority: optional(exactly(...PRIORITIES)),
    queue: optional(queue),
    ...{ delay: optional(duration), expiresAfter: optional(duration) },
    onOwnerLost: optional(exactly('retry', 'fail')),
    maxAttempts: optional(attempts),
    backOff: parseBackOff,
    ...{ deadline: optional(duration), resultTtl: optional(duration) },
    ...{ keepResults: optional(flag), keepLogbooks: optional(keep), removeTrashAfter: optional(duration) },
    ...{ enabled: optional(flag), force: optional(exactly(true)) },
  }),
  ...{ by: text, at: time, reason: optional(text) },
  switched: optional(fieldsOf<ChangeOrigin>({ by: text, at: time, reason: optional(text) })),
  declared: optional(fieldsOf({ owner: text, version: count, digest: text })),
})
