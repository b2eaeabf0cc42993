/** Concurrent requests are sent together, as one call of a function and one transaction; each element has its own answer. */
import type { CommitResult } from '../../../../core/async/group-commit.ts'
import { JobboardError } from '../../../../core/errors.ts'
import type { Posting } from '../../../model/posting/posting.ts'

/** Limits of one transaction, so that the next group does not wait long. */
export const MAX_GROUP = { items: 500, bytes: 2 * 1_024 * 1_024 }

/** A request with its encoded posting, or the part of it that changes. */
export interface Encoded<T> {
  readonly request: T
  readonly bytes: Uint8Array
}

/** Joins the bytes of all items, and returns the length of each: an array of texts would be twice as long. */
export function joinBytes(items: readonly { readonly bytes: Uint8Array }[]): [Buffer, number[]] {
  return [Buffer.concat(items.map(({ bytes }) => bytes)), items.map(({ bytes }) => bytes.length)]
}

/** Sends a group. If the server refuses it as a whole, sends each item alone, so that each has its own answer. */
export async function retryEachAlone<T, R>(
  group: readonly T[],
  work: (some: readonly T[]) => Promise<CommitResult<R>[]>,
): Promise<CommitResult<R>[]> {
  try {
    return await work(group)
  } catch (error) {
    const refused = error instanceof JobboardError && error.code === 'JOBBOARD_POSTGRES'
    if (!refused || group.length === 1) return group.map(() => ({ error }))
  }
  const outcomes: CommitResult<R>[] = []
  for (const item of group) outcomes.push(...(await work([item]).catch((error) => [{ error }])))
  return outcomes
}

/** Returns the name of a job for messages. */
export function toJobName({ uuid, name }: Posting): string {
  return `job ${uuid} (${name})`
}

/** Returns the name of an operation on several jobs for messages. */
export function describeGroup(verb: string, group: readonly Encoded<{ readonly posting: Posting }>[]): string {
  const [first] = group
  const others = group.length > 1 ? ` and ${group.length - 1} more` : ''
  return `${verb} of ${first ? toJobName(first.request.posting) : 'nothing'}${others}`
}
