/** The participants that this board object shows, kept up over a change of session. */

import { Duplicate } from '../core/errors.ts'
import { newUuid } from '../core/uuid.ts'
import type { Backend, Entity } from './backend.ts'
import { assertEntity } from './options.ts'

export class EntityRegistry {
  readonly #backend: Backend
  /** With the session that each is registered in, once it is. Being in here is what wants it registered. */
  readonly #entities = new Map<Entity, string | undefined>()
  /** Of this object: tells its own leftovers, of a session that is over but not yet expired, from another's. */
  readonly #instance = newUuid()
  #session: string | undefined

  constructor(backend: Backend) {
    this.#backend = backend
  }

  /** @throws Duplicate while another living participant of the kind bears the name */
  async register(entity: Omit<Entity, 'instance'>): Promise<AsyncDisposable> {
    assertEntity(entity)
    for (const { kind, name } of this.#entities.keys()) {
      if (kind === entity.kind && name === entity.name) throw new Duplicate(`this board shows ${kind} ${name} already`)
    }
    const registered = { ...entity, instance: this.#instance }
    this.#entities.set(registered, undefined)
    try {
      await this.#register(registered)
    } catch (error) {
      this.#entities.delete(registered)
      throw error
    }
    return {
      [Symbol.asyncDispose]: async () => {
        if (this.#entities.delete(registered)) await this.#backend.unregister(registered)
      },
    }
  }

  /** Registers whoever is not registered in this session yet. */
  async connected(session: string): Promise<void> {
    this.#session = session
    const missing = [...this.#entities].filter(([, registered]) => registered !== session)
    await Promise.all(missing.map(([entity]) => this.#register(entity)))
  }

  /** Until it is in the session there is: one that ended meanwhile took it along. */
  async #register(entity: Entity): Promise<void> {
    while (this.#entities.has(entity)) {
      const session = this.#session
      await this.#backend.register(entity)
      if (!this.#entities.has(entity)) await this.#backend.unregister(entity)
      else this.#entities.set(entity, session)
      if (session === this.#session) return
    }
  }
}
