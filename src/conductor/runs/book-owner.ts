/**
 * Marks logbooks, in the book's meta, with what conductors need to remove them rightly, also conductors that do not know the flow.
 *
 * | key | value | absent |
 * |---|---|---|
 * | `board` | the board that the book belongs to, where several boards share logbooks | it may belong to any board |
 * | `keep` | the milliseconds for which its flow keeps it after its last change, or `forever` | for as long as the conductor says |
 */
import { type Duration, toMilliseconds } from '../../core/time.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { BookRequest, Meta } from '../../persistence/index.ts'

interface OwnBoard {
  readonly boardId: string
}

/**
 * Returns the request for a job's book. The first acquire of the flow creates the book with the marks, without an
 * additional write.
 */
export function toBookRequest(
  { uuid, name }: BookRequest,
  { boardId, flow }: OwnBoard & { readonly flow: Pick<AnyFlow, 'keepLogbooks'> },
): BookRequest {
  const keep = toStoredAge(flow)
  return { uuid, name, meta: { board: boardId, ...(keep === undefined ? {} : { keep }) } }
}

/** Returns the age in milliseconds at which the book's flow has it removed, infinite for never; undefined if the flow says nothing. */
export function ownAgeOf({ keep }: Meta): number | undefined {
  if (keep === 'forever') return Number.POSITIVE_INFINITY
  return typeof keep === 'number' && keep >= 0 ? keep : undefined
}

/** Returns the ages in milliseconds at which the books of these flows are to be removed. */
export function toFlowAges(flows: readonly Pick<AnyFlow, 'keepLogbooks' | 'posting'>[]): readonly number[] {
  return flows.flatMap((flow) => {
    const keep = toStoredAge(flow)
    const { resultTtl } = flow.posting ?? {}
    return [
      ...(typeof keep === 'number' ? [keep] : []),
      ...(resultTtl === undefined ? [] : [toMilliseconds(resultTtl, 'resultTtl')]),
    ]
  })
}

function toStoredAge({ keepLogbooks: keep }: Pick<AnyFlow, 'keepLogbooks'>): number | 'forever' | undefined {
  return keep === undefined || keep === 'forever' ? keep : toMilliseconds(keep satisfies Duration, 'keepLogbooks')
}
