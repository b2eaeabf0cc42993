/**
 * What a board needs of the system that keeps it. Everything else (the live view, the queue, filters, events, waiting,
 * checks) is written once, in `JobBoard`.
 *
 * No connection, key or transaction type appears here. A **job id** is the backend's own name for a posting
 * (`job0000000042`), unique for ever on its board; users know a job by its uuid.
 *
 * Rules that every backend keeps, proven by `test/contract/board.ts`:
 *
 * 1. Each element of `post`, `claim` and `settle` is one atomic step: done, or refused with nothing changed. The answer to
 *    one element does not depend on its neighbours.
 * 2. A refusal is proven by committed state. When a connection drops in between, the backend finds out what happened, or
 *    answers OutcomeUnknown. It never sends a step again on another session.
 * 3. The sink hears of a change before the answer to any step that was committed after it, and hears it synchronously:
 *    when a claim is answered with a refusal, the view knows already who was faster.
 * 4. A change is reported once, in the order of commits, or the sink is told of a gap.
 * 5. A claim grants everything that its posting asks for (the job, its resources) or nothing; its end frees everything.
 *    While the board is paused nothing is granted.
 */
import type { AlarmClock } from '../core/alarm-clock.ts'
import type { Failure } from '../core/failure.ts'
import type { ClaimOrderKey } from './model/claim-order.ts'
import type { Posting, SqlClient } from './model/posting.ts'

export interface Backend {
  /** For people: the URI, without a password. */
  readonly uri: string
  readonly capabilities: BackendCapabilities
  /** Whether others than this library post and claim here too; known once it is open. */
  readonly shared?: boolean

  /** After how many milliseconds without a sign of life a session is over; absent where it lasts as long as its process. */
  readonly sessionTimeout?: number | undefined

  /** What delays and deadlines of its jobs go by; the process' own where it has none. */
  readonly clock?: AlarmClock

  /** Connects, makes the board where it is missing, and reports to the sink from now on, beginning with a gap. */
  open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void>
  /** Idempotent; ends the session, and with it every claim. */
  close(): Promise<void>

  /** NotConnected, OutcomeUnknown, PayloadTooLarge, InvalidArgument. One transaction each. */
  post(requests: readonly PostRequest[]): Promise<Result<Posted>[]>
  /**
   * In a transaction of the caller's own, which commits or does not. Absent where there is no such thing.
   *
   * @throws InvalidArgument for a pool, and for a client that has no transaction open: nothing was posted
   */
  postInTransaction?(client: SqlClient, request: PostRequest): Promise<PostedInTransaction>
  /** Returns whether the transaction of {@link postInTransaction} is still open, or how it ended. */
  transactionState?(transaction: string): Promise<TransactionState>
  /** NotConnected, NotFound, Unclaimable. One transaction each. */
  claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]>
  /** NotConnected, ClaimLost, OutcomeUnknown. One transaction each. */
  settle(settlements: readonly Settlement[]): Promise<Result<void>[]>
  /** Trashes a job that nobody owns. NotConnected, NotFound, Unclaimable, OutcomeUnknown. One transaction. */
  discard(discarded: DiscardRequest): Promise<Result<void>>
  /** Frees what is left of a claim that was taken away by hand while its session lives. Absent where nothing can be. */
  releaseOrphans?(left: OrphanedClaim): Promise<void>
  /**
   * Asks for something that outlives whoever asked: that a job be given up, or that the board be paused or resumed. When it
   * is done, every later claim knows of it. NotConnected, NotFound, OutcomeUnknown. One transaction.
   */
  request(request: CancelRequest | GateRequest): Promise<void>
  /** Out of the trash, to the end of the queue. NotConnected, NotFound, Duplicate, OutcomeUnknown. One transaction. */
  restore(entry: TrashedEntry, posting: Posting): Promise<void>
  /** Out of the trash for ever. NotConnected, NotFound, OutcomeUnknown. One transaction. */
  purge(entry: TrashedEntry): Promise<void>

  /** What is on the board now. Absent where there are sections. */
  list?(): Promise<BoardListing>
  /** Where a board may be longer than what a process wants to keep in memory: see `view/window.ts`. Else a view shows all of it. */
  readonly sections?: BoardSections
  /** One element per id; undefined where the posting is gone. */
  read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]>
  /** Who holds the claim. */
  owner(id: string): Promise<string | undefined>
  /** Who asked for the job to be given up, and why. */
  cancellation(id: string): Promise<Cancellation | undefined>
  /** Resolves when the sink has heard of everything that was committed before the call. */
  barrier(): Promise<void>
  /**
   * Yields what is in the trash, oldest first, without what cannot be read, which the sink gets as errors. It is read page by
   * page (`backends/trash-pages.ts`): what leaves the trash before its page is read is left out, and what comes later is not listed.
   */
  trashed(): AsyncIterable<TrashedEntry>
  /** Returns what lies in the trash under this id, as far as it can be read; one round trip. */
  trashedEntry?(id: string): Promise<TrashedEntry | undefined>

  /**
   * Shows a participant for as long as the session lasts. One of the same instance takes the place of what was shown.
   *
   * @throws Duplicate while another living one bears the name
   */
  register(entity: Entity): Promise<void>
  unregister(entity: Entity): Promise<void>
  entities(kind: string): Promise<Entity[]>

  /** What it lacks to claim such a job, whoever posted it: the job stays for others. Absent where it can claim all. */
  missingCapability?(posting: Pick<Posting, 'key' | 'resources'>): keyof BackendCapabilities | undefined

  /** The clock that delays are counted by, in milliseconds since 1970. */
  now(): number
  /**
   * From now until it is disposed claims are held: the backend watches over the lease of the session, and tells `lost`
   * before anybody else could be granted what this session holds.
   */
  holdSession(): SessionHold
  /** Whether this session is certain to be alive at this instant. Asks nobody; tells `lost` first where it is not. */
  alive(session: string): boolean
}

