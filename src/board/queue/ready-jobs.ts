/**
 * The claimable jobs to which no limit applies, in one sorted list for each queue: a search in some queues visits no job of the others, however many
 * there are.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueuePlace } from '../model/entry.ts'
import { queueOf } from '../model/queues.ts'
import { SortedList } from './sorted.ts'

type JobList = SortedList<QueuePlace, ClaimOrderKey>

export class ReadyJobs {
  readonly #lists = new Map<string, JobList>()

  get isEmpty(): boolean {
    return this.#lists.size === 0
  }

  add(place: QueuePlace): void {
    const queue = queueOf(place.stored.posting)
    let list = this.#lists.get(queue)
    if (!list) {
      list = new SortedList(compareClaimOrder)
      this.#lists.set(queue, list)
    }
    list.add(place)
  }

  delete(place: QueuePlace): void {
    const queue = queueOf(place.stored.posting)
    const list = this.#lists.get(queue)
    list?.delete(place)
    if (list?.size === 0) this.#lists.delete(queue)
  }

  /** Iterates in claim order over the jobs of the queues that are wanted; of all queues by default. The lists must not change meanwhile. */
  inOrder(isWanted?: (queue: string) => boolean): Iterable<QueuePlace> {
    const lists: JobList[] = []
    for (const [queue, list] of this.#lists) if (!isWanted || isWanted(queue)) lists.push(list)
    const [first, ...others] = lists
    if (!first) return []
    return others.reduce<Iterable<QueuePlace>>(mergeByClaimOrder, first)
  }
}

/**
 * Merges two sequences that have no job in common, by the claim order. If both are sorted, the result is. Jobs of a fair limit come in turns, and may
 * be unsorted.
 */
export function* mergeByClaimOrder(
  left: Iterable<QueuePlace>,
  right: Iterable<QueuePlace>,
): Generator<QueuePlace, void, undefined> {
  const [lefts, rights] = [left[Symbol.iterator](), right[Symbol.iterator]()]
  let [a, b] = [lefts.next(), rights.next()]
  while (!a.done && !b.done) {
    const isLeftFirst = compareClaimOrder(a.value, b.value) < 0
    yield isLeftFirst ? a.value : b.value
    if (isLeftFirst) a = lefts.next()
    else b = rights.next()
  }
  for (; !a.done; a = lefts.next()) yield a.value
  for (; !b.done; b = rights.next()) yield b.value
}
