/** Moves jobs to the trash and back, and reads it: page by page, so that no client waits while Redis builds one long answer. */
import { asError } from '../../../core/errors.ts'
import type {
  BackendRestoreOptions,
  BackendTrash,
  DiscardRequest,
  RestoreOutcome,
  TrashedEntry,
  TrashListing,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { duplicateRestoreError } from '../../model/post-batch.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { findByUuid, type TrashArrivals, TrashIndex } from '../trash-index.ts'
import { pagesOf, selectTrash } from '../trash-pages.ts'
import type { RedisBoard } from './commit/board.ts'
import {
  claimRejection,
  DEPENDENCY_BYTES,
  type ScriptStep,
  SMALL_STEP_BYTES,
  toDependencyWords,
  toGoneIds,
  toJobName,
  toKeyField,
  trashStep,
} from './commit/steps.ts'
import { decodeTrash, encodePostingWithin } from './store/encodings.ts'
import { toPlaceWord } from './store/layout.ts'
import { toList, toTexts } from './store/replies.ts'

const PAGE_SIZE = 5_000

export class RedisTrash implements BackendTrash {
  readonly #board: RedisBoard
  readonly #index = new TrashIndex({
    arrivedSince: (position) => this.#trashedSince(position),
    readUuids: (ids) => this.#readUuids(ids),
  })

  constructor(board: RedisBoard) {
    this.#board = board
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    const { done, details } = await this.#board.submit(trashStep('discard', discarded))
    if (!done) throw claimRejection(discarded, { why: details[0] })
  }

  async restore(entry: TrashedEntry, posting: Posting, options?: BackendRestoreOptions): Promise<RestoreOutcome> {
    const { done, details } = await this.#board.submit(restoreStep(entry, posting, options))
    if (done) return { restored: true }
    if (details[0] === 'dependency') return { restored: false, gone: toGoneIds(details[1]) }
    if (details[0] === 'key') throw refusalError(toJobName(posting), { why: 'key' })
    if (details[0] === 'duplicate') throw duplicateRestoreError(posting.batch ?? '', posting)
    throw notInTrashError(entry)
  }

  async purge(entry: TrashedEntry): Promise<void> {
    if (!(await this.#board.submit(purgeStep(entry))).done) throw notInTrashError(entry)
  }

  async *list(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    const ids = selectTrash((await this.#ordered()).ids, listing, (id) => id)
    for (let from = 0; from < ids.length; from += PAGE_SIZE)
      for (const page of pagesOf(await this.#sized(ids.slice(from, from + PAGE_SIZE)))) yield* await this.#page(page)
  }

  async entry(id: string): Promise<TrashedEntry | undefined> {
    const value = await this.#board.value('trash', id)
    return value && decodeTrash(id, value)
  }

  async find(uuid: string): Promise<TrashedEntry | undefined> {
    return findByUuid(uuid, { index: this.#index, read: (id) => this.entry(id).catch(() => undefined) })
  }

  /** Reads the whole trash at the next search. */
  forgetIndex(): void {
    this.#index.forget()
  }

  /** Returns the ids of the entries that were trashed after this one of their scores. */
  async #trashedSince(position = '-inf'): Promise<TrashArrivals> {
    const [found, count] = await Promise.all([this.#ordered(position), this.#board.command('zcard', 'trashed')])
    return { ids: found.ids, position: found.last ?? position, count: Number(count) }
  }

  async #readUuids(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const uuids = new Map<string, string>()
    for (let from = 0; from < ids.length; from += PAGE_SIZE)
      for (const page of pagesOf(await this.#sized(ids.slice(from, from + PAGE_SIZE))))
        for (const { id, posting } of await this.#page(page)) uuids.set(id, posting.uuid)
    return uuids
  }

  /** Returns the ids with the sizes of their entries. Each size is one command: a script for all would block other clients. */
  async #sized(ids: readonly string[]): Promise<{ readonly id: string; readonly bytes: number }[]> {
    return Promise.all(
      ids.map(async (id) => ({ id, bytes: Number(await this.#board.command('hstrlen', 'trash', id)) })),
    )
  }

  /** Returns the entries of a page. Unreadable entries are reported as errors and left out. */
  async #page(page: readonly { readonly id: string }[]): Promise<TrashedEntry[]> {
    const ids = page.map(({ id }) => id)
    const values = toList(await this.#board.command('hmget', 'trash', ...ids))
    return ids.flatMap((id, index) => {
      const value = values[index]
      if (!(value instanceof Uint8Array)) return []
      try {
        return decodeTrash(id, value)
      } catch (error) {
        this.#board.reportError(asError(error))
        return []
      }
    })
  }

  /** Returns the ids in the order in which the jobs were trashed, and the last of their scores, which are distinct. */
  async #ordered(since = '-inf'): Promise<{ readonly ids: string[]; readonly last: string | undefined }> {
    const ids: string[] = []
    for (let after = since, last: string | undefined; ; after = last ?? since) {
      const range = [after, '+inf', 'WITHSCORES', 'LIMIT', '0', String(PAGE_SIZE)]
      const page = toTexts(await this.#board.command('zrangebyscore', 'trashed', ...range))
      for (let at = 0; at < page.length; at += 2) ids.push(page[at] ?? '')
      if (page.length > 0) last = `(${page.at(-1)}`
      if (page.length < 2 * PAGE_SIZE) return { ids, last }
    }
  }
}

function restoreStep(entry: TrashedEntry, posting: Posting, { after = [] }: BackendRestoreOptions = {}): ScriptStep {
  const { uuid, batch = null, keyFor = null } = posting
  const bytes = encodePostingWithin(posting)
  const [key, others] = [toKeyField(posting), toDependencyWords(after)]
  return {
    arguments: ['restore', entry.id, toPlaceWord(posting), bytes, uuid, key, others, batch, keyFor],
    what: `restore of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES + DEPENDENCY_BYTES * after.length,
    grows: true,
  }
}

function purgeStep({ id, posting }: TrashedEntry): ScriptStep {
  return { arguments: ['purge', id], what: `purge of ${toJobName(posting)}`, bytes: SMALL_STEP_BYTES }
}

function notInTrashError({ posting }: TrashedEntry): Error {
  return refusalError(toJobName(posting), { why: 'not in trash' })
}
