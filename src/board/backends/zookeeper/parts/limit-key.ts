/** A key of a limit, as this client knows it: see `limit-reservations.ts`. */

import { op, type Stat } from '../../../../zookeeper/index.ts'
import { isSameRate, type TakenTokens, type TokenRate, toArrivalAt } from '../../../model/limits.ts'
import type { SharedSum, TransactionStep } from '../commit/transaction.ts'
import { decodeTokens, encodeTokens, type TokenData, toTaken } from '../store/token-data.ts'

/** The slot and the tokens that one claim takes of a key. */
export interface TakenOfKey {
  readonly slot: number | undefined
  readonly tokens: number
}

/** A key, and the slots and tokens that claims of this client have reserved. Its version is the server's, or an older one. */
export class KeyNode {
  readonly key: string
  /** The slots that are znodes. */
  takenSlots: Set<number> = new Set()
  /** The slots that claims under way of this client take. */
  readonly reservedSlots = new Set<number>()
  #reservedTokens = 0
  /** Whether the znode has to be read before anything else is reserved. */
  isStale = false
  readonly #path: string
  /** The transaction that has created the znode: a znode that was swept and created again has another transaction. */
  readonly #createdBy: bigint
  #version: number
  #taken: TakenTokens
  /** The sum of the tokens that are taken by one rate: claims by the same rate share it. */
  #sum: RatedSum | undefined

  constructor(key: string, path: string, { data, stat }: { readonly data: Uint8Array | null; readonly stat: Stat }) {
    this.key = key
    this.#path = path
    this.#createdBy = stat.czxid
    this.#version = stat.version
    this.#taken = toTaken(decodeTokens(data), stat)
  }

  /** Returns whether the znode has not changed since this was read or written. */
  isAt({ czxid, version }: Stat): boolean {
    return czxid === this.#createdBy && version === this.#version
  }

  get arrivalMs(): number {
    return this.#taken.arrivalMs
  }

  /** Returns the arrival time at this rate, after the claims that are not done yet. */
  reservedUntil(rate: TokenRate, now: number): number {
    return Math.max(toArrivalAt(this.#taken, rate, now), now) + this.#reservedTokens * rate.intervalMs
  }

  /** Returns whether tokens may be missing that were taken by another rate. */
  isTakenByOther(rate: TokenRate): boolean {
    const { arrivalMs, rate: former } = this.#taken
    return former !== undefined && !isSameRate(former, rate) && arrivalMs > 0
  }

  sumOf(rate: TokenRate): SharedSum {
    if (!this.#sum || !isSameRate(this.#sum.rate, rate)) this.#sum = new RatedSum(this, rate)
    return this.#sum
  }

  reserve({ slot, tokens }: TakenOfKey): void {
    if (slot !== undefined) this.reservedSlots.add(slot)
    this.#reservedTokens += tokens
  }

  setTaken(children: readonly string[]): void {
    this.takenSlots = new Set(children.map(Number).filter(Number.isSafeInteger))
    this.isStale = false
  }

  /** Returns a free number at random, because other clients choose at the same time. */
  findFreeSlot(count: number): number | undefined {
    // A reserved slot is among the taken ones, too, from the transaction of its claim until the answer.
    let used = this.takenSlots.size
    for (const slot of this.reservedSlots) if (!this.takenSlots.has(slot)) used += 1
    // Slots above the limit are of claims from before it was lowered: they count, too.
    if (used >= count) return undefined
    const first = Math.floor(Math.random() * count)
    const isFree = (slot: number) => !this.takenSlots.has(slot) && !this.reservedSlots.has(slot)
    for (let step = 0; step < count; step += 1) if (isFree((first + step) % count)) return (first + step) % count
    return undefined
  }

  giveBack({ slot, tokens }: TakenOfKey): void {
    if (slot !== undefined) this.reservedSlots.delete(slot)
    this.#reservedTokens -= tokens
  }

  /** Returns the step that takes so many tokens by a rate, and counts anew the tokens that were taken by another rate. */
  toStep(rate: TokenRate, tokens: number): TransactionStep {
    const data = encodeTokens(this.#toData(rate, tokens))
    return { op: op.setData(this.#path, data, { version: this.#version }) }
  }

  onCommitted(rate: TokenRate, tokens: number, stat: Stat | undefined): void {
    this.#version += 1
    this.#taken = toTaken(this.#toData(rate, tokens), stat)
    if (!stat) this.isStale = true
  }

  #toData(rate: TokenRate, tokens: number): TokenData {
    const { arrivalMs: beforeMs, rate: former } = this.#taken
    const isChanged = former !== undefined && !isSameRate(former, rate)
    return { beforeMs, movedMs: tokens * rate.intervalMs, rate, ...(isChanged ? { formerMs: former.intervalMs } : {}) }
  }
}

/** The tokens that claims take of a key by one rate. */
class RatedSum implements SharedSum {
  readonly rate: TokenRate
  readonly #node: KeyNode

  constructor(node: KeyNode, rate: TokenRate) {
    this.#node = node
    this.rate = rate
  }

  toStep(total: number): TransactionStep {
    return this.#node.toStep(this.rate, total)
  }

  onCommitted(total: number, stat: Stat | undefined): void {
    this.#node.onCommitted(this.rate, total, stat)
  }
}
