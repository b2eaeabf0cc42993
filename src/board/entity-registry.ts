/** The participants that this board object shows, kept up over a change of session. */
import { v7 as uuidv7 } from 'uuid'
import type { Backend, Entity } from './backend.ts'

export class EntityRegistry {
  readonly #backend: Backend
  /** With the session that each is registered in. */
  readonly #entities = new Map<Entity, string | undefined>()
  /** Of this object: tells its own leftovers, of a session that is over but not yet expired, from another's. */
  readonly #instance = uuidv7()
  #session: string | undefined

  constructor(backend: Backend) {
    this.#backend = backend
  }

  /** @throws Duplicate while another living participant of the kind bears the name */
  async register(entity: Omit<Entity, 'instance'>): Promise<AsyncDisposable> {
    const registered = { ...entity, instance: this.#instance }
    await this.#register(registered)
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

  async #register(entity: Entity): Promise<void> {
    const session = this.#session
    await this.#backend.register(entity)
    this.#entities.set(entity, session)
  }
}
