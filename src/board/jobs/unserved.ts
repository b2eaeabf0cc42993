/** Finds out that living conductors do not run a job, by their entities: its queue, its flow, or both together. */
import { servesQueue } from '../../core/job-names.ts'
import type { Entity } from '../contract/index.ts'
import { formatFlowReference, isKnownToAny, toFlowReference } from '../model/flow-reference.ts'
import type { Posting } from '../model/posting/posting.ts'
import { queueOf } from '../model/queues.ts'

type UnservedReason = { readonly text: string } & (
  | { readonly kind: 'queue'; readonly queue: string }
  | { readonly kind: 'flow'; readonly flow: string }
)

/**
 * Returns why no connected conductor can run a job: no conductor serves its queue, or the conductors that serve the queue do not know its flow. Returns
 * undefined if no conductor is connected: a program that claims jobs in a loop of its own reports neither queues nor flows.
 */
export function unservedReason(
  posting: Pick<Posting, 'queue' | 'details'>,
  conductors: readonly Entity[],
): UnservedReason | undefined {
  if (conductors.length === 0) return undefined
  const queue = queueOf(posting)
  const serving = conductors.filter(({ metadata }) => servesQueue(metadata['queues'], queue))
  if (serving.length === 0) return { kind: 'queue', queue, text: `no conductor serves queue ${queue}` }
  const work = toFlowReference(posting)
  if (!work || isKnownToAny(work, serving)) return undefined
  const text = `no conductor here that serves queue ${queue} knows flow ${formatFlowReference(work)}`
  return { kind: 'flow', flow: work.flow, text }
}
