/**
 * Those in the line of one resource that nobody waits for: the jobs of flows that no conductor has known for long.
 *
 * The jobs of one flow are a group, in claim order. Of each group only the first may pass, so a claim of the resource costs as
 * much as there are groups, however many jobs there are in them; and jobs of one flow keep their order among each other, because
 * whoever takes one of them takes them all. Groups do not wait for each other: two flows that nobody knows would otherwise block
 * each other for ever.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueueEntry } from '../model/entry.ts'
import type { ResourceWants } from '../model/resources.ts'
import { SortedList } from './sorted.ts'

type ResourceMode = keyof ResourceWants

interface SetAsideEntry extends ClaimOrderKey {
  readonly place: QueueEntry
  readonly mode: ResourceMode
}

interface SetAsideGroup {
  readonly line: SortedList<SetAsideEntry, ClaimOrderKey>
  /** The first, where it passes. */
  next: QueueEntry | undefined
}

export class SetAside implements Iterable<QueueEntry> {
  readonly #groups = new Map<string, SetAsideGroup>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(place: QueueEntry, { group: name, mode }: { readonly group: string; readonly mode: ResourceMode }): void {
    const group = this.#groups.get(name) ?? {
      line: new SortedList<SetAsideEntry, ClaimOrderKey>(compareClaimOrder),
      next: undefined,
    }
    this.#groups.set(name, group)
    const { id, priority, order } = place
    group.line.add({ id, priority, order, place, mode })
    this.#size += 1
  }

  delete(place: QueueEntry, name: string): void {
    const group = this.#groups.get(name)
    if (!group?.line.delete(place)) return
    this.#size -= 1
    if (group.next === place) group.next = undefined
    if (group.line.size === 0) this.#groups.delete(name)
  }

  /** Returns the first of the group, unless it is this one. */
  before(place: QueueEntry, name: string): QueueEntry | undefined {
    const first = this.#groups.get(name)?.line.first?.place
    return first === place ? undefined : first
  }

  /**
   * @param free whether neither a holder nor anyone in line before it keeps it waiting
   * @param onPasses hears of every place that passes from now on, or does not any more
   */
  settle(
    free: (first: ClaimOrderKey, mode: ResourceMode) => boolean,
    onPasses: (place: QueueEntry, passes: boolean) => void,
  ): void {
    for (const group of this.#groups.values()) {
      const { first } = group.line
      const next = first && free(first, first.mode) ? first.place : undefined
      if (next === group.next) continue
      const former = group.next
      group.next = next
      if (former) onPasses(former, false)
      if (next) onPasses(next, true)
    }
  }

  *[Symbol.iterator](): Generator<QueueEntry, void, undefined> {
    for (const { line } of this.#groups.values()) for (const { place } of line) yield place
  }
}
