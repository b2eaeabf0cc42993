/** The participants that this board object shows, kept up over a change of session. */

import { Duplicate, JobboardError, NotConnected, NotFound } from '../../core/errors.ts'
import { backoffDelay, sleep } from '../../core/time.ts'
import { newUuid } from '../../core/uuid.ts'
import type { Backend, Entity } from '../backend.ts'
import { assertEntity } from './options.ts'

/** A participant that is shown on the board until it is disposed. */
export interface RegisteredEntity extends AsyncDisposable {
  /** Shows something else from now on. One transaction. @throws NotFound when it was disposed; NotConnected */
  update(metadata: Entity['metadata']): Promise<void>
}

/** What is shown, and what it was registered with. */
interface RegistryEntry {
  entity: Entity
  /** The session that it is registered in, once it is. */
  session: string | undefined
}

export interface EntityRegistryOptions {
  readonly backend: Backend
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  /** Told of what is tried again. */
  readonly onError: (error: Error) => void
}

export class EntityRegistry {
  readonly #backend: Backend
  readonly #signal: AbortSignal
  readonly #onError: (error: Error) => void
  /** Being in here is what wants it registered. */
  readonly #registered = new Set<RegistryEntry>()
  /** Of this object: tells its own leftovers, of a session that is over but not yet expired, from another's. */
  readonly #instance = newUuid()
  #session: string | undefined

  constructor({ backend, signal, onError }: EntityRegistryOptions) {
    this.#backend = backend
    this.#signal = signal
    this.#onError = onError
  }

  /** @throws Duplicate while another living participant of the kind bears the name */
  async register(entity: Omit<Entity, 'instance'>): Promise<RegisteredEntity> {
    assertEntity(entity)
    for (const { entity: other } of this.#registered) {
      if (other.kind === entity.kind && other.name === entity.name)
        throw new Duplicate(`this board shows ${entity.kind} ${entity.name} already`)
    }
    const shown: RegistryEntry = { entity: { ...entity, instance: this.#instance }, session: undefined }
    this.#registered.add(shown)
    try {
      await this.#register(shown)
    } catch (error) {
      this.#registered.delete(shown)
      throw error
    }
    return {
      update: (metadata) => this.#update(shown, metadata),
      [Symbol.asyncDispose]: async () => {
        if (this.#registered.delete(shown)) await this.#backend.unregister(shown.entity)
      },
    }
  }

  /** Registers whoever is not registered in this session yet. */
  async sessionStarted(session: string): Promise<void> {
    this.#session = session
    const missing = [...this.#registered].filter((shown) => shown.session !== session)
    await Promise.all(missing.map((shown) => this.#registerWithRetries(shown, session)))
  }

  async #update(shown: RegistryEntry, metadata: Entity['metadata']): Promise<void> {
    const entity = { ...shown.entity, metadata }
    assertEntity(entity)
    if (!this.#registered.has(shown)) throw new NotFound(`${entity.kind} ${entity.name} is not shown any more`)
    shown.entity = entity
    await this.#register(shown)
  }

  /** Nobody asks for it again before there is another session: what may pass is tried until it has. */
  async #registerWithRetries(shown: RegistryEntry, session: string): Promise<void> {
    for (let attempt = 1; this.#session === session && !this.#signal.aborted; attempt += 1) {
      try {
        await this.#register(shown)
        return
      } catch (error) {
        if (!(error instanceof JobboardError && error.retryable)) throw error
        if (attempt === 1 && !(error instanceof NotConnected)) this.#onError(error)
        await sleep(backoffDelay(attempt, { first: 50, max: 2_000 }), { signal: this.#signal }).catch(() => undefined)
      }
    }
  }

  /** Until it is in the session there is, as it is now: one that ended meanwhile took it along. */
  async #register(shown: RegistryEntry): Promise<void> {
    while (this.#registered.has(shown)) {
      const { entity } = shown
      const session = this.#session
      await this.#backend.register(entity)
      if (!this.#registered.has(shown)) await this.#backend.unregister(entity)
      else shown.session = session
      if (session === this.#session && entity === shown.entity) return
    }
  }
}
