/**
 * The slots and tokens of limits on ZooKeeper, as this client knows them.
 *
 *     <sessions>/.limits/<key>       its data is the arrival time of the key (see model/limits.ts)
 *     <sessions>/.limits/<key>/<n>   the slot with the number n, from 0 to below the limit (ephemeral)
 *
 * A claim creates the znodes of its slots, and sets the arrival times at the versions that were read. So a slot has one holder, and is free
 * as soon as that claim or its session ends; and of two claims that take the same token one is refused. They are outside of the tree that
 * boards watch: nobody is notified of them.
 *
 * What is cached of a key may be old. If it shows no room, or a claim was refused by it, the key is read again before anything is decided.
 */
import { createDeferred } from '../../../core/async/abort.ts'
import { LimitsChanged } from '../../../core/errors.ts'
import { NodeExists, op, type ZooKeeper } from '../../../zookeeper/index.ts'
import { type ClaimLimit, limitReachedError, takeTokens } from '../../model/limits.ts'
import type { TransactionStep } from './commit/transactions.ts'
import type { Layout } from './store/layout.ts'

/** The number of keys of which something is cached. */
const MAX_CACHED_KEYS = 10_000

export interface LimitNodesOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: Layout
  /** Returns the time of the servers' clock, or an earlier one, in milliseconds since 1970. */
  readonly now: () => number
}

/** What a claim takes, reserved in this client until the claim is done. */
export interface LimitReservation {
  readonly steps: readonly TransactionStep[]
  readonly arrivals: readonly { readonly key: string; readonly arrivalMs: number }[]
  /** Notes that the claim was granted. */
  granted(): void
  /** Notes that the claim was not granted. @param stale whether one of these steps was refused, so that what is cached is old */
  refused(options: { readonly stale: boolean }): void
}

interface KeyState {
  readonly version: number
  readonly arrivalMs: number
  /** The numbers of the slots that are taken. */
  readonly slots: Set<number>
}

interface Taken {
  readonly key: string
  readonly slot: number | undefined
  readonly arrivalMs: number | undefined
}

export class LimitNodes {
  readonly #options: LimitNodesOptions
  readonly #keys = new Map<string, KeyState>()
  /** The slots that claims of this client hold, by job. */
  readonly #held = new Map<string, readonly { readonly key: string; readonly slot: number }[]>()
  /** For each key with a rate: resolves when the claim that takes a token of it is done. One at a time changes the version. */
  readonly #busy = new Map<string, Promise<void>>()

  constructor(options: LimitNodesOptions) {
    this.#options = options
  }

  /**
   * Reserves what a claim takes.
   *
   * @throws LimitReached
   */
  async reserve(what: string, id: string, wants: readonly ClaimLimit[]): Promise<LimitReservation> {
    const release = await this.#lock(wants.flatMap(({ key, rate }) => (rate ? [key] : [])))
    try {
      let taken = await this.#take(what, wants, { isFresh: false })
      taken ??= await this.#take(what, wants, { isFresh: true })
      if (!taken) throw new LimitsChanged(`${what}: its limits are changing`)
      return this.#toReservation(id, taken, release)
    } catch (error) {
      release()
      throw error
    }
  }

