/**
 * The settings of flows as this process knows them when it posts.
 *
 * | this process | uses a change |
 * |---|---|
 * | views the board, as all do that claim | when it is notified: the limit book watches the records |
 * | only posts | after at most 30 s |
 *
 * A post that begins 20 s after the last read starts another one, and does not wait for it. A post that begins after 30 s waits. A read is one small
 * request for the revision of the limits; the records are read only if it has changed.
 */
import { AccessDenied } from '../../core/errors.ts'
import { monotonic } from '../../core/time.ts'
import type { BackendLimits } from '../contract/index.ts'
import type { RecordStore, UnreadableRecord } from '../records/record-store.ts'
import type { FlowSettingsRecord } from './record.ts'
import { FlowRules, NO_FLOW_RULES } from './rules.ts'

/** The age after which the settings are read again beside the posts. */
const REFRESH_AFTER_MS = 20_000
/** The age after which a post waits until they are read. */
const MAX_AGE_MS = 30_000

/** No board has this revision. */
const UNKNOWN_REVISION = -1

export interface PostSettingsOptions {
  readonly backend: { readonly limits: Pick<BackendLimits, 'revision'>; readonly shared: boolean }
  readonly store: Pick<RecordStore<FlowSettingsRecord>, 'list'>
  /** Called with each record that cannot be read here. */
  readonly onUnreadable: (record: UnreadableRecord) => void
  /** Returns the settings that are watched; undefined while nothing is. */
  readonly watched: () => FlowRules | undefined
  /** Returns the time of a monotonic clock in milliseconds. */
  readonly now?: () => number
}

export class PostSettings {
  readonly #options: PostSettingsOptions
  readonly #now: () => number
  #rules = NO_FLOW_RULES
  #revision = 0
  /** Whether the settings may have changed since the read in progress has begun. */
  #isStale = false
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  constructor(options: PostSettingsOptions) {
    this.#options = options
    this.#now = options.now ?? monotonic
  }

  /** The settings as they are known. A post calls {@link whenKnown} first. */
  get rules(): FlowRules {
    return this.#options.watched() ?? this.#rules
  }

  /** Returns a promise if a post has to wait until the settings are read; undefined if they are known. @throws NotConnected */
  whenKnown(): Promise<void> | undefined {
    const age = this.#now() - this.#readAt
    if (age < REFRESH_AFTER_MS || this.#options.backend.shared || this.#options.watched()) return undefined
    this.#reading ??= this.#readWhileStale().finally(() => {
      this.#reading = undefined
    })
    if (age >= MAX_AGE_MS) return this.#reading
    // The next post tries again, and the post itself finds out whether the servers are away.
    this.#reading.catch(() => undefined)
    return undefined
  }

  /** Makes the next post read the settings: this process has changed them. */
  expire(): void {
    this.#readAt = Number.NEGATIVE_INFINITY
    this.#isStale = true
  }

  /** Forgets the revision, too: the servers have lost their data, and the next revisions may be equal to former ones. */
  forget(): void {
    this.#revision = UNKNOWN_REVISION
    this.expire()
  }

  /** Resolves when no post waits for a read that has begun. Never rejects. */
  async whenIdle(): Promise<void> {
    await this.#reading?.catch(() => undefined)
  }

  /** Reads again what has expired during a read: a post after the change may wait for the read that began before it. */
  async #readWhileStale(): Promise<void> {
    do {
      this.#isStale = false
      await this.#read()
    } while (this.#isStale)
  }

  async #read(): Promise<void> {
    const { backend, store, onUnreadable } = this.#options
    // The settings are at least as new as the beginning of the read.
    const begunAt = this.#now()
    try {
      const revision = await backend.limits.revision()
      if (revision !== this.#revision) {
        const found = await store.list()
        for (const record of found) if ('error' in record) onUnreadable(record)
        this.#rules = new FlowRules(found)
        this.#revision = this.#isStale ? UNKNOWN_REVISION : revision
      }
    } catch (error) {
      // A user without the right to read posts with what was known before: at first, without settings.
      if (!(error instanceof AccessDenied)) throw error
    }
    if (!this.#isStale) this.#readAt = begunAt
  }
}
