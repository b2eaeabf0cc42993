/** Participants as ephemeral znodes, which exist as long as their session. */
import { RetryRounds } from '../../../core/async/retry.ts'
import type { Encoding } from '../../../core/codec.ts'
import { NodeExists, NoNode, op } from '../../../zookeeper/index.ts'
import type { BackendEntities, Entity } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { metadataReader } from '../../model/entity-metadata.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { decodeEntity, encodeEntity } from './store/encoding.ts'
import { missingAsUndefined, translateErrors } from './store/reader.ts'

export class ZooKeeperEntities implements BackendEntities {
  readonly #board: BoardHandle

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async register(entity: Entity): Promise<void> {
    const what = `registering ${entity.kind} ${entity.name}`
    await translateErrors(what, () => this.#register(entity, new RetryRounds(what)))
  }

  /** Creates the znode of a participant. @throws Duplicate if another instance has the name */
  async #register(entity: Entity, rounds: RetryRounds): Promise<void> {
    const { zookeeper, layout } = this.#board
    await rounds.next()
    const path = layout.entity(entity.kind, entity.name)
    try {
      await zookeeper.create(path, encodeEntity(entity, this.#encoding), {
        ephemeral: true,
        ...this.#requireSession(),
      })
    } catch (error) {
      if (error instanceof NodeExists) return this.#takeOver(entity, { path, rounds })
      if (!(error instanceof NoNode)) throw error
      // The folder of its kind is missing: this is the first of its kind.
      await zookeeper.mkdirp(layout.entityKind(entity.kind))
      await this.#register(entity, rounds)
    }
  }

  /**
   * Deletes the znode of a participant, if it belongs to this instance: another instance may have taken the name during
   * an outage.
   */
  async unregister(entity: Entity): Promise<void> {
    const { zookeeper, layout } = this.#board
    const path = layout.entity(entity.kind, entity.name)
    await translateErrors(`unregistering ${entity.kind} ${entity.name}`, async () => {
      const node = await missingAsUndefined(zookeeper.getData(path))
      if (decodeEntity(node?.data ?? null, this.#encoding)?.instance !== entity.instance) return
      await missingAsUndefined(zookeeper.delete(path))
    })
  }

  async list(kind: string): Promise<Entity[]> {
    return translateErrors(`listing every ${kind}`, () => this.#list(kind))
  }

  async #list(kind: string): Promise<Entity[]> {
    const { zookeeper, layout } = this.#board
    const { unreadable } = this.#board.components
    const folder = layout.entityKind(kind)
    const listed = await missingAsUndefined(zookeeper.getChildren(folder))
    const names = listed?.names ?? []
    const nodes = await Promise.all(names.map((name) => missingAsUndefined(zookeeper.getData(`${folder}/${name}`))))
    const readMetadata = metadataReader()
    return nodes.flatMap((node, index) => {
      if (!node) return []
      const leftOut = () => unreadable.leftOut('entities', `${kind}/${names[index]}`)
      return decodeEntity(node.data, this.#encoding, readMetadata) ?? leftOut()
    })
  }

  /**
   * Writes the znode of this instance again. A znode of its last session that has not expired yet is replaced by one of
   * the current session.
   */
  async #takeOver(
    entity: Entity,
    { path, rounds }: { readonly path: string; readonly rounds: RetryRounds },
  ): Promise<void> {
    const { zookeeper } = this.#board
    const node = await missingAsUndefined(zookeeper.getData(path))
    if (!node) return this.#register(entity, rounds)
    if (decodeEntity(node.data, this.#encoding)?.instance !== entity.instance) {
      throw refusalError(`registering ${entity.kind} ${entity.name}`, { why: 'name' })
    }
    const data = encodeEntity(entity, this.#encoding)
    if (node.stat.ephemeralOwner === zookeeper.session?.id) {
      await missingAsUndefined(zookeeper.setData(path, data, this.#requireSession()))
      return
    }
    await zookeeper.multi([op.delete(path), op.create(path, data, { ephemeral: true })], this.#requireSession())
  }

  get #encoding(): Encoding {
    return this.#board.components.kind.encoding
  }

  #requireSession(): { session?: bigint } {
    const session = this.#board.zookeeper.session?.id
    return session === undefined ? {} : { session }
  }
}
