/** The calculator of the times of periodic work: rules, time zones, previews. It knows nothing of boards and posts nothing. */
export { explainSpec } from './explain.ts'
export { type Occurrence, type PreviewOptions, preview } from './preview.ts'
export type { AtSpec, CalendarSpec, CronSpec, EverySpec, ScheduleSpec, SpecBounds } from './spec.ts'
