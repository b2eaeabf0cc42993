/**
 * The slots and tokens of limits on ZooKeeper, as this client knows them.
 *
 *     <sessions>/.limits/<key>       its data is the arrival time of the key (see model/limits.ts)
 *     <sessions>/.limits/<key>/<n>   the slot with the number n, from 0 to below the limit (ephemeral); its data is the id of the job that
 *                                    holds it, empty in older releases
 *
 * A claim creates the znodes of its slots, and sets the arrival times at the versions that were read. So a slot has one holder, and is free
 * as soon as that claim or its session ends; and of two processes that take the same token one is refused. Claims that one process sends
 * together set the arrival time of a key once, for all of their tokens. These znodes are outside of the tree that boards watch: no client is
 * notified of them.
 *
 * **The arrival time is by the clock of the servers.** A process does not know when its claim will arrive. So it writes two numbers: the
 * arrival time before, and how far the tokens move it. The modification time of the znode, which the server sets, is when they were taken:
 *
 *     arrival time = max(time before, modification time) + moved by
 *
 * After a change of the rate, the first write converts the tokens that were taken by the former one (`toArrivalAt`), at its modification
 * time, too. If such tokens are the reason why a claim is refused, the client makes that write before the refusal: otherwise they would
 * come back at the former rate as long as claims are refused.
 *
 * The cache of a key may be old. If it shows no room, or a claim was refused by it, the key is read again before anything is decided. It is
 * also read again after a write of the gate: every claim checks the version of the gate, so no claim is granted by an older read. Two
 * writers of the gate make this necessary:
 *
 * - A change of a limit. If a concurrency was lowered, jobs hold slots above it, with which no znode of a new claim collides.
 * - The sweep of unused keys (`store/limit-sweep.ts`). The versions of a key that is created again begin at 0, so a version that was read
 *   before the sweep could occur again.
 */

import { keepNewest } from '../../../../core/collections/keep-newest.ts'
import { BadVersion, NodeExists, NoNode, op, type ZooKeeper, type ZooKeeperError } from '../../../../zookeeper/index.ts'
import {
  type ClaimLimit,
  limitReachedError,
  type TokenRate,
  type TokensTaken,
  takeTokens,
  takeTokensInOrder,
} from '../../../model/limits.ts'
import { type Again, TRY_AGAIN, type TransactionPart } from '../commit/parts.ts'
import type { SharedSum } from '../commit/transaction.ts'
import { gateCheckOp } from '../commit/transactions.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import { encodeTokens } from '../store/token-data.ts'
import { KeyNode } from './limit-key.ts'

/** The maximum number of keys in the cache. */
const MAX_CACHED_KEYS = 10_000

export interface LimitReservationsOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
  /** Returns the time of the servers' clock, or an earlier one, in milliseconds since 1970. */
  readonly now: () => number
}

/** The slots and tokens that a claim takes, reserved in this client until the claim is done. */
export interface LimitReservation {
  readonly part: TransactionPart<Again>
  /** The arrival times of the keys with rates, after the claim was granted. */
  readonly arrivals: readonly { readonly key: string; readonly arrivalMs: number }[]
  /** Notes that the claim was granted. */
  granted(): void
  /** Notes that the claim was not granted. If another one had taken a slot or a token, the keys are read again next. */
  refused(): void
}

interface Wanted {
  readonly want: ClaimLimit
  readonly node: KeyNode
}

interface Taken {
  readonly node: KeyNode
  readonly slot: number | undefined
  readonly tokens: number
  /** The sum to which the tokens are added; undefined where there is no rate. */
  readonly sum: SharedSum | undefined
}

export class LimitReservations {
  readonly #options: LimitReservationsOptions
  readonly #keys = new Map<string, KeyNode>()
  /** The slots that claims of this client hold, by job. */
  readonly #held = new Map<string, readonly { readonly key: string; readonly slot: number }[]>()
  readonly #reading = new Map<string, Promise<KeyNode>>()
  /** The version of the gate by which slots and tokens were last reserved. */
  #gateVersion: number | undefined
  /** The number of times that the gate had another version. */
  #epoch = 0

