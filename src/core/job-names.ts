/** The names under which jobs are known outside of the board: their references and their queues. */

/** The queue of jobs that were posted without one. */
export const DEFAULT_QUEUE = 'default'

/** Returns whether a name, or a pattern such as `tenant-*`, stands for a queue. */
export function isNameOfQueue(nameOrPattern: string, queue: string): boolean {
  return nameOrPattern === queue || (nameOrPattern.endsWith('*') && queue.startsWith(nameOrPattern.slice(0, -1)))
}

/**
 * Returns whether a conductor serves a queue.
 *
 * @param reported the queues that it reports: names and patterns in order, or with weights. Any program may have written them: one that cannot
 * be read counts as absent, and a conductor that reports no queues serves all
 */
export function servesQueue(reported: unknown, queue: string): boolean {
  const weights = Object.entries(Object(reported)).filter(([, weight]) => typeof weight === 'number')
  const names: readonly unknown[] = Array.isArray(reported) ? reported : weights.map(([name]) => name)
  const isKnown = names.every((name) => typeof name === 'string') && (Array.isArray(reported) || names.length > 0)
  return !isKnown || names.some((name) => isNameOfQueue(name, queue))
}

/**
 * References to jobs: the uuid, followed by the backend's id of the job. With it any process finds the job in one round trip on a
 * board of any length, where the uuid alone may need a listing.
 *
 * @example 0199c0de-0000-7000-8000-000000000001.job0000000042
 */
const ID = /^job-?\d{1,20}$/

/** Returns the reference of a job; its uuid where the id is not known. */
export function toReference({ uuid, id }: { readonly uuid: string; readonly id: string | undefined }): string {
  return id === undefined ? uuid : `${uuid}.${id}`
}

/** Parses a reference or a uuid. A text that is no reference is taken for a uuid as a whole. */
export function parseReference(text: string): { readonly uuid: string; readonly id?: string } {
  const dot = text.lastIndexOf('.')
  const id = text.slice(dot + 1)
  return dot > 0 && ID.test(id) ? { uuid: text.slice(0, dot), id } : { uuid: text }
}
