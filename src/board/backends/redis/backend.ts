/**
 * The Redis backend implements `Backend` with steps of Lua scripts. `layout.ts` defines the keys, `scripts/shared/steps.lua`
 * the steps. `committer.ts` sends steps and resolves their outcome. `session.ts` keeps the owner's session alive.
 */
import { asError, InvalidPosting, InvalidState, JobboardError, WritesRefused } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { catchError, type Result } from '../../../core/result.ts'
import { shortenText } from '../../../core/texts.ts'
import { withinTime } from '../../../core/time.ts'
import {
  ALL_CAPABILITIES,
  type Backend,
  type BackendSink,
  type BatchStore,
  type BoardSections,
  type Cancellation,
  type CancelRequest,
  type ClaimGrant,
  type ClaimRequest,
  type DiscardRequest,
  type Entity,
  type GateRequest,
  type JobStatus,
  type Posted,
  type PostRequest,
  type ReleaseOutcome,
  type ReleaseRequest,
  type Replaced,
  type ReplaceRequest,
  type RestoreOptions,
  type RestoreOutcome,
  type SessionHold,
  type Settlement,
  type StoredJob,
  type TrashedEntry,
  type TrashListing,
  type UnreadableJob,
  type WriteRequest,
  type Written,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { EndedJob } from '../../model/ended-job.ts'
import { type LimitUse, limitReachedError, type TokenRequest, type TokensTaken } from '../../model/limits.ts'
import { duplicateRestoreError } from '../../model/post-batch.ts'
import { MAX_POSTING_BYTES, type Posting, toCountedBytes } from '../../model/posting.ts'
import type { RecordName, StoredRecord } from '../../model/record.ts'
import { RedisBatches, toBatchRefusalError } from './batches.ts'
import { NO_REPLY, StepCommitter, type StepReply } from './committer.ts'
import { fieldName, Layout, toOrder } from './layout.ts'
import type { RedisLocation } from './place.ts'
import { BoardReader } from './reader.ts'
import { RecordReader, toConflict, writeStep } from './record-fields.ts'
import { encodeCancellation, encodePostingWithin } from './records.ts'
import { decodeReply } from './replies.ts'
import { RedisSections } from './sections.ts'
import { CLOSE_TIMEOUT_MS, RedisSession } from './session.ts'
import {
  claimStep,
  discardStep,
  FINISH_STEP,
  postStep,
  purgeStep,
  registerStep,
  releaseStep,
  replaceStep,
  restoreStep,
  type ScriptStep,
  settleStep,
  toJobName,
  tokensStep,
  unregisterStep,
} from './steps.ts'

export interface RedisBackendOptions {
  readonly location: RedisLocation
  readonly log: Logger
  readonly create?: boolean
}

/** Limit of repair steps that are sent at once; each inconsistent posting takes one step. */
const MAX_REPAIRS_PER_BATCH = 256
/** Limit of reported faults: jobs with an invalid score in the claim order, and other damage. */
const MAX_REPORTED = 1_000

/** Limit of the length of a reported fault, in characters: keys, and names in them, can have any length. */
const MAX_FAULT_LENGTH = 1_000

interface RedisComponents {
  readonly session: RedisSession
  readonly committer: StepCommitter
  readonly reader: BoardReader
  readonly records: RecordReader
}

export class RedisBackend implements Backend {
  readonly capabilities = ALL_CAPABILITIES
  readonly uri: string
  readonly sessionTimeout: number
  readonly sections: BoardSections
  readonly batches: BatchStore
  readonly #options: RedisBackendOptions
  readonly #layout: Layout
  readonly #reported = new Set<string>()
  #failed: (error: Error) => void = () => undefined
  #board: RedisComponents | undefined
  #finishing: Promise<void> | undefined

  /** @throws InvalidArgument for an invalid prefix */
  constructor(options: RedisBackendOptions) {
    this.uri = options.location.uri
    this.sessionTimeout = options.location.ttl
    this.#options = options
    this.#layout = new Layout(options.location.prefix)
    this.sections = new RedisSections({
      window: options.location.window,
      windowBytes: options.location.windowBytes,
      session: () => this.#requireOpen.session,
      uuids: this.#layout.key('uuids'),
      misplaced: (id) => this.#misplaced(id),
    })
    this.batches = new RedisBatches({
      layout: this.#layout,
      session: () => this.#requireOpen.session,
      submit: (step) => this.#submitStep(step),
    })
  }

  async open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void> {
    const { location, log, create = true } = this.#options
    const layout = this.#layout
    const session: RedisSession = new RedisSession({
      ...{ location, layout, sink, log, create },
      onAttached: () => {
        // A server that took over may not have the entries that the former one acknowledged last.
        reader.trashIndex.forget()
        committer.attached()
      },
      onLost: (id) => committer.sessionLost(id),
      onInconsistent: () => this.#repair(),
      onUnfinished: () => this.#finishEnds(),
      damaged: (fault) => this.#damaged(fault),
    })
    const failed = (error: Error) => sink.error(error)
    this.#failed = failed
    const damaged = (fault: string) => this.#damaged(fault)
    const committer: StepCommitter = new StepCommitter({
      layout,
      ttl: location.ttl,
      session: () => session,
      onError: failed,
      damaged,
      onUnfinished: () => this.#finishEnds(),
      onDoomed: (ids) => sink.doomed(ids),
    })
    const reader: BoardReader = new BoardReader({ session, layout, failed })
    this.#board = { session, committer, reader, records: new RecordReader({ session, layout }) }
    await session.open(options)
  }

  subscribe(): Promise<void> {
    return this.#requireOpen.session.subscribe()
  }

  async unsubscribe(): Promise<void> {
    await this.#board?.session.unsubscribe()
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    const statuses = decodeReply<readonly unknown[]>(await this.#requireOpen.session.follow(ids))
    return ids.map((_, index) => toJobStatus(statuses[index]))
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    await this.#board?.session.unfollow(ids)
  }

  async close(): Promise<void> {
    if (!this.#board) return
    const { session, committer } = this.#board
    // Without a new connection the last batch is never answered, so the wait is limited.
    await withinTime(CLOSE_TIMEOUT_MS, committer.idle())
    await session.close()
    // Rejects the steps that were requested meanwhile, and those that were not answered.
    committer.sessionsEnded()
    await committer.idle()
  }

  async post(request: PostRequest): Promise<Posted> {
    const bytes = encodePostingWithin(request.posting, { limit: MAX_POSTING_BYTES })
    const reply = await this.#submitStep(postStep(request, { bytes }))
    if (!reply.done && reply.details[0] === 'batch') throw toBatchRefusalError(reply.details, request.posting)
    const posted = toPosted(reply, { bytes: toCountedBytes(bytes, 'msgpack') })
    return reply.isRepeated ? this.#locatePosted(posted) : posted
  }

  async replace(request: ReplaceRequest): Promise<Replaced> {
    const bytes = encodePostingWithin(request.posting, { limit: MAX_POSTING_BYTES })
    const { done, details } = await this.#submitStep(replaceStep(request, bytes))
    if (!done) throw claimRejection(request, { why: details[0] })
    return { revision: request.revision + 1, bytes: toCountedBytes(bytes, 'msgpack') }
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    const { committer } = this.#requireOpen
    const steps = choices.map((choice) => catchError(() => claimStep(choice)))
    const answers = await committer.submitAll(steps)
    // A dead owner held the resource, which was released since: these claims are sent once more.
    const freed = answers.flatMap((answer, index) => (isBlockedByReleased(answer) ? [index] : []))
    const second = await committer.submitAll(freed.flatMap((index) => steps[index] ?? []))
    for (const [at, index] of freed.entries()) answers[index] = second[at] ?? NO_REPLY
    return choices.map((choice, index) => catchError(() => toGrant(choice, unwrapReply(answers[index]))))
  }

  async limitsRevision(): Promise<number> {
    const value = await this.#requireOpen.session.command('hget', this.#layout.key('board'), 'limits')
    return value instanceof Uint8Array ? Number(Buffer.from(value).toString()) : 0
  }

  async limitUse(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    return this.#requireOpen.reader.limitUse(keys)
  }

  /** Repeats no step whose answer was lost: the answers of the newest batch are kept. */
  async takeTokens(request: TokenRequest): Promise<TokensTaken> {
    const step = tokensStep(request)
    const { done, details } = await this.#submitStep(step)
    if (!done) throw refusalError(step.what, { why: 'limits' })
    const [taken, free] = details
    return { taken: Number(taken), ...(free === undefined || free === null ? {} : { until: Number(free) }) }
  }

  async settle(settlement: Settlement): Promise<void> {
    if (!this.alive(settlement.session)) throw claimLostError(settlement)
    if (!(await this.#submitStep(settleStep(settlement))).done) throw claimLostError(settlement)
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    const step = releaseStep(request)
    const { done, details } = await this.#submitStep(step)
    if (done) return 'released'
    const [why, problem] = details
    if (why === 'gone' || why === 'unclaimed' || why === 'changed') return why
    throw new JobboardError(`${step.what}: ${this.uri} refused it: ${String(problem)}; nothing was changed`)
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    const { done, details } = await this.#submitStep(discardStep(discarded))
    if (!done) throw claimRejection(discarded, { why: details[0] })
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    if (request.kind === 'gate') {
      const what = request.paused ? 'pause' : 'resume'
      await this.#submitStep({ arguments: ['gate', request.paused], what: `${what} of ${this.uri}`, bytes: 10 })
      return
    }
    const { id, job } = request
    const bytes = encodeCancellation(request)
    const step = {
      arguments: ['cancel', id, bytes],
      what: `cancel of ${job}`,
      bytes: bytes.length,
      grows: true,
    } as const
    if (!(await this.#submitStep(step)).done) throw refusalError(job, { why: 'gone' })
  }

  async restore(entry: TrashedEntry, posting: Posting, options?: RestoreOptions): Promise<RestoreOutcome> {
    const { done, details } = await this.#submitStep(restoreStep(entry, posting, options))
    if (done) return { restored: true }
    if (details[0] === 'dependency') return { restored: false, gone: toGone(details[1]) }
    if (details[0] === 'key') throw refusalError(toJobName(posting), { why: 'key' })
    if (details[0] === 'duplicate') throw duplicateRestoreError(posting.batch ?? '', posting)
    throw notInTrashError(entry)
  }

  async purge(entry: TrashedEntry): Promise<void> {
    if (!(await this.#submitStep(purgeStep(entry))).done) throw notInTrashError(entry)
  }

  async dependencies(
    id: string,
  ): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }> {
    return this.#requireOpen.reader.dependencies(id)
  }

  async history({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    return this.#requireOpen.reader.history(limit)
  }

  async endedJobs(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    return this.#requireOpen.reader.endedJobs(uuids)
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    return this.#requireOpen.reader.read(ids)
  }

  async owner(id: string): Promise<string | undefined> {
    return this.#requireOpen.reader.owner(id)
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return this.#requireOpen.reader.cancellation(id)
  }

  async barrier(): Promise<void> {
    await this.#requireOpen.session.refresh()
  }

  trashed(listing?: TrashListing): AsyncIterable<TrashedEntry> {
    return this.#requireOpen.reader.trashed(listing)
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    return this.#requireOpen.reader.trashedEntry(id)
  }

  async findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    return this.#requireOpen.reader.findTrashed(uuid)
  }

  async write(request: WriteRequest): Promise<Written> {
    const { step, postings } = writeStep(request)
    const { done, details, isRepeated } = await this.#submitStep(step)
    const refused = done || details[0] !== 'batch' ? undefined : request.posts[Number(details[3])]
    if (refused) throw toBatchRefusalError(details, refused.posting)
    if (!done) return { done: false, conflict: toConflict(details, request) }
    const [revisions, ids] = details as [readonly string[], readonly string[]]
    const posted = postings.map((bytes, index): Posted => {
      const id = ids[index] ?? ''
      return { created: true, id, revision: 0, order: toOrder(id), bytes: toCountedBytes(bytes, 'msgpack') }
    })
    return {
      done: true,
      revisions: request.changes.map((_, index) => (revisions[index] ? Number(revisions[index]) : undefined)),
      posted: isRepeated ? await Promise.all(posted.map((each) => this.#locatePosted(each))) : posted,
    }
  }

  async records(kind: string): Promise<StoredRecord[]> {
    return this.#requireOpen.records.list(kind)
  }

  async record(name: RecordName): Promise<StoredRecord | undefined> {
    return this.#requireOpen.records.get(name)
  }

  async watchRecords(kind: string): Promise<void> {
    await this.#requireOpen.session.watch('records', kind)
  }

  async unwatchRecords(kind: string): Promise<void> {
    await this.#board?.session.unwatch('records', kind)
  }

  async releaseOrphans(): Promise<void> {
    // Resources are held by the job: without its claim none is left.
  }

  async resourceHolder(): Promise<undefined> {
    // Other programs hold no resources of these boards.
  }

  async register(entity: Entity): Promise<void> {
    const { session } = this.#requireOpen
    const step = registerStep(entity, await session.whenAlive())
    let { done, wasReleasedSince } = await this.#submitStep(step)
    if (wasReleasedSince) ({ done } = await this.#submitStep(step))
    if (!done) throw refusalError(`registering ${entity.kind} ${entity.name}`, { why: 'name' })
  }

  async unregister(entity: Entity): Promise<void> {
    if (this.#board?.session.attached) await this.#submitStep(unregisterStep(entity))
  }

  async entities(kind: string): Promise<Entity[]> {
    const { session, reader } = this.#requireOpen
    // Entities of dead owners are removed first.
    await session.refresh()
    return (await reader.entities()).filter((entity) => entity.kind === kind)
  }

  now(): number {
    return this.#board?.session.clock.now() ?? Date.now()
  }

  /** Returns a hold that costs nothing: the lease is watched in any case. */
  holdSession(): SessionHold {
    return { whenAlive: () => this.#requireOpen.session.whenAlive(), [Symbol.dispose]: () => undefined }
  }

  async readClock(): Promise<void> {
    // Each answer shows the time of the server, and there was one when the board was opened.
  }

  alive(session: string): boolean {
    return this.#board?.session.isAlive(session) ?? false
  }

  sessionLeft(): number | undefined {
    return this.#board?.session.leaseLeftMs
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  get #requireOpen(): RedisComponents {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  /** Reports each misplaced job once, up to {@link MAX_REPORTED} faults. */
  #misplaced(id: string): void {
    const what = `${shortenText(id)} has an invalid score in ${this.#layout.key('order')}`
    this.#report(id, new InvalidPosting(`${what}; it is not claimed here, remove it`))
  }

  /** Reports each fault once, also if it cannot be repaired and is found repeatedly. */
  #damaged(fault: string): void {
    const { eviction } = this.#requireOpen.session
    const cause = eviction ? `; this Redis evicts keys (maxmemory-policy ${eviction}), which can be the cause` : ''
    this.#report(fault, new JobboardError(`${this.uri}: ${fault.slice(0, MAX_FAULT_LENGTH)}${cause}`))
  }

  #report(what: string, error: Error): void {
    if (this.#reported.has(what) || this.#reported.size >= MAX_REPORTED) return
    this.#reported.add(what)
    this.#failed(error)
  }

  #submitStep(step: ScriptStep): Promise<StepReply> {
    return this.#requireOpen.committer.submit(step)
  }

  /**
   * Adds the present place of a job that was posted before its answer was lost. If there is no connection to ask, the id
   * stays as it was: the listing on the next connection shows whether the job is on the board.
   */
  async #locatePosted(posted: Posted): Promise<Posted> {
    if (!posted.created || posted.id === undefined) return posted
    const { id, ...rest } = posted
    return { ...rest, ...(await this.#requireOpen.reader.locatePosted(id).catch(() => ({ id }))) }
  }

  /**
   * Releases the jobs that still depend on one that has ended, in the background. If that fails, the next status asks for it again,
   * on this board or on another.
   */
  #finishEnds(): void {
    this.#finishing ??= this.#finishAll()
      .catch((error: unknown) => {
        if (!(error instanceof JobboardError)) this.#failed(asError(error))
      })
      .finally(() => {
        this.#finishing = undefined
      })
  }

  async #finishAll(): Promise<void> {
    for (let isMore = true; isMore; ) isMore = (await this.#submitStep(FINISH_STEP)).details[0] === true
  }

  /** Repairs postings without a row and rows without a posting, which were made by hand; the view receives the changes. */
  async #repair(): Promise<void> {
    const { reader } = this.#requireOpen
    const ids = await reader.findInconsistent()
    for (let from = 0; from < ids.length; from += MAX_REPAIRS_PER_BATCH) {
      const part = ids.slice(from, from + MAX_REPAIRS_PER_BATCH)
      await Promise.all(
        part.map((id) => this.#submitStep({ arguments: ['mend', id], what: `repair of ${id}`, bytes: 50 })),
      )
    }
  }
}

/** A status as the script `follow` returns it. */
function toJobStatus(status: unknown): JobStatus {
  if (!Array.isArray(status)) return status === 1 ? 'trashed' : 'gone'
  const [claimed, cancelled, revision] = status
  return { claimed: claimed === true, cancelled: cancelled === true, revision: Number(revision) }
}

function toPosted({ done, details }: StepReply, { bytes }: { readonly bytes: number }): Posted {
  if (!done && details[0] === 'dependency') return { created: false, gone: toGone(details[1]) }
  const [first = '', other = '', ended] = details.map(String)
  if (done) return { created: true, id: first, revision: 0, order: toOrder(first), bytes }
  return { created: false, uuid: other, revision: 0, ...(ended === undefined ? {} : { inWindowOf: ended }) }
}

/** Returns the ids of jobs that have left the board. */
function toGone(ids: unknown): readonly string[] {
  return (Array.isArray(ids) ? ids : [ids]).map(String)
}

function toGrant(choice: ClaimRequest, { done, details, session }: StepReply): ClaimGrant {
  if (!done) throw claimRejection(choice, { why: details[0], resource: details[1], until: details[2] })
  const [revision, fence, arrivals] = details
  const granted = { session, revision: Number(revision), fence: BigInt(fence as number | bigint) }
  return Array.isArray(arrivals) && arrivals.length > 0
    ? { ...granted, arrivals: toArrivals(choice, arrivals) }
    : granted
}

/** Returns the arrival times by key. The script knows the keys by their fields. */
function toArrivals({ limits }: ClaimRequest, words: readonly unknown[]): NonNullable<ClaimGrant['arrivals']> {
  return (limits?.wants ?? []).flatMap(({ key }) => {
    const at = words.indexOf(fieldName(key))
    return at === -1 ? [] : [{ key, arrivalMs: Number(words[at + 1]) }]
  })
}

function isBlockedByReleased(answer: Result<StepReply>): boolean {
  if (!('value' in answer) || !answer.value.wasReleasedSince) return false
  const [why, , until] = answer.value.details
  return why === 'resource' || (why === 'limit' && until === undefined)
}

function claimLostError({ kind, posting }: Settlement): Error {
  return refusalError(`${kind} of ${toJobName(posting)}`, { why: 'lost' })
}

function unwrapReply(result: Result<StepReply> = NO_REPLY): StepReply {
  if ('value' in result) return result.value
  throw result.error
}

function claimRejection(
  { id, posting, limits }: Pick<ClaimRequest, 'id' | 'posting' | 'limits'>,
  asked: { why: unknown; resource?: unknown; until?: unknown },
): Error {
  const what = toJobName(posting)
  switch (asked.why) {
    case 'gone':
    case 'paused':
    case 'waits':
    case 'limits':
      return refusalError(what, { why: asked.why })
    case 'fences':
      return new WritesRefused(
        `${what}: the field fence of ${String(asked.resource)} has reached its maximum, so no job can be claimed; set it to a number ` +
          'that is larger than every granted fence and smaller than 2^53, or move to another prefix',
      )
    case 'resource':
      return refusalError(what, { why: 'resource', resource: String(asked.resource) })
    case 'limit': {
      const want = limits?.wants.find(({ key }) => fieldName(key) === asked.resource)
      return limitReachedError(what, want, asked.until === undefined ? undefined : Number(asked.until))
    }
    default:
      return refusalError(`${what} (${id})`, { why: 'changed' })
  }
}

function notInTrashError({ posting }: TrashedEntry): Error {
  return refusalError(toJobName(posting), { why: 'not in trash' })
}
