/**
 * Sends steps to Redis, one group at a time, each in one call of one script. Steps that arrive meanwhile form the next group.
 *
 * Groups are numbered, and the owner's key keeps the number and the answers of the newest group. So a group whose answers
 * were lost is sent again, unchanged, on the next connection: the script executes it, or returns its former answers. It is
 * never sent in another session: the outcome of its steps is then unknown (OutcomeUnknown). Steps that were not sent yet
 * are refused, or are sent in the next session if that does no harm.
 */
import { createDeferred, type Deferred } from '../../../../core/async/abort.ts'
import { GroupCommit, withinLimits } from '../../../../core/async/group-commit.ts'
import { SharedResults } from '../../../../core/async/shared-results.ts'
import { asError, OutcomeUnknown, WritesRefused } from '../../../../core/errors.ts'
import type { Result } from '../../../../core/result.ts'
import { type Instant, monotonic, startTimer, systemClock } from '../../../../core/time.ts'
import { refusalError } from '../../../contract/refusals.ts'
import { notConnectedError, toErrorKind, writesRefusedError } from '../store/errors.ts'
import { decodeReply, toList } from '../store/replies.ts'
import { SCRIPTS } from '../store/scripts.ts'
import type { BoardContext } from './context.ts'
import { encodeSteps, encodeWords, type GroupAnswers, type GroupReply } from './group-encoding.ts'
import { type OwnerConnection, sessionExpiredError } from './owner-keys.ts'
import type { OwnerSession } from './owner-session.ts'
import type { Publications } from './publications.ts'
import { type QueuedStep, SharedStep, type StepReply } from './queued-steps.ts'
import type { ScriptStep } from './steps.ts'

/** Limits of a group: other clients wait while Redis executes it. */
const MAX_GROUP = { items: 512, bytes: 1_024 * 1_024 }

/** The version that a board without a subscription sends as seen: it is larger than any, so the answer contains no changes. */
const UNSUBSCRIBED = Number.MAX_SAFE_INTEGER

const NO_DETAILS: readonly unknown[] = []

interface SentGroup {
  readonly number: number
  /** Identifies the group whose answers are kept: the next group uses the number of a refused one again. */
  readonly serial: number
  readonly session: string
  readonly waiting: readonly QueuedStep[]
  readonly steps: readonly Buffer[]
  readonly grows: boolean
  /** Resolves when the outcome of the group is known, or stays unknown for ever. */
  readonly over: Deferred<void>
}

export class StepCommitter {
  readonly #context: BoardContext
  readonly #session: OwnerSession
  readonly #publications: Publications
  readonly #group: GroupCommit<QueuedStep>
  /** The group that was sent and is not answered yet. */
  #sent: SentGroup | undefined
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
      send: (group) => this.#sendGroup(group),
      admits: withinLimits({ bytesOf: ({ step }) => step.bytes, limits: MAX_GROUP }),
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
   */
  submitAll(steps: readonly Result<ScriptStep>[]): Promise<Result<StepReply>[]> {
    const results = new SharedResults<StepReply>(steps.length)
    const since = monotonic()
    for (const [index, step] of steps.entries())
      if ('error' in step) results.settle(index, step)
      else this.#group.enqueue(new SharedStep(step.value, since, { results, index }))
    return results.settled
  }

