/** The rights of people, and what each action needs. Without zod: the page has this file in its bundle. */

/** The rights of a person. Each level includes those before it; `values` (stores and results) is granted by itself. */
export const LEVELS = ['read', 'operate', 'admin'] as const
export type Level = (typeof LEVELS)[number]

/** The right that each action needs. */
export const NEEDS: Readonly<Record<string, Level>> = {
  cancel: 'operate',
  restore: 'operate',
  release: 'operate',
  post: 'operate',
  'schedule.pause': 'operate',
  'schedule.resume': 'operate',
  'schedule.trigger': 'operate',
  'batch.cancel': 'operate',
  'batch.retry': 'operate',
  'limit.stop': 'operate',
  'limit.pushBack': 'operate',
  'limit.resume': 'operate',
  'queue.pause': 'operate',
  'queue.resume': 'operate',
  'board.pause': 'admin',
  'board.resume': 'admin',
  'limit.set': 'admin',
  'limit.remove': 'admin',
  'flow.set': 'admin',
  'flow.unset': 'admin',
  'schedule.remove': 'admin',
  purge: 'admin',
}