export interface SessionHold extends Disposable {
  /**
   * Resolves with the session as soon as it, or the next one, is certain to be alive; nearly always at once.
   *
   * @throws NotConnected
   */
  whenAlive(): Promise<string>
}

/** What a backend truly cannot do, as data. What is missing is refused, never imitated. */
export interface BackendCapabilities {
  readonly keys: boolean
  readonly resources: boolean
  readonly delays: boolean
  readonly cancel: boolean
  /** Jobs come back from the trash. */
  readonly restore: boolean
  /** Every change is told. Else how things stand is told, and what was undone at once may go unheard. */
  readonly completeChangeFeed: boolean
}

/** Who hears what happens on the board. Called synchronously; never throws. */
export interface BackendSink {
  changes(batch: readonly BoardChange[]): void
  /** Changes may have been missed: list again. */
  gap(): void
  /** Whether the board grants claims. Told once it is known, and whenever it changes. */
  paused(paused: boolean): void
  session(event: BoardSessionEvent): void
  /** How many jobs were on the board after what was told last; of a backend with sections, at each gap. */
  jobCount(jobs: number): void
  /** Whether a job with this uuid may be on the board: no only where everything told so far speaks against it. */
  mayExist(uuid: string): boolean
  /** Something failed in the background. */
  error(error: Error): void
}

export type BoardChange = {
  readonly kind: 'posted' | 'updated' | 'gone' | 'claimed' | 'released' | 'trashed' | 'cancelled'
  readonly id: string
  /** Of what was posted, where there are sections. */
  readonly at?: QueueKey
  /** It may have been told before: that is not counted twice. */
  readonly again?: true
}

/** Where in claim order, and from when on: all that decides whether a view has to look at a job. */
export interface QueueKey extends ClaimOrderKey {
  /** In milliseconds on the backend's clock; 0 is at once. Of one that is asked to be given up, too. */
  readonly dueAt: number
}

/** A job without its posting. */
export interface JobSummary extends QueueKey {
  readonly claimed: boolean
  readonly cancelled: boolean
}

/** Parts of a board, each as it is at some moment of the call. */
export interface BoardSections {
  /** About how many jobs of the head of the board a view holds. */
  readonly window: number
  /** About how many bytes of postings a view holds of those. */
  readonly windowBytes: number
  /**
   * Up to so many jobs behind `after` in claim order. `due` leaves out those that are claimed, and those that rest; `end`
   * tells that there are no more.
   */
  range(asked: { readonly after?: ClaimOrderKey | undefined; readonly limit: number; readonly due: boolean }): Promise<{
    readonly spots: readonly JobSummary[]
    readonly end: boolean
    /** The clock by which they were due. */
    readonly at: number
  }>
  /** Up to so many of those that rest longer than until `after`, the first to wake first. */
  delayed(asked: { readonly after: number; readonly limit: number }): Promise<readonly JobSummary[]>
  claimed(): Promise<readonly JobSummary[]>
  /** One for each id. */
  statusOf(ids: readonly string[]): Promise<readonly ('there' | 'trashed' | 'gone')[]>
  /** The id of a job with this uuid. */
  find(uuid: string): Promise<string | undefined>
}

/**
 * `connected`: operations go through. `disconnected`: nothing goes through, claims still stand. `lost`: the session is
 * over and with it every claim it held; a new one follows, with another id. `closed`: the end.
 */
export type SessionState = 'connected' | 'disconnected' | 'lost' | 'closed'

export interface BoardSessionEvent {
  readonly state: SessionState
  /** Tells this session from every other of this backend object. No secret: it can be logged. */
  readonly session: string
  readonly reason?: Error
}

