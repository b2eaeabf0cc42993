/** What a board's locks and notifications are called in the whole database. */
import { advisoryClass } from '../../../postgres/index.ts'

/** First numbers of our advisory locks; a session's id is the second. */
export function lockClasses(schema: string): { readonly session: number } {
  return { session: advisoryClass(`session ${schema}`) }
}

/** Of the notifications of one board, by its number. */
export function channelName(schema: string, board: number | string): string {
  return `jobboard_${(advisoryClass(schema) >>> 0).toString(36)}_${board}`
}
