/** Exports of schedules for other folders of this project, not for users. */
export { toInstant } from './calendar/instant.ts'
export type { Rule } from './calendar/rule.ts'
export { Work } from './calendar/work.ts'
export { formatLocalTime } from './calendar/zone.ts'
export type { ScheduleSpec } from './spec.ts'
export { describeSpec, followsCompletion, isSameSpec, toOccurrences, toStoredSpec, zoneOf } from './spec.ts'
