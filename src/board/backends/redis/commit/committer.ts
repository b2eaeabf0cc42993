/**
 * Sends steps to Redis, one batch at a time, each in one call of one script. Steps that arrive meanwhile form the next batch.
 *
 * Batches are numbered, and the owner's key keeps the number and the answers of the newest batch. So a batch whose answers
 * were lost is sent again, unchanged, on the next connection: the script executes it, or returns its former answers. It is
 * never sent in another session: the outcome of its steps is then unknown (OutcomeUnknown). Steps that were not sent yet
 * are refused, or are sent in the next session if that does no harm.
 */
import { createDeferred, type Deferred } from '../../../../core/async/abort.ts'
import { GroupCommit, type QueuedRequest, withinLimits } from '../../../../core/async/group-commit.ts'
import { asError, OutcomeUnknown, WritesRefused } from '../../../../core/errors.ts'
import { type Result, toFailed } from '../../../../core/result.ts'
import { type Instant, monotonic, startTimer, systemClock } from '../../../../core/time.ts'
import { refusalError } from '../../../contract/refusals.ts'
import { notConnectedError, toErrorKind, writesRefusedError } from '../store/errors.ts'
import { decodeReply, toList } from '../store/replies.ts'
import { SCRIPTS } from '../store/scripts.ts'
import { type BatchAnswers, type BatchReply, encodeSteps, encodeWords } from './batch-encoding.ts'
import type { BoardContext } from './context.ts'
import { type OwnerConnection, sessionExpiredError } from './owner-keys.ts'
import type { OwnerSession } from './owner-session.ts'
import type { Publications } from './publications.ts'
import type { ScriptStep } from './steps.ts'

/** Limits of a batch: other clients wait while Redis executes it. */
const MAX_BATCH = { items: 512, bytes: 1_024 * 1_024 }

/** The version that a board without a subscription sends as seen: it is larger than any, so the answer contains no changes. */
const UNSUBSCRIBED = Number.MAX_SAFE_INTEGER

/** The result of a step. */
export interface StepReply {
  readonly done: boolean
  /** Values that the script returns with the result. */
  readonly details: readonly unknown[]
  /** The session in which the step was executed. */
  readonly session: string
  /** Whether claims and resources of dead owners were released after the step was refused. */
  readonly wasReleasedSince: boolean
  /** Whether this is a repeated answer: the first one was lost, and its details may be out of date. */
  readonly isRepeated: boolean
}

/** The result of a step that has no answer yet. */
export const NO_REPLY: Result<StepReply> = { error: new Error('no answer yet') }

interface QueuedStep extends QueuedRequest {
  readonly step: ScriptStep
  readonly since: number
  readonly resolve: (answer: StepReply) => void
}

interface SentBatch {
  readonly number: number
  /** Identifies the batch whose answers are kept: the next batch uses the number of a refused one again. */
  readonly serial: number
  readonly session: string
  readonly waiting: readonly QueuedStep[]
  readonly steps: readonly Buffer[]
  readonly grows: boolean
  /** Resolves when the outcome of the batch is known, or stays unknown for ever. */
  readonly over: Deferred<void>
}

export class StepCommitter {
  readonly #context: BoardContext
  readonly #session: OwnerSession
  readonly #publications: Publications
  readonly #group: GroupCommit<QueuedStep>
  /** The batch that was sent and is not answered yet. */
  #batch: SentBatch | undefined
  #serial = 0
  #sending = false
  #timeoutTimer: NodeJS.Timeout | undefined

