/** One result per element, whatever becomes of its neighbours. */
import { asError } from '../../core/errors.ts'
import type { Result } from '../backend.ts'

export function settleEach<T, R>(elements: readonly T[], step: (element: T) => Promise<R>): Promise<Result<R>[]> {
  return Promise.all(elements.map((element) => settleOne(step(element))))
}

export function settleOne<T>(step: Promise<T>): Promise<Result<T>> {
  return step.then(
    (value) => ({ value }),
    (error: unknown) => ({ error: asError(error) }),
  )
}

/** What a step returned, or threw. */
export function catchError<T>(step: () => T): Result<T> {
  try {
    return { value: step() }
  } catch (error) {
    return { error: asError(error) }
  }
}
