/** Registers participants with the session, and lists them. */
import type { BackendEntities, Entity } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { metadataReader } from '../../model/entity-metadata.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import type { RedisBoard } from './commit/board.ts'
import { type ScriptStep, SMALL_STEP_BYTES } from './commit/steps.ts'
import { decodeEntity, decodeText, encodeEntity } from './store/encodings.ts'
import { fieldName } from './store/layout.ts'
import { toList } from './store/replies.ts'

export class RedisEntities implements BackendEntities {
  readonly #board: RedisBoard
  readonly #unreadable: UnreadableValues

  constructor(board: RedisBoard) {
    this.#board = board
    this.#unreadable = new UnreadableValues({ onError: (error) => board.reportError(error) })
  }

  async register(entity: Entity): Promise<void> {
    const step = registerStep(entity, await this.#board.open.session.whenAlive())
    let { done, wasReleasedSince } = await this.#board.submit(step)
    if (wasReleasedSince) ({ done } = await this.#board.submit(step))
    if (!done) throw refusalError(`registering ${entity.kind} ${entity.name}`, { why: 'name' })
  }

  async unregister(entity: Entity): Promise<void> {
    if (this.#board.opened?.session.attached) await this.#board.submit(unregisterStep(entity))
  }

  async list(kind: string): Promise<Entity[]> {
    // Entities of dead owners are removed first.
    await this.#board.open.keeper.refresh()
    const values = toList(await this.#board.command('hvals', 'entities'))
    const readMetadata = metadataReader()
    return values.flatMap((value) => {
      if (!(value instanceof Uint8Array)) return []
      const entity = decodeEntity(value, readMetadata)
      // The name of an entity is in the value itself.
      if (!entity) return this.#unreadable.leftOut('entities', decodeText(value).slice(0, 100))
      return entity.kind === kind ? entity : []
    })
  }
}

function registerStep(entity: Entity, session: string): ScriptStep {
  const bytes = encodeEntity(entity)
  return {
    arguments: ['register', fieldName(entity.kind, entity.name), fieldName(entity.instance), bytes],
    what: `registering ${entity.kind} ${entity.name}`,
    bytes: bytes.length + SMALL_STEP_BYTES,
    grows: true,
    session,
  }
}

function unregisterStep({ kind, name, instance }: Entity): ScriptStep {
  const words = ['unregister', fieldName(kind, name), fieldName(instance)] as const
  return { arguments: words, what: `unregistering ${kind} ${name}`, bytes: SMALL_STEP_BYTES }
}
