/** Reads failures that come out of the trash or a logbook: others write there, too, and a failure is shown to people. */
import { DEEPEST_CAUSE, type Failure, LONGEST_TEXT, MOST_CAUSES } from './failure.ts'

/**
 * Reads a failure, cut to what `failureOf` would have kept. Never throws: where it is not one, it says so.
 *
 * @returns undefined where there is none
 */
export function readFailure(value: unknown): Failure | undefined {
  if (value === undefined || value === null) return undefined
  return failureIn(value, 0, { causes: MOST_CAUSES })
}

function failureIn(value: unknown, depth: number, budget: { causes: number }): Failure {
  if (typeof value === 'string') return { name: 'Error', message: cut(value) }
  const { name, message, code, stack, causes, nonRetryable, retryAfter }: Readonly<Record<string, unknown>> = isObject(
    value,
  )
    ? value
    : { message: 'a failure that cannot be read' }
  const kept: Failure[] = []
  for (const cause of Array.isArray(causes) && depth < DEEPEST_CAUSE ? causes : []) {
    if (budget.causes === 0) break
    budget.causes -= 1
    kept.push(failureIn(cause, depth + 1, budget))
  }
  return {
    name: typeof name === 'string' ? cut(name) : 'Error',
    message: typeof message === 'string' ? cut(message) : 'a message that cannot be read',
    ...(typeof code === 'string' ? { code: cut(code) } : {}),
    ...(typeof stack === 'string' ? { stack: cut(stack) } : {}),
    ...(kept.length > 0 ? { causes: kept } : {}),
    ...(nonRetryable === true ? { nonRetryable } : {}),
    ...(typeof retryAfter === 'number' && Number.isFinite(retryAfter) && retryAfter >= 0 ? { retryAfter } : {}),
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A text that `failureOf` has cut ends in a sign of its own, and is left as it is. */
function cut(text: string): string {
  return text.length > LONGEST_TEXT + 1 ? `${text.slice(0, LONGEST_TEXT)}…` : text
}
