/**
 * Small logbooks in ZooKeeper, beside the board: for several machines without another shared storage.
 *
 * The costs of the operations:
 *
 *     acquire      one read and one multi; two more reads where the flow has been run before
 *     write        one multi
 *     others       a few round trips; destroyBook three per flow and two more
 *
 * Multis of this process that are requested while one is in flight are sent together. A transition, with its results,
 * has to fit into a request of ZooKeeper (1 MiB), and all logbooks have to fit into the servers' memory.
 */
import { randomUUID } from 'node:crypto'
import { Lifecycle } from '../../core/async/lifecycle.ts'
import { type RetryOptions, retry } from '../../core/async/retry.ts'
import { NotFound } from '../../core/errors.ts'
import { Emitter } from '../../core/events.ts'
import type { Logger } from '../../core/log.ts'
import { defined } from '../../core/options.ts'
import type { Duration } from '../../core/time.ts'
import {
  BadVersion,
  NodeExists,
  NoNode,
  type Op,
  op,
  type Security,
  toOpenError,
  toTenantError,
  ZooKeeper,
} from '../../zookeeper/index.ts'
import { assertBookQuery, assertInstant, type BookQuery, isUnchanged } from '../book-query.ts'
import type { BookDetail, LogBook, Meta } from '../models.ts'
import type { AcquireRequest, BookRequest, FlowLog, FlowRequest, Persistence } from '../persistence.ts'
import {
  assertAcquireRequest,
  assertFlowRequest,
  assertUuid,
  reportedRetries,
  type StorageEvents,
} from '../requests.ts'
import { type AcquireContext, acquireFlow, startFlow } from './acquire.ts'
import { LogbookCommitter, translateErrors } from './committer.ts'
import { isFlowName, type LogbookLayout } from './layout.ts'
import { listBooks } from './listing.ts'
import { missingAsUndefined, readBookRecord, readFlows } from './reader.ts'
import { decodeFlow, encodeBook } from './records.ts'
import { finishRemoval, markGoneOp } from './removal.ts'
import { openRoot, type RootOptions } from './root.ts'
import { ZooKeeperFlowLog } from './zookeeper-flow-log.ts'

export interface ZooKeeperPersistenceOptions {
  readonly uri: string
  readonly hosts: string
  readonly layout: LogbookLayout
  readonly sessionTimeout?: Duration
  readonly tick?: Duration
  readonly maxRequestBytes?: number
  readonly security: Security
  /** Whether missing logbooks are created; true by default. */
  readonly create?: boolean
  readonly log?: Logger
  /** The time limit in milliseconds. */
  readonly retryFor: number
}

export class ZooKeeperPersistence implements Persistence {
  readonly uri: string
  readonly #retryFor: number
  readonly #rootOptions: RootOptions
  readonly #context: AcquireContext
  readonly #lifecycle: Lifecycle
  readonly #events = new Emitter<StorageEvents>(() => undefined)

  constructor({ uri, layout, retryFor, security, create, log, ...reaching }: ZooKeeperPersistenceOptions) {
    this.uri = uri
    this.#retryFor = retryFor
    this.#rootOptions = defined({ ...security, create, log })
    const { acl: _acl, identified: _identified, ...identity } = security
    const zookeeper = new ZooKeeper({ ...reaching, ...identity })
    this.#context = { zookeeper, layout, committer: new LogbookCommitter(zookeeper) }
    this.#lifecycle = new Lifecycle(`persistence ${uri}`)
  }

  async open(): Promise<void> {
    await this.#lifecycle.start(
      (signal) => translateErrors(`keep logbooks in ${this.uri}`, () => this.#begin(signal)),
      () => this.#context.zookeeper.close(),
    )
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { zookeeper, layout } = this.#context
    try {
      await zookeeper.connect({ signal })
      await openRoot(zookeeper, { uri: this.uri, layout, wanted: this.#rootOptions })
    } catch (error) {
      throw toOpenError(toTenantError('logbooks', `opening ${this.uri}`, error), this.#rootOptions)
    }
  }

  close(): Promise<void> {
    return this.#lifecycle.stop(async () => {
      await this.#context.committer.idle
      await this.#context.zookeeper.close()
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  onRetry(listener: (error: Error) => void): () => void {
    return this.#events.on('retry', listener)
  }

  async createBook({ uuid, name, meta = {} }: BookRequest): Promise<boolean> {
    assertUuid(uuid, "a book's uuid")
    const { zookeeper, layout } = this.#context
    const path = layout.book(uuid)
    const at = new Date()
    const bytes = encodeBook({ book: { uuid, name, meta, createdAt: at, updatedAt: at } })
    return this.#withRetries(`make logbook ${uuid}`, async () => {
      await zookeeper.mkdirp(layout.shard(uuid))
      for (;;) {
        const created = await zookeeper.create(path, bytes).catch(ignoreExisting)
        if (created) return true
        const existing = await readBookRecord(zookeeper, path)
        if (existing?.gone !== undefined) await finishRemoval(zookeeper, path, existing.gone)
        else if (existing) return false
      }
    })
  }

  async updateBook(uuid: string, { meta }: { meta: Meta }): Promise<void> {
    assertUuid(uuid, "a book's uuid")
    const { zookeeper, layout } = this.#context
    const path = layout.book(uuid)
    await this.#withRetries(`change logbook ${uuid}`, async () => {
      for (;;) {
        const { book, version } = await this.#requireBook(uuid)
        const changed = { ...book, meta: { ...book.meta, ...meta }, updatedAt: new Date() }
        if (await zookeeper.setData(path, encodeBook({ book: changed }), { version }).catch(ignoreBadVersion)) return
      }
    })
  }

