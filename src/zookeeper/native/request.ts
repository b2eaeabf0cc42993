/** What is asked of the C client, and what it answers. */
import type { NativeHandle } from './package.ts'

/** Called with the code, and with what reads the rest if the code is 0. */
export type NativeCallback<T> = (code: number, read: () => T) => void

/** What is asked of a handle, and how its callback is read. */
export interface NativeRequest<T> {
  readonly operation: string
  readonly path: string
  /** `answer` is called later, unless the number returned is not 0. */
  readonly send: (handle: NativeHandle, answer: NativeCallback<T>) => number
}