  /** Resolves when no step is pending. Without a connection, steps that were not sent are rejected first. */
  async idle(): Promise<void> {
    if (!this.#session.attached) this.#giveUp(Number.POSITIVE_INFINITY)
    await this.#group.idle
  }

  /** Continues on a new connection: the group that was not answered is sent first. */
  attached(): void {
    clearTimeout(this.#timeoutTimer)
    this.#timeoutTimer = undefined
    const attached = this.#session.attached
    if (attached && this.#sent && !this.#sending) void this.#send(attached, this.#sent)
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

  async #sendGroup(waiting: readonly QueuedStep[]): Promise<void> {
    const attached = this.#session.attached
    if (!attached) return this.#group.requeue(waiting)
    const steps = waiting.map(({ step }) => step)
    this.#serial += 1
    this.#sent = {
      number: attached.acked + 1,
      serial: this.#serial,
      session: attached.id,
      waiting,
      steps: encodeSteps(steps),
      grows: steps.some(({ grows }) => grows),
      over: createDeferred(),
    }
    void this.#send(attached, this.#sent)
    await this.#sent.over.promise
  }

  async #send(attached: OwnerConnection, group: SentGroup): Promise<void> {
    const { layout, location } = this.#context
    const sentAt = systemClock()
    const head = encodeWords([
      group.number,
      this.#publications.feed.seen ?? UNSUBSCRIBED,
      location.ttl,
      group.grows,
      group.serial,
    ])
    attached.sent = group.number
    this.#sending = true
    try {
      const args = [attached.id, layout.channel, head, ...group.steps]
      const answer = toList(await attached.connection.run(SCRIPTS.commit, layout.keys(attached.id), args))
      this.#sending = false
      this.#handleReply(attached, group, { answer, sentAt })
    } catch (error) {
      this.#sending = false
      this.#handleFailure(attached, group, asError(error))
    }
    this.#resume()
  }

  #handleReply(
    attached: OwnerConnection,
    group: SentGroup,
    { answer, sentAt }: { answer: readonly unknown[]; sentAt: Instant },
  ): void {
    if (this.#sent !== group) return
    const { sink, damaged, onUnfinished } = this.#context
    const session = this.#session
    const [head, answers] = answer
    const [accepted, now, version, changes, paused, late, again, faults = [], unfinished, doomed] =
      decodeReply<GroupReply>(head)
    if (!accepted) {
      // This includes a missing key.
      session.markLost(sessionExpiredError(session.uri, Number(now)))
      return
    }
    attached.acked = group.number
    for (const fault of faults) damaged(fault)
    session.clock.observe(Number(now))
    // A repeated answer has not renewed the owner's key.
    if (!again) session.noteAnswer(attached.id, sentAt)
    // The feed receives the changes before callers receive their answers.
    if (session.attached === attached) this.#publications.feed.applyReply(changes, { version: Number(version), paused })
    if (doomed?.length) sink.doomed(doomed)
    if (unfinished) onUnfinished()
    // A receiver may have found the lease expired; then all waiting callers were rejected already.
    if (this.#sent !== group) return
    this.#endGroup(group)
    const results = decodeReply<GroupAnswers>(answers)
    // Redis executes the next group while the callers of this one go on.
    this.#group.next()
    const dead = late.filter((id) => id !== attached.id)
    const freeing =
      dead.length > 0 && session.attached === attached ? session.endOwners(dead).catch(() => undefined) : undefined
    const { session: id } = group
    for (const [index, queued] of group.waiting.entries()) {
      const answer = results[index]
      const { step } = queued
      if (answer === undefined) {
        queued.reject(outcomeUnknownError(step))
        continue
      }
      const [done] = answer
      const details = answer.length === 1 ? NO_DETAILS : answer.slice(1)
      if (!done && details[0] === 'damaged') queued.reject(damagedError(step, String(details[1])))
      else if (done || !freeing)
        queued.resolve({ done, details, session: id, wasReleasedSince: false, isRepeated: again })
      else
        void freeing.then(() =>
          queued.resolve({ done, details, session: id, wasReleasedSince: true, isRepeated: again }),
        )
    }
  }

  #handleFailure(attached: OwnerConnection, group: SentGroup, error: Error): void {
    if (this.#sent !== group) return
    const kind = toErrorKind(error)
    // The connection broke: the outcome is resolved on the next one.
    if (kind === undefined || kind === 'away' || kind === 'forgotten') return
    this.#endGroup(group)
    attached.sent = attached.acked
    if (kind === 'refused') this.#handleRefusal(group, error)
    else {
      this.#context.sink.error(error)
      for (const queued of group.waiting) queued.reject(outcomeUnknownError(queued.step, error))
    }
  }

  /** Rejects a refused group: nothing of it was executed. If memory is full, steps that need no memory are sent again. */
  #handleRefusal({ waiting, grows }: SentGroup, cause: Error): void {
    const full = grows && cause.message.includes('OOM')
    const again = full ? waiting.filter(({ step }) => !step.grows) : []
    this.#group.requeue(again)
    for (const queued of waiting)
      if (!full || queued.step.grows) queued.reject(writesRefusedError(queued.step.what, cause))
  }

  /** Continues after an answer or a failure: sends an unanswered group on the present connection, or the next group. */
  #resume(): void {
    const attached = this.#session.attached
    if (attached && this.#sent?.session === attached.id && !this.#sending) void this.#send(attached, this.#sent)
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
    const group = this.#sent
    if (!group) return
    this.#endGroup(group)
    for (const queued of group.waiting) queued.reject(outcomeUnknownError(queued.step))
  }

  #endGroup(group: SentGroup): void {
    this.#sent = undefined
    group.over.resolve()
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
