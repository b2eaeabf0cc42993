/**
 * The jobs in the line of one resource that are set aside: their flows have not been known to a conductor for long, and no other
 * job waits for them.
 *
 * The jobs of one flow are a group, in claim order. Only the first job of each group may pass, so the cost of a claim depends on
 * the number of groups and not of jobs. Jobs of one flow keep their order, because a process that claims one of them can claim all
 * of them. Groups do not wait for each other: otherwise two unknown flows would block each other for ever.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueuePlace } from '../model/entry.ts'
import type { ResourceMode } from '../model/resources.ts'
import { SortedList } from './sorted.ts'

interface SetAsideEntry extends ClaimOrderKey {
  readonly place: QueuePlace
  readonly mode: ResourceMode
}

interface SetAsideGroup {
  readonly line: SortedList<SetAsideEntry, ClaimOrderKey>
  /** The first entry of the group, if it passes. */
  next: QueuePlace | undefined
}

export class SetAside implements Iterable<QueuePlace> {
  readonly #groups = new Map<string, SetAsideGroup>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(place: QueuePlace, { group: name, mode }: { readonly group: string; readonly mode: ResourceMode }): void {
    const group = this.#groups.get(name) ?? {
      line: new SortedList<SetAsideEntry, ClaimOrderKey>(compareClaimOrder),
      next: undefined,
    }
    this.#groups.set(name, group)
    const { id, priority, order } = place
    group.line.add({ id, priority, order, place, mode })
    this.#size += 1
  }

  delete(place: QueuePlace, name: string): void {
    const group = this.#groups.get(name)
    if (!group?.line.delete(place)) return
    this.#size -= 1
    if (group.next === place) group.next = undefined
    if (group.line.size === 0) this.#groups.delete(name)
  }

  /** Returns the first entry of the group, unless it is the given one. */
  before(place: QueuePlace, name: string): QueuePlace | undefined {
    const first = this.#groups.get(name)?.line.first?.place
    return first === place ? undefined : first
  }

  /**
   * Determines for each group whether its first job passes.
   *
   * @param free returns whether a job is blocked neither by a holder nor by a job before it in line
   * @param onPasses called for each job that begins or ceases to pass
   */
  settle(
    free: (first: ClaimOrderKey, mode: ResourceMode) => boolean,
    onPasses: (place: QueuePlace, passes: boolean) => void,
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

  *[Symbol.iterator](): Generator<QueuePlace, void, undefined> {
    for (const { line } of this.#groups.values()) for (const { place } of line) yield place
  }
}
