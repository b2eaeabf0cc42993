/**
 * The claimable jobs without limits, by their queues: a search in some queues visits no job of the others, however many there are. In claim
 * order within each queue.
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
    return others.reduce<Iterable<QueuePlace>>(mergeInOrder, first)
  }
}

/**
 * Merges two sequences of jobs that have no job in common. The result is in claim order if both are; keys of a fair pattern take
 * turns, so their jobs may not be.
 */
export function* mergeInOrder(
  some: Iterable<QueuePlace>,
  others: Iterable<QueuePlace>,
): Generator<QueuePlace, void, undefined> {
  const [one, other] = [some[Symbol.iterator](), others[Symbol.iterator]()]
  let [a, b] = [one.next(), other.next()]
  while (!a.done && !b.done) {
    const isFirst = compareClaimOrder(a.value, b.value) < 0
    yield isFirst ? a.value : b.value
    if (isFirst) a = one.next()
    else b = other.next()
  }
  for (; !a.done; a = one.next()) yield a.value
  for (; !b.done; b = other.next()) yield b.value
}