  /** Returns the paths of the slots that the claim of a job holds. */
  slotsOf(id: string): readonly string[] {
    return (this.#held.get(id) ?? []).map(({ key, slot }) => this.#options.layout.limitSlot(key, slot))
  }

  /** Notes that the claim of a job has ended. */
  free(id: string): void {
    for (const { key, slot } of this.#held.get(id) ?? []) this.#keys.get(key)?.slots.delete(slot)
    this.#held.delete(id)
  }

  /** Forgets everything: the session is over, and with it every slot. */
  clear(): void {
    this.#keys.clear()
    this.#held.clear()
  }

  /**
   * Takes slots and tokens in this client. Returns undefined if what is cached shows no room, which may be old.
   *
   * @throws LimitReached for what was just read
   */
  async #take(
    what: string,
    wants: readonly ClaimLimit[],
    { isFresh }: { readonly isFresh: boolean },
  ): Promise<readonly Taken[] | undefined> {
    const states = await Promise.all(
      wants.map(({ key }) => (isFresh ? undefined : this.#keys.get(key)) ?? this.#read(key)),
    )
    const now = this.#options.now()
    const taken: Taken[] = []
    for (const [index, want] of wants.entries()) {
      const state = states[index]
      if (!state) return undefined
      const slot = want.concurrency === undefined ? undefined : freeSlot(state.slots, want.concurrency)
      const token = want.rate && takeTokens(state.arrivalMs, want.rate, now)
      const until = token && 'until' in token ? token.until : undefined
      if ((want.concurrency !== undefined && slot === undefined) || until !== undefined) {
        if (!isFresh) return undefined
        throw limitReachedError(what, want, until === undefined ? undefined : new Date(until))
      }
      taken.push({ key: want.key, slot, arrivalMs: token && 'arrivalMs' in token ? token.arrivalMs : undefined })
    }
    for (const { key, slot } of taken) if (slot !== undefined) this.#keys.get(key)?.slots.add(slot)
    return taken
  }

  #toReservation(id: string, taken: readonly Taken[], release: () => void): LimitReservation {
    const { layout } = this.#options
    const steps = taken.flatMap(({ key, slot, arrivalMs }) => {
      const { version = 0 } = this.#keys.get(key) ?? {}
      const node = layout.limitKey(key)
      return [
        ...(arrivalMs === undefined ? [] : [op.setData(node, encodeArrival(arrivalMs), { version })]),
        ...(slot === undefined ? [] : [op.create(layout.limitSlot(key, slot), null, { ephemeral: true })]),
      ].map((each): TransactionStep => ({ subject: 'limit', op: each }))
    })
    const slots = taken.flatMap(({ key, slot }) => (slot === undefined ? [] : [{ key, slot }]))
    return {
      steps,
      arrivals: taken.flatMap(({ key, arrivalMs }) => (arrivalMs === undefined ? [] : [{ key, arrivalMs }])),
      granted: () => {
        if (slots.length > 0) this.#held.set(id, slots)
        for (const { key, arrivalMs } of taken) if (arrivalMs !== undefined) this.#noteArrival(key, arrivalMs)
        release()
      },
      refused: ({ stale }) => {
        for (const { key, slot } of slots) this.#keys.get(key)?.slots.delete(slot)
        if (stale) for (const { key } of taken) this.#keys.delete(key)
        release()
      },
    }
  }

  #noteArrival(key: string, arrivalMs: number): void {
    const state = this.#keys.get(key)
    if (state) this.#keys.set(key, { ...state, version: state.version + 1, arrivalMs })
  }

  /** Reads the znode of the key and its children, in one round trip; creates it if it is missing. */
  async #read(key: string): Promise<KeyState> {
    const { zookeeper, layout } = this.#options
    const path = layout.limitKey(key)
    while (true) {
      const { results } = await zookeeper.multiRead([op.getData(path), op.getChildren(path)])
      const [data, children] = results
      if (!data.error && !children.error) {
        const names = children.names.map(Number).filter(Number.isSafeInteger)
        const state = { version: data.stat.version, arrivalMs: decodeArrival(data.data), slots: new Set(names) }
        this.#remember(key, state)
        return state
      }
      await zookeeper.mkdirp(layout.limitsFolder)
      await zookeeper.create(path, encodeArrival(0)).catch((error: unknown) => {
        if (!(error instanceof NodeExists)) throw error
      })
    }
  }

  #remember(key: string, state: KeyState): void {
    const [oldest] = this.#keys.keys()
    if (this.#keys.size >= MAX_CACHED_KEYS && oldest !== undefined) this.#keys.delete(oldest)
    this.#keys.set(key, state)
  }

  /** Resolves with a function that ends the lock, when no other claim of this client takes tokens of these keys. */
  async #lock(keys: readonly string[]): Promise<() => void> {
    if (keys.length === 0) return () => undefined
    const { promise: done, resolve } = createDeferred()
    const before = keys.map((key) => this.#busy.get(key))
    // Taken in one step for all keys: two claims cannot wait for each other.
    for (const key of keys) this.#busy.set(key, done)
    await Promise.all(before)
    return () => {
      for (const key of keys) if (this.#busy.get(key) === done) this.#busy.delete(key)
      resolve()
    }
  }
}

/** Returns a free number at random: other clients choose at the same time. */
function freeSlot(taken: ReadonlySet<number>, count: number): number | undefined {
  // Slots above the limit are of claims from before it was lowered: they count, too.
  const free = count - taken.size
  if (free <= 0) return undefined
  const first = Math.floor(Math.random() * count)
  for (let step = 0; step < count; step += 1) {
    const slot = (first + step) % count
    if (!taken.has(slot)) return slot
  }
  return undefined
}

function encodeArrival(arrivalMs: number): Uint8Array {
  return Buffer.from(String(arrivalMs))
}

/** Anything that is not a time counts as none: tokens are taken from now on. */
function decodeArrival(bytes: Uint8Array | null): number {
  const arrival = Number(Buffer.from(bytes ?? []).toString())
  return Number.isFinite(arrival) ? arrival : 0
}
