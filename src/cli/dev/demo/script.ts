/** What the demo plays, and the lines by which its tasks tell how far they are. */

/** Enough that both conductors have something to do until the dead one's job is free again. */
export const PHOTOS = ['photo-1', 'photo-2', 'photo-3', 'photo-4', 'photo-5', 'photo-6'] as const

/** In their order. */
export const TASKS = ['fetch', 'resize', 'pack'] as const
export type TaskName = (typeof TASKS)[number]

/** In the middle of it, of its first job, the first conductor is killed. */
export const KILL_AT_TASK: TaskName = 'resize'

/** Tells a demo's flow and conductors from those of another on the same board. */
export const TAG_VARIABLE = 'JOBBOARD_DEMO'

export function flowName(tag: string): string {
  return `demo${tag}`
}

/** A conductor's standard output is heard by the demo; a pipe takes a line whole, also of a process that dies next. */
export interface TaskLine {
  readonly step: 'begun' | 'halfway' | 'finished'
  readonly task: TaskName
  /** The job's name. */
  readonly job: string
  readonly run: number
  readonly pid: number
}

export function formatLine(line: TaskLine): string {
  return `${JSON.stringify(line)}\n`
}

/** Undefined for what conductors print of their own. */
export function parseLine(text: string): TaskLine | undefined {
  return text.startsWith('{') ? (JSON.parse(text) as TaskLine) : undefined
}