  async createFlow(request: FlowRequest): Promise<boolean> {
    assertFlowRequest(request)
    return this.#withRetries(`make flow ${request.flow.uuid}`, () => startFlow(this.#context, request))
  }

  async acquire(request: AcquireRequest): Promise<FlowLog> {
    assertAcquireRequest(request)
    const term = randomUUID()
    const doing = `acquire flow ${request.flow.uuid}`
    const acquired = await this.#withRetries(doing, () => acquireFlow(this.#context, request, term))
    return new ZooKeeperFlowLog({
      ...this.#context,
      ...acquired,
      request,
      retries: this.#retries,
      assertOpen: () => this.#lifecycle.assertRunning(),
    })
  }

  async getBook(uuid: string): Promise<LogBook> {
    assertUuid(uuid, "a book's uuid")
    const { zookeeper, layout } = this.#context
    return this.#withRetries(`read logbook ${uuid}`, async () => {
      // The sync makes all writes visible that were reported as done, whichever server answers.
      const caughtUp = zookeeper.sync(layout.path)
      const [{ book }] = await Promise.all([this.#requireBook(uuid), caughtUp])
      return { ...book, flows: await readFlows(zookeeper, layout.book(uuid)) }
    })
  }

  async *listBooks(query: BookQuery = {}): AsyncIterable<BookDetail> {
    this.#lifecycle.assertRunning()
    assertBookQuery(query)
    const { zookeeper, layout } = this.#context
    yield* listBooks(zookeeper, {
      layout,
      query,
      storing: (work) => this.#withRetries(`list the logbooks in ${this.uri}`, work),
    })
  }

  async destroyBook(uuid: string, options: { unchangedSince?: Date } = {}): Promise<boolean> {
    assertUuid(uuid, "a book's uuid")
    const { unchangedSince } = options
    assertInstant(unchangedSince, 'destroyBook')
    const { zookeeper, layout } = this.#context
    const path = layout.book(uuid)
    return this.#withRetries(`remove logbook ${uuid}`, async () => {
      for (;;) {
        const { book, version } = await this.#requireBook(uuid)
        const checks = unchangedSince ? await this.#unchangedChecks(path, { book, since: unchangedSince }) : []
        if (!checks) return false
        const mark = randomUUID()
        const gone: Op[] = [...checks, ...markGoneOp(path, { book, version, mark })]
        if (!(await zookeeper.multi(gone).catch(ignoreBadVersion))) continue
        await finishRemoval(zookeeper, path, mark)
        return true
      }
    })
  }

  /** Returns the checks which guarantee that no flow has changed; undefined when one has. */
  async #unchangedChecks(path: string, { book, since }: { book: BookDetail; since: Date }): Promise<Op[] | undefined> {
    const { zookeeper } = this.#context
    const names = (await missingAsUndefined(zookeeper.getChildren(path)))?.names ?? []
    const checks: Op[] = []
    for (const flow of names.filter(isFlowName).map((name) => `${path}/${name}`)) {
      const read = await missingAsUndefined(zookeeper.getData(flow))
      if (!read || !isUnchanged(since, book, [decodeFlow(read.data, flow).flow])) return undefined
      checks.push(op.check(flow, { version: read.stat.version }))
    }
    return isUnchanged(since, book, []) ? checks : undefined
  }

  async #requireBook(uuid: string): Promise<{ book: BookDetail; version: number }> {
    const record = await readBookRecord(this.#context.zookeeper, this.#context.layout.book(uuid))
    if (!record || record.gone !== undefined) throw new NotFound(`there is no logbook ${uuid} in ${this.uri}`)
    return record
  }

  get #retries(): RetryOptions {
    return reportedRetries(this.#events, { limitMs: this.#retryFor, signal: this.#lifecycle.signal })
  }

  async #withRetries<T>(doing: string, work: () => Promise<T>): Promise<T> {
    this.#lifecycle.assertRunning()
    return retry(() => translateErrors(doing, work), this.#retries)
  }
}

function ignoreExisting(error: unknown): undefined {
  if (!(error instanceof NodeExists)) throw error
}

function ignoreBadVersion(error: unknown): undefined {
  if (!(error instanceof BadVersion || error instanceof NoNode)) throw error
}
