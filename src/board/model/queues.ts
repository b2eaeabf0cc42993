/**
 * The names of queues. Each job of a board is in one queue, and conductors claim from the queues that they serve (`queue/served-queues.ts`).
 *
 * Queues have replaced sizes, which are still accepted: a job that is posted with a size is in the queue of this name. Stored postings of former
 * releases with size `small` or `large` are in the queue of this name, and those with `medium` in the default queue.
 */
import { InvalidArgument, InvalidPosting, messageOf } from '../../core/errors.ts'
import { DEFAULT_QUEUE } from '../../core/job-names.ts'
import { ILL_FORMED, shortenText } from '../../core/texts.ts'

export { DEFAULT_QUEUE } from '../../core/job-names.ts'

/** The maximum number of characters of a name: it is a label of metrics, and a part of the keys of servers. */
const MAX_NAME_LENGTH = 200
/** Returns whether jobs of a queue are wanted. */
export type QueueFilter = (queue: string) => boolean

/** Returns the queue of a job. */
export function queueOf({ queue = DEFAULT_QUEUE }: { readonly queue?: string | undefined }): string {
  return queue
}

/** Returns why a value cannot be the name of a queue; undefined if it can. */
export function queueProblem(name: unknown): string | undefined {
  if (typeof name !== 'string' || name === '') return `a queue must be a non-empty text, got ${describeValue(name)}`
  if (!name.isWellFormed()) return `queue ${describeValue(name)} ${ILL_FORMED}`
  if (name.length > MAX_NAME_LENGTH)
    return `queue ${shortenText(name)} has ${name.length} characters, at most ${MAX_NAME_LENGTH} are allowed`
  // The command line separates queues by commas, and weights by =. A * stands for the rest of a name in patterns.
  const [odd] = /[*,=\p{Cc}]|^\s|\s$/u.exec(name) ?? []
  if (odd === undefined) return undefined
  return `queue ${describeValue(name)} must not contain *, commas, = or control characters, nor begin or end with a space`
}

/** Parses the queue of a posting; undefined for the default. @throws InvalidPosting */
export function parseQueue(value: unknown): string | undefined {
  if (value === undefined) return undefined
  const problem = queueProblem(value)
  if (problem !== undefined) throw new InvalidPosting(problem)
  return String(value)
}

/** Returns a short text of any value, for messages of errors. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return shortenText(JSON.stringify(value))
  return typeof value === 'number' ? String(value) : typeof value
}

// --- Sizes, which are deprecated ------------------------------------------------------------------------------------------

/** The sizes, smallest first. */
export const SIZES = ['small', 'medium', 'large'] as const
/** A size of a job. @deprecated A size is the name of a queue. */
export type Size = (typeof SIZES)[number]

/** The size of jobs that were posted without one. */
const DEFAULT_SIZE = 'medium'
/** The queues of stored jobs of former releases. Servers keep these jobs among those of the default queue. */
export const QUEUES_OF_STORED_SIZES: readonly string[] = SIZES.filter((size) => size !== DEFAULT_SIZE)

let isWarned = false

/** Says once in a process that sizes are deprecated. */
export function warnOfSize(option: 'size' | 'sizes'): void {
  if (isWarned) return
  isWarned = true
  const instead = option === 'size' ? 'queue' : 'queues'
  process.emitWarning(`${option} is deprecated: sizes are names of queues, use ${instead} with the same name`, {
    ...{ type: 'DeprecationWarning', code: 'JOBBOARD_SIZE' },
  })
}

/** Parses a size. @throws InvalidPosting */
function parseSize(size: unknown): Size {
  for (const known of SIZES) if (known === size) return known
  throw new InvalidPosting(
    `size must be one of ${SIZES.join(', ')}; for another name use queue, since size is deprecated`,
  )
}

/** Returns the queue of a post. @throws InvalidPosting; InvalidArgument for a queue together with a size */
export function queueOfPostOptions({ queue, size }: { readonly queue?: unknown; readonly size?: unknown }): string {
  if (size !== undefined) return queueOfSizeOption({ queue, size }, 'post')
  return parseQueue(queue) ?? DEFAULT_QUEUE
}

/** Returns the queue of a caller that gives a size. @throws InvalidArgument for another size, and for a queue beside it */
export function queueOfSizeOption(
  { queue, size }: { readonly queue?: unknown; readonly size?: unknown },
  what: string,
): string {
  if (queue !== undefined) throw new InvalidArgument(`${what}: give queue or size, not both (size is deprecated)`)
  try {
    return parseSize(size)
  } catch (error) {
    throw new InvalidArgument(`${what}: ${messageOf(error)}`)
  } finally {
    warnOfSize('size')
  }
}

/**
 * Returns the queue of a stored posting; undefined for the default. Former releases wrote a size into every posting.
 *
 * @throws InvalidPosting
 */
export function queueOfStored(queue: unknown, size: unknown): string | undefined {
  if (queue !== undefined || size === undefined) return parseQueue(queue)
  const named = parseSize(size)
  return named === DEFAULT_SIZE ? undefined : named
}

/** Returns the queues that are served with these sizes: jobs of former releases without a size are of the medium one. @throws InvalidArgument */
export function queuesOfSizes(sizes: unknown, what: string): readonly string[] {
  const isList = Array.isArray(sizes) && sizes.length > 0 && sizes.every((size) => SIZES.includes(size))
  if (!isList)
    throw new InvalidArgument(
      `${what}: sizes must be a non-empty list of ${SIZES.join(', ')}; a queue can have any name`,
    )
  warnOfSize('sizes')
  return sizes.flatMap((size: Size) => (size === DEFAULT_SIZE ? [size, DEFAULT_QUEUE] : [size]))
}
