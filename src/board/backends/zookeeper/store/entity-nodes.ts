/** Participants as ephemeral znodes, which exist as long as their session. */

import { RetryRounds } from '../../../../core/async/retry.ts'
import type { Encoding } from '../../../../core/codec.ts'
import { NodeExists, NoNode, op, type ZooKeeper } from '../../../../zookeeper/index.ts'
import type { Entity } from '../../../contract/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import { metadataReader } from '../../../model/entity-metadata.ts'
import type { UnreadableValues } from '../../unreadable-values.ts'
import type { Layout } from './layout.ts'
import { missingAsUndefined } from './reader.ts'
import { decodeEntity, encodeEntity } from './records.ts'

export interface EntityNodesOptions {
  readonly zookeeper: Pick<
    ZooKeeper,
    'session' | 'create' | 'delete' | 'getChildren' | 'getData' | 'mkdirp' | 'multi' | 'setData'
  >
  readonly layout: Layout
  readonly encoding: Encoding
  readonly unreadable: UnreadableValues
}

export class EntityNodes {
  readonly #zookeeper: EntityNodesOptions['zookeeper']
  readonly #layout: Layout
  readonly #encoding: Encoding
  readonly #unreadable: UnreadableValues

  constructor(options: EntityNodesOptions) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
    this.#encoding = options.encoding
    this.#unreadable = options.unreadable
  }

  /** Creates the znode of a participant. @throws Duplicate if another instance has the name */
  async register(
    entity: Entity,
    rounds: RetryRounds = new RetryRounds(`registering ${entity.kind} ${entity.name}`),
  ): Promise<void> {
    await rounds.next()
    const path = this.#layout.entity(entity.kind, entity.name)
    try {
      await this.#zookeeper.create(path, encodeEntity(entity, this.#encoding), {
        ephemeral: true,
        ...this.#requireSession(),
      })
    } catch (error) {
      if (error instanceof NodeExists) return this.#takeOver(entity, { path, rounds })
      if (!(error instanceof NoNode)) throw error
      // The folder of its kind is missing: this is the first of its kind.
      await this.#zookeeper.mkdirp(this.#layout.entityKind(entity.kind))
      await this.register(entity, rounds)
    }
  }

  /**
   * Deletes the znode of a participant, if it belongs to this instance: another instance may have taken the name during
   * an outage.
   */
  async unregister(entity: Entity): Promise<void> {
    const path = this.#layout.entity(entity.kind, entity.name)
    const there = await missingAsUndefined(this.#zookeeper.getData(path))
    if (decodeEntity(there?.data ?? null, this.#encoding)?.instance !== entity.instance) return
    await missingAsUndefined(this.#zookeeper.delete(path))
  }

  async list(kind: string): Promise<Entity[]> {
    const folder = this.#layout.entityKind(kind)
    const listed = await missingAsUndefined(this.#zookeeper.getChildren(folder))
    const names = listed?.names ?? []
    const nodes = await Promise.all(
      names.map((name) => missingAsUndefined(this.#zookeeper.getData(`${folder}/${name}`))),
    )
    const readMetadata = metadataReader()
    return nodes.flatMap((node, index) => {
      if (!node) return []
      const leftOut = () => this.#unreadable.leftOut('entities', `${kind}/${names[index]}`)
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
    const there = await missingAsUndefined(this.#zookeeper.getData(path))
    if (!there) return this.register(entity, rounds)
    if (decodeEntity(there.data, this.#encoding)?.instance !== entity.instance) {
      throw refusalError(`registering ${entity.kind} ${entity.name}`, { why: 'name' })
    }
    const data = encodeEntity(entity, this.#encoding)
    if (there.stat.ephemeralOwner === this.#zookeeper.session?.id) {
      await missingAsUndefined(this.#zookeeper.setData(path, data, this.#requireSession()))
      return
    }
    await this.#zookeeper.multi([op.delete(path), op.create(path, data, { ephemeral: true })], this.#requireSession())
  }

  #requireSession(): { session?: bigint } {
    const session = this.#zookeeper.session?.id
    return session === undefined ? {} : { session }
  }
}
