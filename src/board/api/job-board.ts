/**
 * The jobboard: one class for every backend. It has the public methods, and each of them is one call of a part: `assemble-board.ts` makes the
 * parts. The live view knows which jobs are on the board (`lookup.ts` reads it); the backend decides which owner gets a job.
 *
 * Costs, in transactions and round trips of the backend: `post`, `claim` and each settle one transaction. What a process receives
 * depends on what it uses:
 *
 * | level | begun by | receives |
 * |---|---|---|
 * | posting | `openBoard`, `post`, `cancel`, `pause`, `trashed`, `restore`, `entities` | nothing |
 * | following | `job.wait`, `job.state` and the like, `find` with a reference, held claims | hints that these jobs have changed |
 * | viewing | `view`, `jobs`, `on`, `wait`, claims, conductors | the changes of the board; then `jobs`, `find` and `wait` send no request |
 *
 * A level is left some seconds after its last use (`view/subscription.ts`, `view/job-follower.ts`).
 */

import { assertOptions } from '../../core/options.ts'
import { attempt } from '../../core/result.ts'
import type { Flow } from '../../flow/index.ts'
import type { Claim } from '../claims/claim.ts'
import type { CancelOptions, ClaimNextOptions, ClaimsOptions, ReleaseOptions } from '../claims/claim-options.ts'
import type { ReleasedClaim } from '../claims/release-claim.ts'
import type { AbandonOptions, TrashOptions } from '../claims/settle-options.ts'
import type { Backend, Cancellation, Entity, SessionState } from '../contract/index.ts'
import type { Job, WaitOptions } from '../jobs/job.ts'
import type { TrashedJob } from '../jobs/trashed-job.ts'
import type { WaitingFor } from '../jobs/waiting-for.ts'
import type { Limits } from '../limits/limits.ts'
import { POST_OPTIONS, type PostOptions } from '../model/posting/post-options.ts'
import { listEntities, type RegisteredEntity } from '../records/entity-registry.ts'
import { type ListedFlow, listFlows } from '../records/flow-outlines.ts'
import type { BoardPause, PauseOptions, QueuePause } from '../records/pause-record.ts'
import type { Schedules } from '../schedules/schedules.ts'
import type { FlowSettings } from '../settings/flow-settings.ts'
import { assembleBoard, type BoardParts } from './assemble-board.ts'
import type { Batch, BatchView } from './batches/batch.ts'
import type { BatchOptions } from './batches/batch-options.ts'
import type { BatchesOptions } from './batches/batches.ts'
import { BoardInternals, INTERNALS } from './board-internals.ts'
import type { BoardEvents } from './events/events.ts'
import { type EndedJob, type HistoryOptions, readEndedJob, readHistory } from './history.ts'
import { type JobDependencies, readJobDependencies } from './job-dependencies.ts'
import { type JobResult, type ResultOptions, waitForResult } from './job-result.ts'
import type { JobsOptions } from './listed.ts'
import type { BoardOptions, PostAndClaimOptions } from './options.ts'
import type { ResumeOptions } from './pausing.ts'
import { type PostManyOptions, type PostManyResult, postMany, type TypedPostItem } from './posting/post-many.ts'
import type { PostedJob } from './posting/posted-job.ts'
import type { HoldOptions, ResourceHold } from './resource-hold.ts'
import type { RestoreOptions } from './restoring.ts'
import { findWaitingReason } from './waiting-reason.ts'

const NO_OPTIONS: PostOptions = {}

/**
 * An open board: it posts, lists, claims and settles jobs, and emits events. Opened by `openBoard`, closed by `close()` or `await using`.
 */
export class JobBoard implements AsyncDisposable {
  /** The owner that this board's claims name. */
  readonly who: string
  readonly #parts: BoardParts
  readonly #internals: BoardInternals

  /** @internal Use `openBoard`. @throws TypeError unless `who` is a non-empty string; InvalidArgument for `log` */
  constructor(backend: Backend, options: BoardOptions = {}) {
    this.#parts = assembleBoard(backend, options)
    this.#internals = new BoardInternals(this.#parts)
    this.who = this.#parts.who
  }

