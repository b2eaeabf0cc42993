/** Reads a board. Long lists are read in pages, so that no client waits while Redis builds one long answer. */
import { asError } from '../../../core/errors.ts'
import { defined } from '../../../core/options.ts'
import {
  type Cancellation,
  type Entity,
  MAX_SHOWN_DEPENDENCIES,
  type StoredJob,
  type TrashedEntry,
  type TrashListing,
  type UnreadableJob,
} from '../../contract/index.ts'
import { decodeEndedJob, type EndedJob } from '../../model/ended-job.ts'
import { metadataReader } from '../../model/entity-metadata.ts'
import { type LimitUse, MAX_USED_KEYS, type TokenRate } from '../../model/limits.ts'
import { findByUuid, type TrashArrivals, TrashIndex } from '../trash-index.ts'
import { pagesOf, selectTrash } from '../trash-pages.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import { fieldName, type Layout } from './layout.ts'
import { decodeCancellation, decodeEntity, decodeText, decodeTrash, parseHolder, parseStoredJob } from './records.ts'
import { toList } from './replies.ts'
import { SCRIPTS } from './scripts.ts'
import type { RedisSession } from './session.ts'

const PAGE_SIZE = 5_000
/** The number of records of the history in one answer: each may have results of 64 KiB. */
const ENDED_PAGE_SIZE = 100

export class BoardReader {
  readonly trashIndex = new TrashIndex({
    arrivedSince: (position) => this.#trashedSince(position),
    readUuids: (ids) => this.#trashedUuids(ids),
  })
  readonly #session: RedisSession
  readonly #layout: Layout
  readonly #onError: (error: Error) => void
  readonly #unreadable: UnreadableValues

