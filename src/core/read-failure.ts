/** Reads failures from the trash or a logbook: other programs write there, too, and failures are shown to people. */
import { type Failure, MAX_CAUSE_DEPTH, MAX_CAUSES, MAX_TEXT_LENGTH } from './failure.ts'
import { defined } from './options.ts'

/**
 * Reads a failure and cuts it to the limits of `failureOf`. Never throws: for another value, the result says so.
 *
 * @returns undefined if the value is undefined or null
 */
export function parseFailure(value: unknown): Failure | undefined {
  if (value === undefined || value === null) return undefined
  return parseFailureAt(value, 0, { causes: MAX_CAUSES })
}

function parseFailureAt(value: unknown, depth: number, budget: { causes: number }): Failure {
  if (typeof value === 'string') return { name: 'Error', message: truncateText(value) }
  const { name, message, code, stack, causes, nonRetryable, retryAfter }: Readonly<Record<string, unknown>> = isObject(
    value,
  )
    ? value
    : { message: 'a failure that cannot be read' }
  const kept: Failure[] = []
  for (const cause of Array.isArray(causes) && depth < MAX_CAUSE_DEPTH ? causes : []) {
    if (budget.causes === 0) break
    budget.causes -= 1
    kept.push(parseFailureAt(cause, depth + 1, budget))
  }
  return {
    name: typeof name === 'string' ? truncateText(name) : 'Error',
    message: typeof message === 'string' ? truncateText(message) : 'a message that cannot be read',
    ...defined({
      code: typeof code === 'string' ? truncateText(code) : undefined,
      stack: typeof stack === 'string' ? truncateText(stack) : undefined,
      causes: Array.isArray(causes) ? kept : undefined,
      nonRetryable: nonRetryable === true ? (true as const) : undefined,
      retryAfter: isDuration(retryAfter) ? retryAfter : undefined,
    }),
  }
}

function isDuration(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Cuts a text. A text that `failureOf` has cut is one character longer (`…`), and stays as it is. */
function truncateText(text: string): string {
  return text.length > MAX_TEXT_LENGTH + 1 ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text
}
