/**
 * What several memory boards of one process share: the postings, who holds them, the trash, the participants.
 *
 * Every step is one synchronous function, so nothing can come between its check and its change. It is the reference model
 * of the contract: the other backends are tested against it.
 */
import { decode, encode } from '../../core/codec.ts'
import { Duplicate, NotFound, Unclaimable } from '../../core/errors.ts'
import type { Change, Discard, Entity, Listing, Settlement, TrashedEntry, Verdict } from '../backend.ts'
import { decodePosting } from '../posting.ts'

interface Held {
  readonly who: string
  readonly session: string
}

interface Row {
  bytes: Uint8Array
  revision: number
  readonly order: bigint
  readonly postedAt: Date
  held: Held | undefined
}

/** What one transaction leaves behind in the trash. */
type TrashRow = Verdict & { readonly bytes: Uint8Array; readonly who: string; readonly at: Date }

const ENCODING = 'msgpack'

export class MemorySpace {
  readonly #rows = new Map<string, Row>()
  readonly #trash = new Map<string, TrashRow>()
  readonly #entities = new Map<string, { entity: Entity; session: string }>()
  readonly #listeners = new Set<(batch: readonly Change[]) => void>()
  #sequence = 0
  #sessions = 0
  #fence = 0n

  newSession(): string {
    this.#sessions += 1
    return `session ${this.#sessions}`
  }

  subscribe(listener: (batch: readonly Change[]) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** Frees whatever the session holds, as the end of a process does. */
  endSession(session: string): void {
    for (const [key, { session: owner }] of this.#entities) if (owner === session) this.#entities.delete(key)
    for (const [id, row] of this.#rows) {
      if (row.held?.session !== session) continue
      row.held = undefined
      this.#tell({ kind: 'released', id })
    }
  }

  post(bytes: Uint8Array): { id: string; revision: number; order: bigint } {
    const id = `job${String(this.#sequence).padStart(10, '0')}`
    const row = { bytes, revision: 0, order: BigInt(this.#sequence), postedAt: new Date(), held: undefined }
    this.#sequence += 1
    this.#rows.set(id, row)
    this.#tell({ kind: 'posted', id })
    return { id, revision: row.revision, order: row.order }
  }

  claim(choice: { id: string; revision: number; bytes: Uint8Array; held: Held }): { revision: number; fence: bigint } {
    const { id, revision, bytes, held } = choice
    const row = this.#unclaimed(id, revision)
    row.bytes = bytes
    row.revision += 1
    row.held = held
    this.#fence += 1n
    this.#tell({ kind: 'updated', id }, { kind: 'claimed', id })
    return { revision: row.revision, fence: this.#fence }
  }

  /** @returns false when the claim is not held any more in this session at this revision */
  settle(settlement: Settlement, bytes: Uint8Array): boolean {
    const { id, session, revision } = settlement
    const row = this.#rows.get(id)
    if (row?.held?.session !== session || row.revision !== revision) return false
    if (settlement.kind === 'abandon') {
      row.bytes = bytes
      row.revision += 1
      row.held = undefined
      this.#tell({ kind: 'updated', id }, { kind: 'released', id })
    } else {
      this.#remove(id, settlement.kind === 'trash' ? { ...settlement, bytes } : undefined)
    }
    return true
  }

  discard(discarded: Discard, bytes: Uint8Array): void {
    this.#unclaimed(discarded.id, discarded.revision)
    this.#remove(discarded.id, { ...discarded, bytes })
  }

  list(): Listing {
    const claimed = [...this.#rows].flatMap(([id, row]) => (row.held ? [id] : []))
    return { jobs: [...this.#rows.keys()], claimed: new Set(claimed), trashed: new Set(this.#trash.keys()) }
  }

  read(id: string): Readonly<Omit<Row, 'held'>> | undefined {
    return this.#rows.get(id)
  }

  owner(id: string): string | undefined {
    return this.#rows.get(id)?.held?.who
  }

  trashed(): TrashedEntry[] {
    return [...this.#trash].map(([id, { bytes, ...entry }]) => ({
      id,
      posting: decodePosting(bytes, ENCODING),
      ...entry,
    }))
  }

  register(entity: Entity, session: string): void {
    const key = JSON.stringify([entity.kind, entity.name])
    const living = this.#entities.get(key)
    if (living && living.entity.instance !== entity.instance) {
      throw new Duplicate(`a living ${entity.kind} bears the name ${entity.name}; give this one another`)
    }
    this.#entities.set(key, { entity: decode(encode(entity, ENCODING), ENCODING) as Entity, session })
  }

  unregister(entity: Entity): void {
    const key = JSON.stringify([entity.kind, entity.name])
    if (this.#entities.get(key)?.entity.instance === entity.instance) this.#entities.delete(key)
  }

  entities(kind: string): Entity[] {
    return [...this.#entities.values()].map(({ entity }) => entity).filter((entity) => entity.kind === kind)
  }

  #unclaimed(id: string, revision: number): Row {
    const row = this.#rows.get(id)
    if (!row) throw new NotFound(`${id} has left the board`)
    if (row.held || row.revision !== revision) throw new Unclaimable(`${id} was claimed or changed by another`)
    return row
  }

  #remove(id: string, trash: (Verdict & { bytes: Uint8Array; who: string }) | undefined): void {
    const held = this.#rows.get(id)?.held !== undefined
    this.#rows.delete(id)
    const changes: Change[] = [{ kind: 'gone', id }]
    if (held) changes.push({ kind: 'released', id })
    if (trash) {
      const { bytes, who, reason, failure } = trash
      this.#trash.set(id, { bytes, who, reason, at: new Date(), ...(failure ? { failure } : {}) })
      changes.unshift({ kind: 'trashed', id })
    }
    this.#tell(...changes)
  }

  #tell(...batch: Change[]): void {
    for (const listener of this.#listeners) listener(batch)
  }
}