  constructor(options: { session: RedisSession; layout: Layout; failed: (error: Error) => void }) {
    this.#session = options.session
    this.#layout = options.layout
    this.#onError = options.failed
    this.#unreadable = new UnreadableValues({ onError: options.failed })
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    if (ids.length === 0) return []
    const found = toList(await this.#session.run(SCRIPTS.read, ids))
    return ids.map((id, index) => {
      const [row, bytes, waits] = found.slice(3 * index, 3 * index + 3)
      return parseStoredJob(id, { row, bytes, waits })
    })
  }

  /** Returns the id of a posted job while it is on the board, otherwise whether it is in the trash. */
  async locatePosted(id: string): Promise<{ readonly id: string } | { readonly trashed: boolean }> {
    const [rows, trash] = [this.#layout.key('rows'), this.#layout.key('trash')]
    if ((await this.#session.command('hexists', rows, id)) === 1) return { id }
    return { trashed: (await this.#session.command('hexists', trash, id)) === 1 }
  }

  async owner(id: string): Promise<string | undefined> {
    const value = await this.#value('held', id)
    return value && parseHolder(value)
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    const value = await this.#value('cancels', id)
    return value && decodeCancellation(value)
  }

  /** Returns the jobs for which this one waits, and those that wait for it. */
  async dependencies(id: string): Promise<{ readonly waitsFor: string[]; readonly dependents: string[] }> {
    const key = this.#layout.key('dependents')
    const range = [`[${id}:`, `(${id};`, 'LIMIT', '0', String(MAX_SHOWN_DEPENDENCIES)]
    const [wait, members] = await Promise.all([
      this.#value('waits', id),
      this.#session.command('zrangebylex', key, ...range),
    ])
    const items = wait ? decodeText(wait).split(';').slice(0, -1) : []
    const others = items.flatMap((item) => /[=~](.+)$/s.exec(item)?.[1] ?? [])
    return {
      waitsFor: others.slice(0, MAX_SHOWN_DEPENDENCIES),
      dependents: texts(members).map((member) => member.slice(id.length + 1)),
    }
  }

  /** Returns the newest jobs of the history, newest first. */
  async history(limit: number): Promise<EndedJob[]> {
    const uuids = texts(await this.#session.command('zrevrange', this.#layout.key('ended'), '0', String(limit - 1)))
    const values = await this.#endedValues(uuids)
    return values.flatMap((value, index) =>
      value instanceof Uint8Array
        ? (decodeEndedJob(value) ?? this.#unreadable.leftOut('history', uuids[index] ?? ''))
        : [],
    )
  }

  /** Returns the end of each of these jobs, as far as the history has it. */
  async endedJobs(uuids: readonly string[]): Promise<(EndedJob | undefined)[]> {
    const values = await this.#endedValues(uuids)
    return values.map((value) => (value instanceof Uint8Array ? decodeEndedJob(value) : undefined))
  }

  async #endedValues(uuids: readonly string[]): Promise<unknown[]> {
    const found: unknown[] = []
    for (let from = 0; from < uuids.length; from += ENDED_PAGE_SIZE) {
      const page = uuids.slice(from, from + ENDED_PAGE_SIZE)
      found.push(...toList(await this.#session.command('hmget', this.#layout.key('history'), ...page)))
    }
    return found
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    const value = await this.#value('trash', id)
    return value && decodeTrash(id, value)
  }

  /** Returns the newest entry with this uuid. */
  findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    return findByUuid(uuid, { index: this.trashIndex, read: (id) => this.trashedEntry(id).catch(() => undefined) })
  }

  /** Returns the ids of the entries that were trashed after this one of their scores. */
  async #trashedSince(position = '-inf'): Promise<TrashArrivals> {
    const key = this.#layout.key('trashed')
    const [found, count] = await Promise.all([this.#ordered('trashed', position), this.#session.command('zcard', key)])
    return { ids: found.ids, position: found.last ?? position, count: Number(count) }
  }

  async #trashedUuids(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const uuids = new Map<string, string>()
    for (let from = 0; from < ids.length; from += PAGE_SIZE)
      for (const page of pagesOf(await this.#sized(ids.slice(from, from + PAGE_SIZE))))
        for (const { id, posting } of await this.#trashPage(page)) uuids.set(id, posting.uuid)
    return uuids
  }

  /** Yields the entries of the trash. Unreadable entries are reported as errors and omitted. */
  async *trashed(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    const ids = selectTrash((await this.#ordered('trashed')).ids, listing, (id) => id)
    for (let from = 0; from < ids.length; from += PAGE_SIZE)
      for (const page of pagesOf(await this.#sized(ids.slice(from, from + PAGE_SIZE))))
        yield* await this.#trashPage(page)
  }

  /** Returns the ids with the sizes of their entries. Each size is one command: a script for all would block other clients. */
  async #sized(ids: readonly string[]): Promise<{ readonly id: string; readonly bytes: number }[]> {
    const key = this.#layout.key('trash')
    return Promise.all(ids.map(async (id) => ({ id, bytes: Number(await this.#session.command('hstrlen', key, id)) })))
  }

  async #trashPage(page: readonly { readonly id: string }[]): Promise<TrashedEntry[]> {
    const ids = page.map(({ id }) => id)
    const values = toList(await this.#session.command('hmget', this.#layout.key('trash'), ...ids))
    return ids.flatMap((id, index) => {
      const value = values[index]
      if (!(value instanceof Uint8Array)) return []
      try {
        return decodeTrash(id, value)
      } catch (error) {
        this.#onError(asError(error))
        return []
      }
    })
  }

  async entities(): Promise<Entity[]> {
    const values = toList(await this.#session.command('hvals', this.#layout.key('entities')))
    const readMetadata = metadataReader()
    return values.flatMap((value) => {
      if (!(value instanceof Uint8Array)) return []
      // The name of an entity is in the value itself.
      return decodeEntity(value, readMetadata) ?? this.#unreadable.leftOut('entities', decodeText(value).slice(0, 100))
    })
  }

  /** Returns ids that have a posting without a row, or a row without a posting. */
  async findInconsistent(): Promise<string[]> {
    const [jobs, rows] = await Promise.all([this.#fields('jobs'), this.#fields('rows')])
    const [postings, known] = [new Set(jobs), new Set(rows)]
    return [...jobs.filter((id) => !known.has(id)), ...rows.filter((id) => !postings.has(id))]
  }

  /** Returns what claims have taken of these keys of limits, or of some of all keys. */
  async limitUse(keys?: readonly string[]): Promise<LimitUse[]> {
    const [slots, rates] = [this.#layout.key('slots'), this.#layout.key('rates')]
    const fields = keys?.map((key) => fieldName(key)) ?? (await this.#usedLimits(slots, rates))
    if (fields.length === 0) return []
    const [counts, rated, arrivals] = await Promise.all([
      this.#session.command('hmget', slots, ...fields),
      this.#session.command('hmget', this.#layout.key('intervals'), ...fields),
      Promise.all(fields.map((field) => this.#session.command('zscore', rates, field))),
    ])
    const numbers = (answer: unknown) =>
      texts(answer).map((text) => (text === 'null' || text === '' ? undefined : Number(text)))
    const [taken, times, takenBy] = [numbers(counts), numbers(arrivals), texts(rated).map(parseRate)]
    return fields.flatMap((field, index) => {
      const [count = 0, arrivalMs] = [taken[index], times[index]]
      const key = keys?.[index] ?? toText(field)
      return count > 0 || arrivalMs !== undefined
        ? [{ key, slots: count, arrivalMs, ...defined({ rate: takenBy[index] }) }]
        : []
    })
  }

  async #usedLimits(slots: string, rates: string): Promise<readonly string[]> {
    const [, fields] = toList(await this.#session.command('hscan', slots, '0', 'COUNT', String(MAX_USED_KEYS)))
    const held = texts(fields).filter((_, index) => index % 2 === 0)
    const newest = texts(await this.#session.command('zrevrange', rates, '0', String(MAX_USED_KEYS - 1)))
    // The name of a very long key is a hash, of which the key is not known.
    return [...new Set([...held, ...newest])].filter((field) => !field.startsWith('#')).slice(0, MAX_USED_KEYS)
  }

  async #value(key: string, id: string): Promise<Uint8Array | undefined> {
    const value = await this.#session.command('hget', this.#layout.key(key), id)
    return value instanceof Uint8Array ? value : undefined
  }

  async #fields(key: string): Promise<string[]> {
    return texts(await this.#session.command('hkeys', this.#layout.key(key)))
  }

  /** Returns the members of a sorted set by their scores, which are distinct. */
  async #ordered(key: string, since = '-inf'): Promise<{ readonly ids: string[]; readonly last: string | undefined }> {
    const ids: string[] = []
    for (let after = since, last: string | undefined; ; after = last ?? since) {
      const args = [this.#layout.key(key), after, '+inf', 'WITHSCORES', 'LIMIT', '0', String(PAGE_SIZE)]
      const page = texts(await this.#session.command('zrangebyscore', ...args))
      for (let at = 0; at < page.length; at += 2) ids.push(page[at] ?? '')
      if (page.length > 0) last = `(${page.at(-1)}`
      if (page.length < 2 * PAGE_SIZE) return { ids, last }
    }
  }
}

/** Returns the text of a field that {@link fieldName} has made of one; the field itself for another. */
function toText(field: string): string {
  try {
    const [text]: unknown[] = JSON.parse(field)
    return typeof text === 'string' ? text : field
  } catch {
    return field
  }
}

/** Returns the rate of a field of `intervals`; undefined for a field that is missing or that no script writes. */
function parseRate(text: string): TokenRate | undefined {
  const [intervalMs = 0, burst = 0] = text.split(' ').map(Number)
  return intervalMs > 0 && burst > 0 ? { intervalMs, burst } : undefined
}

function texts(answer: unknown): string[] {
  return toList(answer).map((value) => (value instanceof Uint8Array ? decodeText(value) : String(value)))
}
