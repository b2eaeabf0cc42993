/** The participants of a memory board, each shown for as long as its session lasts. */
import { decode, encode } from '../../../core/codec.ts'
import type { BackendEntities, Entity } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { MemoryBoard } from './store/board.ts'
import { ENCODING } from './store/rows.ts'

export class EntitySteps {
  readonly #entities = new Map<string, { readonly entity: Entity; readonly session: string }>()

  /** @throws Duplicate while another living instance has the name */
  register(entity: Entity, session: string): void {
    const { kind, name, instance } = entity
    const living = this.#entities.get(keyOf(entity))
    if (living && living.entity.instance !== instance)
      throw refusalError(`registering ${kind} ${name}`, { why: 'name' })
    this.#entities.set(keyOf(entity), { entity: decode(encode(entity, ENCODING), ENCODING) as Entity, session })
  }

  unregister(entity: Entity): void {
    if (this.#entities.get(keyOf(entity))?.entity.instance === entity.instance) this.#entities.delete(keyOf(entity))
  }

  list(kind: string): Entity[] {
    return [...this.#entities.values()].map(({ entity }) => entity).filter((entity) => entity.kind === kind)
  }

  /** Removes the entities of a session that has ended. */
  removeOf(session: string): void {
    for (const [key, { session: owner }] of this.#entities) if (owner === session) this.#entities.delete(key)
  }
}

export class MemoryEntities implements BackendEntities {
  readonly #board: MemoryBoard<{ readonly entities: EntitySteps }>

  constructor(board: MemoryBoard<{ readonly entities: EntitySteps }>) {
    this.#board = board
  }

  async register(entity: Entity): Promise<void> {
    this.#board.steps.entities.register(entity, this.#board.requireOpen().session)
  }

  async unregister(entity: Entity): Promise<void> {
    if (this.#board.open) this.#board.steps.entities.unregister(entity)
  }

  async list(kind: string): Promise<Entity[]> {
    return this.#board.steps.entities.list(kind)
  }
}

function keyOf({ kind, name }: Entity): string {
  return JSON.stringify([kind, name])
}