export type Result<T> = { readonly value: T } | { readonly error: Error }

export interface PostRequest {
  readonly posting: Posting
  /** The key's revision, as `Posted` told it, of a job that has left the board: the key is this job's from now on. */
  readonly takeOver?: number
}

export type Posted =
  | {
      readonly created: true
      /** Absent when the answer was lost and the job has left the board since. */
      readonly id?: string
      /** Whether it has left the board for the trash. */
      readonly trashed?: boolean
      readonly revision: number
      readonly order: bigint
      /** How large the posting counts in memory, as in {@link StoredJob}. */
      readonly bytes: number
    }
  | {
      /** Nothing was posted: the key is taken. */
      readonly created: false
      /** By the job with this uuid, if it is still there. */
      readonly uuid?: string
      /** Of the key. */
      readonly revision: number
    }

/** What was posted in a transaction of the caller's, which is named so that its end can be looked up. */
export type PostedInTransaction = Posted & { readonly transaction: string }

/** `unknown`: too long ago, or the server has lost it. */
export type TransactionState = 'open' | 'committed' | 'rolled back' | 'unknown'

export interface ClaimRequest {
  readonly id: string
  readonly who: string
  /** The posting as it was chosen, and its revision: the claim is refused if it has changed since. */
  readonly revision: number
  /** What the posting becomes: the next run, with its attempt. */
  readonly posting: Posting
}

export interface ClaimGrant {
  readonly session: string
  /** The posting's revision as this claim wrote it; settles are checked against it. */
  readonly revision: number
  /**
   * Grows over the whole board: of two claims of a job, or of what they share, the later has the larger one. It is raised by
   * the server's clock, so that a board that was begun anew or restored continues above what was handed out before.
   */
  readonly fence: bigint
  /** What the backend recognizes by what this claim made, where the fence does not tell. */
  readonly mark?: bigint
}

/** The claim whose job, resources and fence these are is gone. */
export interface OrphanedClaim {
  readonly id: string
  readonly posting: Posting
  readonly fence: bigint
  /** As it was granted. */
  readonly mark?: bigint
}

/** Ends a claim, in the session and at the revision that granted it. */
export type Settlement = {
  readonly id: string
  readonly who: string
  readonly session: string
  readonly revision: number
  /** What the posting becomes, on the board or in the trash. */
  readonly posting: Posting
  /** Whether the job is asked to be given up, as far as the view knows: the request ends with the job. */
  readonly cancelRequested: boolean
} & ({ readonly kind: 'consume' } | { readonly kind: 'abandon' } | ({ readonly kind: 'trash' } & TrashReason))

export type DiscardRequest = {
  readonly id: string
  readonly who: string
  readonly revision: number
  readonly posting: Posting
  readonly cancelRequested: boolean
} & TrashReason

/** Asks for a job to be given up, wherever it runs. Asking twice changes nothing. */
export interface CancelRequest extends Cancellation {
  readonly kind: 'cancel'
  readonly id: string
  /** For errors: the job as people know it. */
  readonly job: string
}

/** Who has asked for a job to be given up, and why. */
export interface Cancellation {
  readonly who: string
  readonly reason: string
}

export interface GateRequest {
  readonly kind: 'gate'
  readonly paused: boolean
}

/** Why a job is in the trash. */
export interface TrashReason {
  readonly reason: string
  readonly failure?: Failure
}

export interface BoardListing {
  readonly jobs: readonly string[]
  readonly claimed: ReadonlySet<string>
  /** The ids in the trash. */
  readonly trashed: ReadonlySet<string>
  /** The ids of jobs that are asked to be given up. */
  readonly cancelled: ReadonlySet<string>
}

export interface StoredJob {
  readonly id: string
  readonly posting: Posting
  readonly revision: number
  /** Posting order: smaller is older; equal for jobs posted in one transaction, whose ids then decide. */
  readonly order: bigint
  /** By the backend's clock, in milliseconds since 1970; so is the next, which a delay counts from. */
  readonly postedAt: number
  readonly writtenAt: number
  /** How large the posting counts in memory: its encoded size, or more for one that takes unusually much. */
  readonly bytes: number
}

export interface UnreadableJob {
  readonly id: string
  readonly error: Error
  /** How large it is, encoded, where that is known: for who asks for many at once. */
  readonly bytes?: number
}

export interface TrashedEntry extends TrashReason {
  readonly id: string
  /** Of the entry: it is restored and purged as it was seen, or not at all. */
  readonly revision: number
  readonly posting: Posting
  readonly who: string
  readonly at: Date
}

/** A participant that lives: a conductor, say. */
export interface Entity {
  readonly kind: string
  readonly name: string
  /** Tells a living bearer of the name from a leftover of its own. */
  readonly instance: string
  readonly metadata: Readonly<Record<string, unknown>>
}
