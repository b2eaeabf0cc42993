/** Results of elements that succeed or fail on their own: a failed element does not affect the others. */
import { asError } from './errors.ts'

export type Result<T> = { readonly value: T } | { readonly error: Error }

/** Runs the step for every element at once, and resolves to the results in the order of the elements. */
export function settleEach<T, R>(elements: readonly T[], step: (element: T) => Promise<R>): Promise<Result<R>[]> {
  return Promise.all(elements.map((element) => step(element).then((value) => ({ value }), toFailed)))
}

/** Returns what the step returned, or the error that it threw. */
export function catchError<T>(step: () => T): Result<T> {
  try {
    return { value: step() }
  } catch (error) {
    return toFailed(error)
  }
}

/** Converts a thrown value to a result. */
export function toFailed(thrown: unknown): { readonly error: Error } {
  return { error: asError(thrown) }
}

/**
 * Calls a function that returns a promise; what the function throws rejects the promise. It is for functions that every job runs: an async
 * function keeps a record of all its variables for each call, one to three kilobytes for a long function.
 */
export function attempt<T>(call: () => Promise<T>): Promise<T> {
  try {
    return call()
  } catch (error) {
    return Promise.reject(error)
  }
}

/** The answer of a function that returns promises without being async, where there is nothing to wait for. */
export const RESOLVED: Promise<void> = Promise.resolve()
