/** Requests to the C client, and its answers. */
import type { NativeHandle } from './package.ts'

/** Callback with the code, and with a function that reads the result if the code is 0. */
export type NativeCallback<T> = (code: number, read: () => T) => void

/** Request to a handle, with the decoder of its callback. */
export interface NativeRequest<T> {
  readonly operation: string
  readonly path: string
  /** `answer` is called later, unless the number returned is not 0. */
  readonly send: (handle: NativeHandle, answer: NativeCallback<T>) => number
}