  /** @internal What other folders of this project need: use `boardInternals`. */
  get [INTERNALS](): BoardInternals {
    return this.#internals
  }

  /** The URI without a password, for messages. */
  get uri(): string {
    return this.#parts.backend.uri
  }

  /** Whether TaskFlow's services also post and claim on this board. */
  get shared(): boolean {
    return this.#parts.backend.shared
  }

  /** Whether the board is connected, so that operations can succeed. */
  get connected(): boolean {
    return this.#parts.router.state === 'connected'
  }

  get state(): SessionState {
    return this.#parts.router.state
  }

  /**
   * The milliseconds without a heartbeat after which other owners can take over the jobs of this board; undefined where a
   * session lasts as long as its process.
   */
  get sessionTimeout(): number | undefined {
    return this.#parts.backend.session.timeout
  }

  /**
   * The number of jobs on the board, claimed or not, without a request; undefined while this process does not {@link view} the board:
   * then {@link countJobs} counts them.
   */
  get jobCount(): number | undefined {
    return this.#parts.view.jobCount
  }

  /**
   * Calls `listener` for each event until the returned function is called. An error that a listener throws affects no other listener.
   *
   * A listener for events of jobs opens the view of the board: await {@link view} where no event may be missed from then on.
   */
  on<E extends keyof BoardEvents>(event: E, listener: (event: BoardEvents[E]) => unknown): () => void {
    return this.#parts.viewing.on(event, listener)
  }

  /**
   * Views the board until the result is disposed: every later change is emitted, and `jobs`, `jobCount` and `wait` answer from
   * memory. Other methods open the view themselves while they need it; a process that only posts never does, and receives nothing.
   *
   * @throws NotConnected, AccessDenied
   * @example using _view = await board.view()
   */
  async view(options: { readonly signal?: AbortSignal } = {}): Promise<Disposable> {
    return this.#running.viewing.open(options)
  }

