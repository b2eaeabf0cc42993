/**
 * Distinguishes an owner that died from an owner that lost its session and lives.
 *
 * Each board object that claims has an *incarnation*, a random id that is written into the attempts of its claims and
 * registered on the board as an entity. The entity ends with the session and is registered again in the next session. So
 * an attempt without an end whose incarnation is registered at the next claim belongs to a process that lives: an outage
 * of the store ended its session, and the job is not charged. A process that was killed never registers its incarnation
 * again, and a process that is started again, also under the same name, has another one.
 *
 * An incarnation also ends when the event loop was blocked for half of the session's timeout before the session was lost. The work
 * itself can block the event loop, and without a limit such a job would be retried for ever.
 */
import { type Clock, type Instant, systemClock } from '../../core/time.ts'
import { newUuid } from '../../core/uuid.ts'
import type { Backend } from '../contract/index.ts'
import type { EntityRegistry, RegisteredEntity } from '../records/entity-registry.ts'

/** The kind of the entities that incarnations are registered as. */
export const OWNER_KIND = 'jobboard-owner'

/** The longest time between two looks at the clock, in milliseconds. */
const MAX_PERIOD_MS = 1_000

export interface IncarnationOptions {
  readonly backend: Pick<Backend, 'entities' | 'session'>
  readonly entities: Pick<EntityRegistry, 'register'>
  readonly clock?: Clock
}

export class Incarnation {
  readonly #options: IncarnationOptions
  readonly #clock: Clock
  #id = newUuid()
  #registration: Promise<RegisteredEntity | undefined> | undefined
  #watch: NodeJS.Timeout | undefined
  #seenAt: Instant
  /** The time at which the event loop last continued after it was blocked. */
  #stalledAt: Instant | undefined

  constructor(options: IncarnationOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#seenAt = this.#clock()
  }

  /** The id that the attempts of this owner carry. */
  get id(): string {
    return this.#id
  }

  /** Registers the incarnation unless it is registered. If that fails, it counts as dead, and the next call tries again. */
  register(): void {
    const entity = { kind: OWNER_KIND, name: this.#id, metadata: {} }
    this.#registration ??= this.#options.entities.register(entity).catch(() => {
      this.#registration = undefined
      return undefined
    })
  }

  /** Registers the incarnation, and watches the event loop until {@link stopWatching}. Claims do not wait for it. */
  start(): void {
    this.register()
    const { timeout } = this.#options.backend.session
    if (this.#watch || timeout === undefined) return
    this.#seenAt = this.#clock()
    this.#watch = setInterval(() => this.#checkClock(), Math.min(MAX_PERIOD_MS, timeout / 8)).unref()
  }

  /** Stops watching the event loop: no claim is held. */
  stopWatching(): void {
    clearInterval(this.#watch)
    this.#watch = undefined
    this.#stalledAt = undefined
  }

  /** Begins another incarnation if this process itself was the reason why the session was lost. */
  sessionLost(): void {
    if (!this.#watch || !this.#hasStalled()) return
    const former = this.#registration
    this.#id = newUuid()
    this.#registration = undefined
    this.#stalledAt = undefined
    void former?.then((entity) => entity?.[Symbol.asyncDispose]()).catch(() => undefined)
  }

  /**
   * Returns the living incarnations among the given ones. Costs one listing of entities, unless this one is the only one given.
   *
   * @throws NotConnected when the entities cannot be listed
   */
  async listLiving(incarnations: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const own = new Set(incarnations.has(this.#id) ? [this.#id] : [])
    if (incarnations.size === own.size) return own
    const registered = new Set((await this.#options.backend.entities.list(OWNER_KIND)).map(({ name }) => name))
    return new Set([...own, ...[...incarnations].filter((incarnation) => registered.has(incarnation))])
  }

  #checkClock(): void {
    const now = this.#clock()
    if (elapsedMs(this.#seenAt, now) >= this.#toleratedStallMs) this.#stalledAt = now
    this.#seenAt = now
  }

  /** Returns whether the event loop was blocked within the last session timeout. */
  #hasStalled(): boolean {
    this.#checkClock()
    return this.#stalledAt !== undefined && elapsedMs(this.#stalledAt, this.#clock()) <= 2 * this.#toleratedStallMs
  }

  get #toleratedStallMs(): number {
    return (this.#options.backend.session.timeout ?? Number.POSITIVE_INFINITY) / 2
  }
}

/** Returns the milliseconds between two instants, by the wall clock if the machine was suspended. */
function elapsedMs(from: Instant, to: Instant): number {
  return Math.max(to.monotonic - from.monotonic, to.wall - from.wall)
}