  constructor(
    context: BoardContext,
    { session, publications }: { readonly session: OwnerSession; readonly publications: Publications },
  ) {
    this.#context = context
    this.#session = session
    this.#publications = publications
    this.#group = new GroupCommit({
      send: (batch) => this.#sendBatch(batch),
      admits: withinLimits({ bytesOf: ({ step }) => step.bytes, limits: MAX_BATCH }),
      refusalOf: ({ step }) => (this.#isOfEarlierSession(step) ? claimLostError(step) : undefined),
      isReady: () => this.#isReady(),
    })
  }

  /**
   * Queues a step. Resolves with the answer of the script.
   *
   * @throws NotConnected, OutcomeUnknown, WritesRefused; ClaimLost for a step of a session that is over
   */
  submit(step: ScriptStep): Promise<StepReply> {
    return new Promise<StepReply>((resolve, reject) =>
      this.#group.enqueue({ step, since: monotonic(), resolve, reject }),
    )
  }

  /**
   * Queues several steps. Resolves with a result for each; a step that could not be built keeps its error as its result.
   *
   * All steps share one promise: a promise for each step would be the largest part of the cost of hundreds of claims.
   */
  submitAll(steps: readonly Result<ScriptStep>[]): Promise<Result<StepReply>[]> {
    const results = steps.map((step): Result<StepReply> => ('error' in step ? step : NO_REPLY))
    let left = 0
    const since = monotonic()
    return new Promise((resolveAll) => {
      for (const [index, step] of steps.entries()) {
        if ('error' in step) continue
        left += 1
        const settle = (result: Result<StepReply>) => {
          results[index] = result
          left -= 1
          if (left === 0) resolveAll(results)
        }
        const resolve = (value: StepReply) => settle({ value })
        this.#group.enqueue({ step: step.value, since, resolve, reject: (error) => settle(toFailed(error)) })
      }
      if (left === 0) resolveAll(results)
    })
  }

  /** Resolves when no step is pending. Without a connection, steps that were not sent are rejected first. */
  async idle(): Promise<void> {
    if (!this.#session.attached) this.#giveUp(Number.POSITIVE_INFINITY)
    await this.#group.idle
  }

  /** Continues on a new connection: the batch that was not answered is sent first. */
  attached(): void {
    clearTimeout(this.#timeoutTimer)
    this.#timeoutTimer = undefined
    const there = this.#session.attached
    if (there && this.#batch && !this.#sending) void this.#send(there, this.#batch)
    else this.#group.resume()
  }

  /** Rejects the steps of a lost session. */
  sessionLost(session: string): void {
    this.#leaveUnanswered()
    this.#group.rejectQueued(({ step }) => (step.session === session ? claimLostError(step) : undefined))
    this.#group.resume()
  }

  /** Rejects all steps: no further session will begin. */
  sessionsEnded(): void {
    this.#leaveUnanswered()
    this.#giveUp(Number.POSITIVE_INFINITY)
  }

  #isReady(): boolean {
    if (this.#sending) return false
    if (this.#session.attached) return true
    this.#timeoutTimer ??= startTimer(() => this.#expireWaiting(), this.#context.location.ttl).unref()
    return false
  }

  #isOfEarlierSession({ session }: ScriptStep): boolean {
    return session !== undefined && session !== this.#session.attached?.id
  }

  async #sendBatch(waiting: readonly QueuedStep[]): Promise<void> {
    const there = this.#session.attached
    if (!there) return this.#group.requeue(waiting)
    const steps = waiting.map(({ step }) => step)
    this.#serial += 1
    this.#batch = {
      number: there.acked + 1,
      serial: this.#serial,
      session: there.id,
      waiting,
      steps: encodeSteps(steps),
      grows: steps.some(({ grows }) => grows),
      over: createDeferred(),
    }
    void this.#send(there, this.#batch)
    await this.#batch.over.promise
  }

  async #send(there: OwnerConnection, batch: SentBatch): Promise<void> {
    const { layout, location } = this.#context
    const sentAt = systemClock()
    const head = encodeWords([
      batch.number,
      this.#publications.feed.seen ?? UNSUBSCRIBED,
      location.ttl,
      batch.grows,
      batch.serial,
    ])
    there.sent = batch.number
    this.#sending = true
    try {
      const args = [there.id, layout.channel, head, ...batch.steps]
      const answer = toList(await there.connection.run(SCRIPTS.commit, layout.keys(there.id), args))
      this.#sending = false
      this.#handleReply(there, batch, { answer, sentAt })
    } catch (error) {
      this.#sending = false
      this.#handleFailure(there, batch, asError(error))
    }
    this.#resume()
  }

  #handleReply(
    there: OwnerConnection,
    batch: SentBatch,
    { answer, sentAt }: { answer: readonly unknown[]; sentAt: Instant },
  ): void {
    if (this.#batch !== batch) return
    const { sink, damaged, onUnfinished } = this.#context
    const session = this.#session
    const [head, answers] = answer
    const [accepted, now, version, changes, paused, late, again, faults = [], unfinished, doomed] =
      decodeReply<BatchReply>(head)
    if (!accepted) {
      // This includes a missing key.
      session.markLost(sessionExpiredError(session.uri, Number(now)))
      return
    }
    there.acked = batch.number
    for (const fault of faults) damaged(fault)
    session.clock.observe(Number(now))
    // A repeated answer has not renewed the owner's key.
    if (!again) session.noteAnswer(there.id, sentAt)
    // The feed receives the changes before callers receive their answers.
    if (session.attached === there) this.#publications.feed.applyReply(changes, { version: Number(version), paused })
    if (doomed?.length) sink.doomed(doomed)
    if (unfinished) onUnfinished()
    // A receiver may have found the lease expired; then all waiting callers were rejected already.
    if (this.#batch !== batch) return
    this.#endBatch(batch)
    const dead = late.filter((id) => id !== there.id)
    const freeing =
      dead.length > 0 && session.attached === there ? session.releaseOwners(dead).catch(() => undefined) : undefined
    const results = decodeReply<BatchAnswers>(answers)
    const { session: id } = batch
    batch.waiting.forEach(({ resolve, step, reject }, index) => {
      const [done, ...rest] = results[index] ?? []
      if (done === undefined) reject(outcomeUnknownError(step))
      else if (!done && rest[0] === 'damaged') reject(damagedError(step, String(rest[1])))
      else if (done || !freeing)
        resolve({ done, details: rest, session: id, wasReleasedSince: false, isRepeated: again })
      else
        void freeing.then(() =>
          resolve({ done, details: rest, session: id, wasReleasedSince: true, isRepeated: again }),
        )
    })
  }

  #handleFailure(there: OwnerConnection, batch: SentBatch, error: Error): void {
    if (this.#batch !== batch) return
    const kind = toErrorKind(error)
    // The connection broke: the outcome is resolved on the next one.
    if (kind === undefined || kind === 'away' || kind === 'forgotten') return
    this.#endBatch(batch)
    there.sent = there.acked
    if (kind === 'refused') this.#handleRefusal(batch, error)
    else {
      this.#context.sink.error(error)
      for (const { step, reject } of batch.waiting) reject(outcomeUnknownError(step, error))
    }
  }

  /** Rejects a refused batch: nothing of it was executed. If memory is full, steps that need no memory are sent again. */
  #handleRefusal({ waiting, grows }: SentBatch, cause: Error): void {
    const full = grows && cause.message.includes('OOM')
    const again = full ? waiting.filter(({ step }) => !step.grows) : []
    this.#group.requeue(again)
    for (const { step, reject } of waiting) if (!full || step.grows) reject(writesRefusedError(step.what, cause))
  }

  /** Continues after an answer or a failure: sends an unanswered batch on the present connection, or the next batch. */
  #resume(): void {
    const there = this.#session.attached
    if (there && this.#batch?.session === there.id && !this.#sending) void this.#send(there, this.#batch)
    else this.#group.resume()
  }

  /** Rejects steps that waited too long for a connection; none of them was sent. */
  #expireWaiting(): void {
    this.#timeoutTimer = undefined
    if (this.#session.attached) return
    this.#giveUp(monotonic() - this.#context.location.ttl / 2)
    this.#group.resume()
  }

  #giveUp(latest: number): void {
    this.#group.rejectQueued(({ step, since }) => (since <= latest ? notConnectedError(step.what) : undefined))
  }

  #leaveUnanswered(): void {
    const batch = this.#batch
    if (!batch) return
    this.#endBatch(batch)
    for (const { step, reject } of batch.waiting) reject(outcomeUnknownError(step))
  }

  #endBatch(batch: SentBatch): void {
    this.#batch = undefined
    batch.over.resolve()
  }
}

function outcomeUnknownError({ what }: ScriptStep, cause?: Error): OutcomeUnknown {
  const message = `${what}: the session ended before Redis answered; it is unknown whether this was done`
  return new OutcomeUnknown(message, { cause })
}

function damagedError({ what }: ScriptStep, problem: string): WritesRefused {
  const why = `a key of the board is damaged (${problem})`
  return new WritesRefused(`${what}: ${why}; nothing was changed, repair or remove it`)
}

function claimLostError({ what, arguments: [name] }: ScriptStep): Error {
  // An entity is registered again with the next session.
  if (name === 'register') return notConnectedError(what)
  return refusalError(what, { why: 'over' })
}