  /** Ends the session, and with it every claim that was not settled. Idempotent; awaits what is under way. */
  close(): Promise<void> {
    return this.#parts.life.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // --- Posting and listing ----------------------------------------------------------------------------------------

  /**
   * Posts a job in one transaction. For a flow object, the compiler checks the inputs, and this method checks that none is
   * missing; for the name of a flow, the process that runs the job checks them.
   *
   * With a `key`, at most one job with that key is on the board: if there is one, nothing is posted, and this method resolves to
   * that job, with `created` false. That takes three round trips more, and on ZooKeeper it opens the view.
   *
   * @throws MissingDependencies, InvalidPosting, PayloadTooLarge, UnsupportedCapability: nothing was posted
   * @throws NotConnected: nothing was posted; try again
   * @throws OutcomeUnknown: the job may have been posted; with a key, post it again; without one, post it again with the same
   * uuid if two runs do no harm
   * @example await board.post(hello, { name: 'Ada' }, { priority: 'HIGH' })
   */
  post<I extends object>(flow: Flow<I> | string, store: NoInfer<I>, options?: PostOptions): Promise<PostedJob> {
    return attempt(() => {
      const { poster } = this.#running
      if (options !== undefined) assertOptions(options, POST_OPTIONS, 'post')
      return poster.post(flow, store, options ?? NO_OPTIONS)
    })
  }

  /**
   * Posts many jobs: a few hundred in each transaction, with an answer for each, in the order of the items; or with `atomic` at most 500
   * jobs in one transaction, or none. The items are read as they are needed, and can be an async iterable.
   *
   * An item that cannot be posted has an `error` as its answer, and the others are posted. An item whose `key` is taken has
   * `created: false`.
   *
   * @throws InvalidArgument; what the items throw; the signal's reason; with `atomic`, as {@link post}, and Duplicate where a key is taken
   * @example
   * const results = await board.postMany(users.map((user) => ({ flow: hello, store: { name: user.name }, key: user.id })))
   * for (const [index, result] of results.entries()) if ('error' in result) console.error(users[index], result.error)
   */
  async postMany<I extends object>(
    items: Iterable<TypedPostItem<I>> | AsyncIterable<TypedPostItem<I>>,
    options: PostManyOptions = {},
  ): Promise<PostManyResult[]> {
    return this.#running.poster.many((poster) => postMany(items, options, poster))
  }

  /**
   * Creates a batch: a group of jobs that is counted to the end of the last one, which posts a callback. Post its jobs with `batch.post`,
   * and seal it when there are no more. One transaction.
   *
   * @throws InvalidArgument; for the callbacks as {@link post}; PayloadTooLarge; Duplicate when the board has a batch with the given
   *   `uuid`; UnsupportedCapability, NotConnected; OutcomeUnknown: the batch may have been created
   * @example
   * const batch = await board.batch({ name: 'import', onDone: { flow: report, store: { month: '2026-10' } } })
   * await batch.postMany(files.map((file) => ({ flow: load, store: { file } })))
   * await batch.seal()
   */
  async batch(options: BatchOptions): Promise<Batch> {
    return this.#running.batches.create(options)
  }

  /** Finds a batch by its uuid; one round trip. @throws NotFound when the board has none, or keeps it no more; UnsupportedCapability */
  async findBatch(uuid: string): Promise<Batch> {
    return this.#running.batches.find(uuid)
  }

  /**
   * Returns the newest batches, newest first, with their progress. Of those that have ended, a board keeps the last 1,000.
   *
   * @param options.limit the number of batches; 100 by default, at most 10,000
   * @throws InvalidArgument; UnsupportedCapability where the board has no batches
   */
  async batches(options: BatchesOptions = {}): Promise<readonly BatchView[]> {
    return this.#running.batches.list(options)
  }

  /**
   * Posts a job and claims it here; no other board can claim it first. The job waits for its resources as every job does. Two
   * transactions.
   *
   * If this process ends before it has the claim, the job goes to the trash about a minute later, or after `expiresAfter`. Restore the job
   * from the trash if other processes are to run it. On a board that is shared with TaskFlow, where jobs do not expire, any board can claim
   * it after an hour.
   *
   * @throws as {@link post}; Timeout or the signal's reason: the job is then in the trash, or goes there when the servers answer again;
   * Duplicate when a job with the key is on the board; NotFound when the job was cancelled before its turn came
   * @example await using claim = await board.postAndClaim('tidy', {}, { resources: { exclusive: ['disk'] } })
   */
  async postAndClaim<I extends object>(
    flow: Flow<I> | string,
    store: NoInfer<I>,
    options: PostAndClaimOptions = {},
  ): Promise<Claim> {
    return this.#running.ownJobs.postAndClaim(flow, store, options)
  }

  /**
   * Owns resources without a job's work: waits in their line as a job does, and owns them until they are released, or the session ends.
   * Two transactions, and one for the release. For `jobs`, the hold is a job of the flow `jobboard/hold`. If this process ends while it
   * waits, the job goes to the trash about a minute later.
   *
   * @throws InvalidArgument; Timeout, or the signal's reason, while it waits; NotFound when the hold was cancelled before its turn came;
   * UnsupportedCapability where the board has no resources
   * @example await using hold = await board.hold({ exclusive: ['repo/fedora'], timeout: '5m' })
   */
  async hold(options: HoldOptions): Promise<ResourceHold> {
    return this.#running.ownJobs.hold(options)
  }

  /** Yields the jobs that are on the board now: by priority, then in posting order. */
  async *jobs(options: JobsOptions = {}): AsyncGenerator<Job, void, undefined> {
    yield* this.#running.lookup.jobs(options)
  }

  /** Counts the jobs on the board now, claimed or not. Opens the view, which lists a ZooKeeper board as a whole. */
  async countJobs(): Promise<number> {
    return this.#running.lookup.count()
  }

  /** Resolves when there is a job to claim. @throws Timeout */
  async wait(options: WaitOptions = {}): Promise<void> {
    return this.#running.claims.claimer.waitForClaimable(options)
  }

  /**
   * Finds a job by its reference ({@link Job.ref}) or its uuid. With a reference it takes one round trip. With a uuid it takes two on
   * Postgres and Redis; a ZooKeeper board that is not viewed is listed as a whole, and viewed for some seconds.
   *
   * @throws NotFound when it is not on the board
   * @example const job = await board.find(request.query.ref)
   */
  async find(reference: string): Promise<Job> {
    return this.#running.lookup.find(reference)
  }

  /** Returns the owner of the job; undefined where it is unclaimed. One round trip. */
  async findOwner(job: Job): Promise<string | undefined> {
    return this.#running.lookup.owner(job)
  }

  /**
   * Returns the known reason why the job is not run. Examples are a pause, a delay, a resource, and a flow that no living conductor knows.
   * A suspect waits while each process that could run it runs another suspect. Takes one or two round trips, and one for each conductor.
   */
  async waitingFor(job: Job): Promise<WaitingFor | undefined> {
    return findWaitingReason(job, this.#running)
  }

  /**
   * Returns the jobs that have ended last, newest first: done, or moved to the trash. One round trip. The board keeps some of them, see
   * `keepHistory`; none on a board that is shared with TaskFlow.
   *
   * @param options.limit the number of jobs; 100 by default, at most 10,000
   * @throws InvalidArgument, NotConnected
   * @example for (const { uuid, outcome, who } of await board.history()) console.log(uuid, outcome, who)
   */
  async history(options: HistoryOptions = {}): Promise<readonly EndedJob[]> {
    return readHistory(options, this.#running.backend)
  }

  /**
   * Returns how the job with this uuid ended last: its owner, its times and its number of runs, from the history. Undefined if the history
   * does not have the job. Takes one round trip.
   *
   * @throws InvalidArgument, NotConnected
   */
  async findEnded(uuid: string): Promise<EndedJob | undefined> {
    return readEndedJob(uuid, this.#running.backend)
  }

  /**
   * Waits for the end of a job and returns its results, typed by its flow. It may end before, during or after the call: what is read is the
   * state of the job, its record in the history, and the logbook, where one is given. Results are found
   *
   * - on the board, where the flow has `keepResults: true`, or the job was consumed with `results`; no logbook is needed;
   * - in the logbook, with the options `flow` and `persistence`.
   *
   * The job that is given can be a posted one, or its uuid or reference. A job of which neither the board nor its history knows is not
   * found. One round trip and those of `find`, after the end of the job.
   *
   * @throws JobFailed, with the reason, for a job that is in the trash, was purged from it, or was reverted; ResultNotKept; NotFound;
   *   Timeout, or the signal's reason; SealedLogbook where the codecs do not match; InvalidArgument, NotConnected
   * @example
   * const job = await board.post(report, { month: '2026-10' })
   * const { results } = await board.result(job, { flow: report, timeout: '5m' })
   */
  async result<R = Record<string, unknown>>(job: Job | string, options: ResultOptions<R> = {}): Promise<JobResult<R>> {
    const { backend, lookup } = this.#running
    return waitForResult(job, options, { backend, find: (reference) => lookup.find(reference) })
  }

  /**
   * Returns the jobs for which the job still waits, and those that are run after it, at most 1,000 each. Two round trips, and those that
   * read the postings.
   *
   * @throws NotFound when the job is not on the board
   */
  async dependencies(job: Job): Promise<JobDependencies> {
    return readJobDependencies(job, this.#running)
  }

  /**
   * Yields the jobs in the trash, oldest first. The trash is read page by page, so that a long one needs little memory; a job that
   * leaves it meanwhile may be left out.
   */
  async *trashed(): AsyncGenerator<TrashedJob, void, undefined> {
    yield* this.#running.trash.list()
  }

  /**
   * Returns the job in the trash with this reference (`job.ref`) or uuid; undefined if there is none. If jobs with the uuid were trashed
   * several times, returns the newest one. Takes one or two round trips. On ZooKeeper and Redis, the first call of a process with a uuid
   * reads the whole trash; a call with a reference does not.
   *
   * @throws TypeError for an empty text; NotConnected
   * @example const trashed = await board.findTrashed(job.ref)
   */
  async findTrashed(reference: string): Promise<TrashedJob | undefined> {
    return this.#running.trash.find(reference)
  }

  /**
   * Moves a job from the trash behind the other jobs of its priority, with its uuid and run number and without attempts. One transaction.
   *
   * A job that depends on others waits for those of them that have not ended. With one of them in the trash it is refused: restore that
   * one, with `{ dependents: true }`, which restores this one, too. Returns the restored jobs.
   *
   * @throws NotFound when it is no longer in the trash, or a job on which it depends is not known any more; InvalidState when such a job is
   *   in the trash; Duplicate when its key is taken, or a job with its uuid is open in its batch; InvalidArgument. With `dependents`, also
   *   of one of those; the others are restored
   */
  async restore(trashed: TrashedJob, options: RestoreOptions = {}): Promise<readonly TrashedJob[]> {
    return this.#running.trash.restore(trashed, options)
  }

  /** Deletes a job from the trash; one transaction. @throws NotFound when it is no longer in the trash */
  async purge(trashed: TrashedJob): Promise<void> {
    return this.#running.trash.purge(trashed)
  }

  // --- Requests to all processes ----------------------------------------------------------------------------------

  /**
   * Cancels a job: `claim.cancelled` fires in the process that runs it. A job that was never run is trashed at once. A job that
   * was run before and waits is claimed once more, so that a conductor can revert its work; `claim.perform`, which has nothing to
   * revert, trashes it without calling the work.
   *
   * @param job the job, its reference, or its uuid
   * @throws NotFound when it has left the board
   * @example await board.cancel(uuid, { reason: 'ordered twice' })
   */
  async cancel(job: Job | string, options: CancelOptions = {}): Promise<void> {
    return this.#running.requests.cancel(job, options)
  }

  /**
   * Takes the claim of a job away from its owner, which lives and makes no progress: the job is unclaimed, everything that the claim was
   * granted is free, and any owner can claim it. `claim.lost` fires in the process that had it, and the run is stopped as after the end of
   * a session. The attempt does not count. One transaction, which releases only the claim that is read; two more round trips.
   *
   * The former owner can still work for the moment until it receives the change, and for longer if its process hangs: its logbook
   * refuses it, and the fence (`ctx.fence`, `claim.fence`) tells other systems which run is the newest. A job that was posted with
   * `onOwnerLost: 'fail'`, and a hold, goes to the trash.
   *
   * @param job the job, its reference, or its uuid
   * @throws NotFound when the job has left the board, or is unclaimed; Conflict when another run has it: nothing was changed
   * @throws UnsupportedCapability on boards that are shared with TaskFlow
   * @example const { owner, run } = await board.release(job, { reason: 'hangs since noon' })
   */
  async release(job: Job | string, options: ReleaseOptions = {}): Promise<ReleasedClaim> {
    return this.#running.requests.release(job, options)
  }

  /** Returns the cancel request of the job, with its reason, if there is one; one round trip. */
  async cancellation(job: Job): Promise<Cancellation | undefined> {
    return this.#running.lookup.cancellation(job)
  }

  /**
   * Pauses the board: no process can claim a job until {@link resume}, also after all processes have been restarted. Running jobs continue. A board
   * that is paused already gets the new reason, and keeps the time at which its pause began.
   * Takes two transactions. The second one records who has paused the board, when and why; if it fails, the board stays paused, and `error`
   * is emitted.
   *
   * With `queue`, only the jobs of that queue are not claimed, in the same way; one transaction.
   *
   * @throws InvalidArgument; UnsupportedCapability for a queue of a board that is shared with TaskFlow
   * @example await board.pause({ queue: 'bulk', reason: 'the database moves', by: 'ada' })
   */
  async pause(options: PauseOptions = {}): Promise<void> {
    return this.#running.pausing.pause(options)
  }

  /** Ends the pause of the board, or of a queue. @throws InvalidArgument */
  async resume(options: ResumeOptions = {}): Promise<void> {
    return this.#running.pausing.resume(options)
  }

  /**
   * Returns the queues that are paused, with who has paused them, when and why. Where the limit of a pattern is stopped, as
   * `limits.stop('queue/tenant-*')` does, `queue` is this pattern: all queues that it matches are paused. Takes some round trips.
   */
  async pausedQueues(): Promise<readonly QueuePause[]> {
    return this.#running.pausing.queues()
  }

  /** Returns who has paused the board, when and why; undefined if the board is not paused, or if this was not recorded. Takes one round trip. */
  async pauseOrigin(): Promise<BoardPause | undefined> {
    return this.#running.pausing.origin()
  }

  /**
   * Whether the board is paused: as it was when it was opened, or as this process has set it last; as it is now while this process
   * views the board.
   */
  get paused(): boolean {
    return this.#parts.router.paused
  }

  // --- Claiming ---------------------------------------------------------------------------------------------------

  /**
   * Claims the given job; one transaction.
   *
   * @throws Unclaimable naming the owner, or the limit that the job has exceeded (then it is trashed)
   * @throws NotFound when it has left the board
   */
  async claim(job: Job): Promise<Claim> {
    return this.#running.requests.claim(job)
  }

  /**
   * Waits until a job can be claimed and claims up to `max` jobs, in claim order. A lost race for a job costs one round trip.
   *
   * Without a `timeout`, a caller that finds nothing among many jobs of others stops viewing the board, and looks at it some times a second
   * for jobs that nobody else claims. It begins such a job up to a second later, on a board with a long backlog up to half a minute later.
   *
   * @throws Timeout when there is a `timeout`; the signal's reason; InvalidState when the board is closed
   * @example const [claim] = await board.claimNext({ signal })
   */
  async claimNext(options: ClaimNextOptions = {}): Promise<[Claim, ...Claim[]]> {
    return this.#running.claims.claimer.claimNext(options)
  }

  /**
   * Yields one claim after the other, until the signal fires or the board is closed.
   *
   * @example for await (const claim of board.claims({ signal })) await claim.perform(work)
   */
  async *claims(options: ClaimsOptions = {}): AsyncGenerator<Claim, void, undefined> {
    yield* this.#parts.claims.claimer.claimAll(options)
  }

  /**
   * Consumes a job that this board has claimed.
   *
   * @throws NotFound when the job is unclaimed, NotOwner when another board object holds the claim; else as Claim.consume
   */
  async consume(job: Job): Promise<void> {
    return (await this.#running.requests.findClaim(job)).consume()
  }

  /** Abandons a job that this board has claimed. @throws as {@link consume} */
  async abandon(job: Job, options?: AbandonOptions): Promise<void> {
    return (await this.#running.requests.findClaim(job)).abandon(options)
  }

  /** Trashes a job that this board has claimed. @throws as {@link consume} */
  async trash(job: Job, options?: TrashOptions): Promise<void> {
    return (await this.#running.requests.findClaim(job)).trash(options)
  }

  // --- Schedules --------------------------------------------------------------------------------------------------

  /** The schedules of the board: list, put, pause, trigger. Conductors fire them. */
  get schedules(): Schedules {
    return this.#parts.schedules
  }

  /**
   * The limits of the board: how many jobs of a key run at once, and how many start in a time. They hold for the claims of all processes.
   *
   * @example await board.limits.set('flow/report', { concurrency: 2 })
   */
  get limits(): Limits {
    return this.#parts.limits
  }

  /**
   * The settings of flows on the board, which reach all that post and claim: how often a job is tried, its queue, whether a flow is enabled.
   *
   * @example await board.flowSettings.set('report*', { maxAttempts: 7 })
   */
  get flowSettings(): FlowSettings {
    return this.#parts.flowSettings
  }

  /**
   * Returns the flows that conductors of this board have, or have had: their tasks and the order between them. `toMermaid` draws one.
   *
   * @throws NotConnected
   */
  async flows(): Promise<ListedFlow[]> {
    return listFlows(this.#running.records)
  }

  // --- Entities ---------------------------------------------------------------------------------------------------

  /** Registers an entity on the board until it is disposed, also after a change of session. @throws Duplicate */
  async registerEntity(entity: Omit<Entity, 'instance'>): Promise<RegisteredEntity> {
    return this.#running.entities.register(entity)
  }

  /** Returns the living entities of a kind, such as conductors. One round trip, and one for each entity. */
  async entities(kind: string): Promise<Entity[]> {
    return listEntities(kind, this.#running.backend.entities)
  }

  /** The parts of a board that is open. @throws InvalidState */
  get #running(): BoardParts {
    this.#parts.lifecycle.assertRunning()
    return this.#parts
  }
}
