/** The constants of the demo, and the lines by which its tasks report progress. */

/** The photos: enough that both conductors are busy until the dead one's job is free again. */
export const PHOTOS = ['photo-1', 'photo-2', 'photo-3', 'photo-4', 'photo-5', 'photo-6'] as const

/** The tasks, in their order. */
export const TASKS = ['fetch', 'resize', 'pack'] as const
export type TaskName = (typeof TASKS)[number]

/** The task of its first job during which the first conductor is killed. */
export const KILL_AT_TASK: TaskName = 'resize'

/** The variable whose value separates a demo's flow and conductors from those of another demo on the same board. */
export const TAG_VARIABLE = 'JOBBOARD_DEMO'

export function flowName(tag: string): string {
  return `demo${tag}`
}

/**
 * A progress line on a conductor's standard output, which the demo reads; a pipe takes a line whole, even from a
 * process that dies next.
 */
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

/** Parses a progress line. Returns undefined for other output of the conductor. */
export function parseLine(text: string): TaskLine | undefined {
  return text.startsWith('{') ? (JSON.parse(text) as TaskLine) : undefined
}
