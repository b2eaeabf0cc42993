/** Reads limits for `board.limits.list` and `show`: what is set, what claims have taken, and how many jobs wait. */
import { NotFound } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { isLimitOf, type LimitUse } from '../model/limits.ts'
import type { RecordStore } from '../records/record-store.ts'
import { indexViews, type LimitView, type LimitViewOptions, toHeld, toKeyUses, toLimitView } from './limit-view.ts'
import type { HoldRecord, LimitRecord } from './record.ts'
import { countWaiting, joinCounts, type KeyCount, toWaiting, type UnclaimedJob, type WaitingCount } from './waiting.ts'

/** The parts of a board from which limits are read. */
export interface LimitReaderHost {
  /** Returns the time of the board's clock, in milliseconds since 1970. */
  now(): number
  /** Returns the slots and tokens that claims have taken, of these keys or of up to 1,000 of all. @throws NotConnected */
  use(keys?: readonly string[]): Promise<readonly LimitUse[]>
  /** Yields the unclaimed jobs of the board. @throws NotConnected */
  unclaimed(): AsyncIterable<UnclaimedJob>
}

export interface LimitStores {
  readonly limits: RecordStore<LimitRecord>
  readonly holds: RecordStore<HoldRecord>
}

export class LimitReader {
  readonly #host: LimitReaderHost
  readonly #stores: LimitStores

  constructor(host: LimitReaderHost, stores: LimitStores) {
    this.#host = host
    this.#stores = stores
  }

  /** Returns the limits and holds that are set, ordered by key, without what is taken. @throws NotConnected */
  async listSet(): Promise<LimitView[]> {
    const [limits, holds] = await Promise.all([this.#stores.limits.list(), this.#stores.holds.list()])
    const byKey = new Map(limits.map((record) => [record.id, toLimitView(record)]))
    for (const hold of holds) {
      const held = toHeld(hold, this.#host.now())
      if (held) byKey.set(hold.id, { ...(byKey.get(hold.id) ?? { key: hold.id }), held })
    }
    return [...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** Returns the limits and holds that are set, ordered by key, with their keys in use. @throws NotConnected */
  async list(options: LimitViewOptions): Promise<LimitView[]> {
    return this.#withKeys(await this.listSet(), await this.#count(options))
  }

  /** Returns the limit that applies to a key, or the limit of a pattern with its keys. @throws NotFound, NotConnected */
  async show(key: string, options: LimitViewOptions): Promise<LimitView> {
    const views = await this.listSet()
    if (key.endsWith('*')) return this.#showPattern(key, views, options)
    const matching = indexViews(views)
      .findAll(key)
      .filter((view) => isLimitOf(view.key, key))
    const limit = matching.find(({ set, error }) => set ?? error)
    const held = matching.find((view) => view.held)?.held
    if (!limit && !held) throw new NotFound(`limit ${key}: nothing is set for it, nor for a pattern that it matches`)
    const { held: _, ...settings } = limit ?? { key }
    const view = { ...settings, ...defined({ held }) }
    const counted = await this.#count(options)
    const ofKey = counted && { ...counted, byKey: new Map([[key, counted.byKey.get(key) ?? 0]]) }
    return this.#withCounts(view, joinCounts(await this.#host.use([key]), ofKey), ofKey)
  }

  async #showPattern(key: string, views: readonly LimitView[], options: LimitViewOptions): Promise<LimitView> {
    if (!views.some((view) => view.key === key)) throw new NotFound(`limit ${key}: nothing is set for this pattern`)
    const all = await this.#withKeys(views, await this.#count(options))
    return all.find((view) => view.key === key) ?? { key }
  }

  async #count({ waiting = false }: LimitViewOptions): Promise<WaitingCount | undefined> {
    return waiting ? countWaiting(this.#host.unclaimed(), { now: this.#host.now() }) : undefined
  }

  /** Adds to each view the keys in use to which its limit applies. A key without a limit is added to its hold. */
  async #withKeys(views: readonly LimitView[], counted: WaitingCount | undefined): Promise<LimitView[]> {
    const byLimit = new Map<LimitView, KeyCount[]>()
    const index = indexViews(views)
    for (const count of joinCounts(await this.#useOf(views), counted)) {
      const matching = index.findAll(count.key)
      const limit = matching.find(({ set, error }) => set ?? error) ?? matching[0]
      if (!limit) continue
      const keys = byLimit.get(limit)
      if (keys) keys.push(count)
      else byLimit.set(limit, [count])
    }
    return views.map((view) => this.#withCounts(view, byLimit.get(view) ?? [], counted))
  }

  /** Returns the use of some keys, and of each key with a limit of its own, which may not be among the first. */
  async #useOf(views: readonly LimitView[]): Promise<readonly LimitUse[]> {
    const own = views.flatMap(({ key }) => (key.endsWith('*') ? [] : [key]))
    const uses = await Promise.all([this.#host.use(), ...(own.length > 0 ? [this.#host.use(own)] : [])])
    return [...new Map(uses.flat().map((use) => [use.key, use])).values()]
  }

  #withCounts(view: LimitView, keys: readonly KeyCount[], counted: WaitingCount | undefined): LimitView {
    return { ...view, ...toWaiting(keys, counted), ...toKeyUses(view, keys, this.#host.now()) }
  }
}