  constructor(options: LimitReservationsOptions) {
    this.#options = options
  }

  /**
   * Reserves what a claim takes.
   *
   * @param gate the version of the gate that the claim will check
   * @throws LimitReached
   */
  async reserve(
    what: string,
    id: string,
    { gate, wants }: { readonly gate: number; readonly wants: readonly ClaimLimit[] },
  ): Promise<LimitReservation> {
    this.#follow(gate)
    const known = (key: string) => {
      const node = this.#keys.get(key)
      return node && !node.isStale ? node : this.#read(key)
    }
    let wanted = await resolveAll(wants, known)
    let blocked = this.#findBlocked(wanted)
    if (blocked) {
      wanted = await resolveAll(wants, (key) => this.#read(key))
      blocked = this.#findBlocked(wanted)
    }
    if (blocked && (await this.#applyRates(wanted, gate))) {
      wanted = await resolveAll(wants, (key) => this.#read(key))
      blocked = this.#findBlocked(wanted)
    }
    if (blocked) throw limitReachedError(what, blocked.want, blocked.until)
    return this.#toReservation(id, wanted.map(take))
  }

  /** Returns for how many calls tokens of the key are free, in their order, and from when they are for the next call. */
  async countFree(
    key: string,
    { gate, rate, costs }: { readonly gate: number; readonly rate: TokenRate; readonly costs: readonly number[] },
  ): Promise<TokensTaken> {
    const count = (node: KeyNode): TokensTaken => {
      const now = this.#options.now()
      const { taken, until } = takeTokensInOrder(node.reservedUntil(rate, now), { rate, costs }, now)
      return { taken, ...(until === undefined ? {} : { until }) }
    }
    const known = this.#keys.get(key)
    const counted = known && !known.isStale ? count(known) : undefined
    if (counted && counted.taken > 0) return counted
    const node = await this.#read(key)
    const free = count(node)
    if (free.taken > 0) return free
    const isApplied = await this.#applyRates([{ want: { key, rate: { ...rate, cost: 1 } }, node }], gate)
    return isApplied ? count(await this.#read(key)) : free
  }

  /** Returns whether the claim of a job holds slots. */
  holdsSlots(id: string): boolean {
    return this.#held.has(id)
  }

  /** Returns the paths of the slots that the claim of a job of this client holds. */
  slotsOf(id: string): readonly string[] {
    return (this.#held.get(id) ?? []).map(({ key, slot }) => this.#options.layout.limitSlot(key, slot))
  }

  /** Notes that the claim of a job has ended. */
  free(id: string): void {
    for (const { key, slot } of this.#held.get(id) ?? []) this.#keys.get(key)?.takenSlots.delete(slot)
    this.#held.delete(id)
  }

  /** Forgets everything: the session is over, and with it every slot. */
  clear(): void {
    this.#keys.clear()
    this.#held.clear()
  }

  /** Returns the first key without room, and when it has room if that is known. */
  #findBlocked(
    wanted: readonly Wanted[],
  ): { readonly want: ClaimLimit; readonly until: number | undefined } | undefined {
    const now = this.#options.now()
    for (const { want, node } of wanted) {
      if (want.concurrency !== undefined && node.findFreeSlot(want.concurrency) === undefined)
        return { want, until: undefined }
      const token = want.rate && takeTokens(node.reservedUntil(want.rate, now), want.rate, now)
      if (token && 'until' in token) return { want, until: token.until }
    }
    return undefined
  }

  /**
   * Writes the current rates of keys whose tokens were taken by former ones, unless the gate or a key was changed meanwhile. Returns
   * whether anything had to be written: then the keys have to be read again.
   */
  async #applyRates(wanted: readonly Wanted[], gate: number): Promise<boolean> {
    const { zookeeper, layout } = this.#options
    const steps = wanted.flatMap(({ want: { rate }, node }) =>
      rate && node.isTakenByOther(rate) ? [node.toStep(rate, 0)] : [],
    )
    if (steps.length === 0) return false
    await zookeeper.multi([gateCheckOp(layout, gate), ...steps.map((step) => step.op)]).catch((error: unknown) => {
      if (!(error instanceof BadVersion || error instanceof NoNode)) throw error
    })
    return true
  }

  #toReservation(id: string, taken: readonly Taken[]): LimitReservation {
    const { layout } = this.#options
    const slots = taken.flatMap(({ node: { key }, slot }) => (slot === undefined ? [] : [{ key, slot }]))
    const tokens = taken.flatMap((each) => (each.sum ? [{ ...each, sum: each.sum }] : []))
    let isStale = false
    return {
      part: {
        steps: slots.map(({ key, slot }) => ({
          op: op.create(layout.limitSlot(key, slot), Buffer.from(id), { ephemeral: true }),
        })),
        additions: tokens.map(({ sum, tokens: amount }) => ({ sum, amount })),
        // Another claim has taken a slot or a token meanwhile, or the znode of the key was swept.
        onRefused: (error) => {
          if (!isTaken(error)) return undefined
          isStale = true
          return TRY_AGAIN
        },
      },
      get arrivals() {
        return tokens.map(({ node: { key, arrivalMs } }) => ({ key, arrivalMs }))
      },
      granted: () => {
        if (slots.length > 0) this.#held.set(id, slots)
        for (const each of taken) {
          each.node.giveBack(each)
          if (each.slot !== undefined) each.node.takenSlots.add(each.slot)
        }
      },
      refused: () => {
        for (const each of taken) {
          each.node.giveBack(each)
          if (isStale) each.node.isStale = true
        }
      },
    }
  }

  /** Marks every key to be read again after a write of the gate: from then on no claim by what was read before is granted. */
  #follow(gateVersion: number): void {
    if (gateVersion === this.#gateVersion) return
    this.#gateVersion = gateVersion
    this.#epoch += 1
    for (const node of this.#keys.values()) node.isStale = true
  }

  /** Reads the znode of the key. Claims that need it at the same time share one read. */
  #read(key: string): Promise<KeyNode> {
    const reading = this.#reading.get(key) ?? this.#readNow(key).finally(() => this.#reading.delete(key))
    this.#reading.set(key, reading)
    return reading
  }

  /** Reads the znode of the key and its children, in one round trip; creates it if it is missing. */
  async #readNow(key: string): Promise<KeyNode> {
    const { zookeeper, layout } = this.#options
    const path = layout.limitKey(key)
    while (true) {
      const epoch = this.#epoch
      const { results } = await zookeeper.multiRead([op.getData(path), op.getChildren(path)])
      const [data, children] = results
      // The answer may be older than a write of the gate that this process has received meanwhile.
      if (epoch !== this.#epoch) continue
      if (!data.error && !children.error) {
        const known = this.#keys.get(key)
        // After a change by another process, claims that have reserved tokens before it must be refused: they keep the old version.
        const node = known?.isAt(data.stat) ? known : new KeyNode(key, path, data)
        node.setTaken(children.names)
        this.#remember(node)
        return node
      }
      await zookeeper.mkdirp(layout.limitsFolder)
      await zookeeper.create(path, encodeTokens({ beforeMs: 0, movedMs: 0 })).catch((error: unknown) => {
        if (!(error instanceof NodeExists)) throw error
      })
    }
  }

  #remember(node: KeyNode): void {
    this.#keys.set(node.key, node)
    keepNewest(this.#keys, MAX_CACHED_KEYS)
  }
}

async function resolveAll(
  wants: readonly ClaimLimit[],
  toNode: (key: string) => KeyNode | Promise<KeyNode>,
): Promise<readonly Wanted[]> {
  return Promise.all(wants.map(async (want) => ({ want, node: await toNode(want.key) })))
}

/** Reserves what a claim wants of one key, after it was found that there is room. */
function take({ want, node }: Wanted): Taken {
  const slot = want.concurrency === undefined ? undefined : node.findFreeSlot(want.concurrency)
  const tokens = want.rate?.cost ?? 0
  node.reserve({ slot, tokens })
  return { node, slot, tokens, sum: want.rate && node.sumOf(want.rate) }
}

function isTaken(error: ZooKeeperError): boolean {
  return error instanceof BadVersion || error instanceof NodeExists || error instanceof NoNode
}
