/** The entities that this board object registers, registered again in each new session. */
import { retryUntilAborted } from '../../core/async/retry.ts'
import { asError, Duplicate, InvalidArgument, JobboardError, NotConnected, NotFound } from '../../core/errors.ts'
import { nameFault } from '../../core/texts.ts'
import { newUuid } from '../../core/uuid.ts'
import type { BackendEntities, Entity } from '../contract/index.ts'
import { assertMetadata } from '../model/entity-metadata.ts'

/** A participant that is shown on the board until it is disposed. */
export interface RegisteredEntity extends AsyncDisposable {
  /** Replaces the metadata of the entity in one transaction. @throws NotFound when it was disposed; NotConnected */
  update(metadata: Entity['metadata']): Promise<void>
}

/** An entity to be shown, and the session in which it is registered. */
interface RegistryEntry {
  entity: Entity
  /** The session in which the entity is registered; undefined before. */
  session: string | undefined
  /** The form in which it is registered; undefined before. */
  written: Entity | undefined
  /** The write that is under way. */
  writing: Promise<void> | undefined
}

export interface EntityRegistryOptions {
  readonly entities: Pick<BackendEntities, 'register' | 'unregister'>
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  /** Called with the error of a registration that is retried. */
  readonly onError: (error: Error) => void
}

export class EntityRegistry {
  readonly #entities: EntityRegistryOptions['entities']
  readonly #signal: AbortSignal
  readonly #onError: (error: Error) => void
  /** The entities that have to be registered. */
  readonly #registered = new Set<RegistryEntry>()
  /**
   * The id by which this object recognizes its own entities of an earlier session that has not expired yet, as opposed to those
   * of another object.
   */
  readonly #instance = newUuid()
  #session: string | undefined

  constructor({ entities, signal, onError }: EntityRegistryOptions) {
    this.#entities = entities
    this.#signal = signal
    this.#onError = onError
  }

  /** Registers an entity until it is disposed. @throws Duplicate while another living entity of this kind has the name */
  async register(entity: Omit<Entity, 'instance'>): Promise<RegisteredEntity> {
    assertEntity(entity)
    assertMetadata(entity)
    for (const { entity: other } of this.#registered) {
      if (other.kind === entity.kind && other.name === entity.name)
        throw new Duplicate(`${entity.kind} ${entity.name} is already registered by this board object`)
    }
    const shown: RegistryEntry = {
      entity: { ...entity, instance: this.#instance },
      ...{ session: undefined, written: undefined, writing: undefined },
    }
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
        if (this.#registered.delete(shown)) await this.#entities.unregister(shown.entity)
      },
    }
  }

  /** Registers the entities that are not registered in this session yet. */
  async sessionStarted(session: string): Promise<void> {
    this.#session = session
    const missing = [...this.#registered].filter((shown) => shown.session !== session)
    await Promise.all(missing.map((shown) => this.#registerWithRetries(shown, session)))
  }

  async #update(shown: RegistryEntry, metadata: Entity['metadata']): Promise<void> {
    const entity = { ...shown.entity, metadata }
    assertEntity(entity)
    assertMetadata(entity)
    if (!this.#registered.has(shown))
      throw new NotFound(`${entity.kind} ${entity.name} is no longer registered: it was disposed`)
    shown.entity = entity
    await this.#register(shown)
  }

  /** Registers the entity, with retries after retryable errors: there is no other attempt before the next session. */
  async #registerWithRetries(shown: RegistryEntry, session: string): Promise<void> {
    const register = async () => (this.#session === session ? this.#register(shown) : undefined)
    await retryUntilAborted(register, {
      ...{ firstPauseMs: 50, maxPauseMs: 2_000, signal: this.#signal },
      isRetryable: (error) => error instanceof JobboardError && error.retryable,
      onRetry: (error, attempt) => {
        if (attempt === 1 && !(error instanceof NotConnected)) this.#onError(asError(error))
      },
    })
  }

  /**
   * Registers the entity until its current form is in the current session: a session that ends meanwhile removes its entities. There is one
   * write of an entity at a time: of two, the older one could reach the server last, and replace the newer one.
   */
  async #register(shown: RegistryEntry): Promise<void> {
    while (this.#registered.has(shown) && !this.#isCurrent(shown)) {
      if (shown.writing !== undefined) {
        await shown.writing.catch(() => undefined)
        continue
      }
      const writing = this.#write(shown)
      shown.writing = writing
      try {
        await writing
      } finally {
        shown.writing = undefined
      }
    }
  }

  async #write(shown: RegistryEntry): Promise<void> {
    const { entity } = shown
    const session = this.#session
    await this.#entities.register(entity)
    if (!this.#registered.has(shown)) await this.#entities.unregister(entity)
    else {
      shown.session = session
      shown.written = entity
    }
  }

  #isCurrent({ entity, written, session }: RegistryEntry): boolean {
    return entity === written && session === this.#session
  }
}

/** Returns the living entities of a kind, of all processes. @throws InvalidArgument, NotConnected */
export async function listEntities(kind: string, entities: Pick<BackendEntities, 'list'>): Promise<Entity[]> {
  assertKind(kind)
  return entities.list(kind)
}

/** Checks an entity that a caller registers. @throws InvalidArgument */
function assertEntity(entity: Omit<Entity, 'instance'>): void {
  const { kind, name, metadata }: Partial<Entity> = Object(entity)
  const example = "as in registerEntity({ kind: 'worker', name: 'one', metadata: {} })"
  if (!isName(kind) || !isName(name))
    throw new InvalidArgument(`registerEntity: kind and name must be non-empty strings, ${example}`)
  const fault = nameFault(kind) ?? nameFault(name)
  if (fault !== undefined) throw new InvalidArgument(`registerEntity: kind or name ${fault}`)
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw new InvalidArgument(`registerEntity: metadata must be an object, ${example}`)
}

/** Checks the kind of entities that a caller lists. @throws InvalidArgument */
function assertKind(kind: unknown): void {
  if (!isName(kind))
    throw new InvalidArgument("entities: kind must be a non-empty string, as in board.entities('conductor')")
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
