/** Names of a board's locks and notifications, which are shared by the whole database. */
import { advisoryClass } from '../../../postgres/index.ts'

/** Returns the first keys of our advisory locks; the second key identifies the session. */
export function lockClasses(schema: string): { readonly session: number } {
  return { session: advisoryClass(`session ${schema}`) }
}

/** Returns the channel for notifications of one board, by the board's number. */
export function channelName(schema: string, board: number | string): string {
  return `jobboard_${(advisoryClass(schema) >>> 0).toString(36)}_${board}`
}
