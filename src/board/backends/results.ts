/** Functions that return one result per element: a failed element does not affect the others. */
import { asError } from '../../core/errors.ts'
import type { Result } from '../backend.ts'

/** Runs the step for every element at once, and resolves to the results in the order of the elements. */
export function settleEach<T, R>(elements: readonly T[], step: (element: T) => Promise<R>): Promise<Result<R>[]> {
  return Promise.all(elements.map((element) => settleOne(step(element))))
}

/** Resolves to the value of the promise, or to the error with which it was rejected. */
export function settleOne<T>(step: Promise<T>): Promise<Result<T>> {
  return step.then(
    (value) => ({ value }),
    (error: unknown) => ({ error: asError(error) }),
  )
}

/** Returns what the step returned, or the error that it threw. */
export function catchError<T>(step: () => T): Result<T> {
  try {
    return { value: step() }
  } catch (error) {
    return { error: asError(error) }
  }
}
