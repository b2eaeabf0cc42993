/**
 * Sends steps to Redis: one batch at a time, in one call of one script. While it is being answered, what comes next gathers.
 *
 * Batches are numbered, and the owner's key keeps the number and the answers of the newest. So a batch whose answers were
 * lost is sent again on the next connection, as it was: the script does it, or answers what it answered before. It is never
 * sent in another session: then nobody can tell what became of it (OutcomeUnknown), and what was not sent yet is refused,
 * or goes with the next session where that does no harm.
 */
import { createDeferred } from '../../../core/async/abort.ts'
import { type Instant, systemClock } from '../../../core/clock.ts'
import { encodePlain } from '../../../core/codec.ts'
import { asError, ClaimLost, OutcomeUnknown, WritesRefused } from '../../../core/errors.ts'
import { monotonic } from '../../../core/time.ts'
import type { Result } from '../../backend.ts'
import { script } from './connection.ts'
import { notConnectedError, toErrorKind, writesRefusedError } from './errors.ts'
import type { Layout } from './layout.ts'
import { type OwnerConnection, sessionExpiredError } from './owner-keys.ts'
import { decodeReply, toList } from './replies.ts'
import { COMMIT_SOURCE } from './scripts/commit.ts'
import type { RedisSession } from './session.ts'
import type { ScriptStep } from './steps.ts'

const COMMIT_SCRIPT = script(COMMIT_SOURCE)
/** Others wait while Redis is busy with a batch. */
const MAX_BATCH_STEPS = 512
const MAX_BATCH_BYTES = 1_024 * 1_024

/** What a step came to. */
export interface StepReply {
  readonly done: boolean
  /** What the script has to tell of it. */
  readonly details: readonly unknown[]
  /** In which it was done. */
  readonly session: string
  /** What dead owners held is free since it was refused. */
  readonly wasReleasedSince: boolean
  /** It was done before: its first answer was lost, and what it tells may not be so any more. */
  readonly isRepeated: boolean
}

/** Until there is an answer. */
export const NO_REPLY: Result<StepReply> = { error: new Error('no answer yet') }

type BatchReply = readonly [
  accepted: boolean,
  now: string,
  version: string,
  changes: readonly string[] | false,
  paused: boolean,
  late: readonly string[],
  again: boolean,
  faults: readonly string[],
]

interface QueuedStep {
  readonly step: ScriptStep
  readonly since: number
  readonly resolve: (answer: StepReply) => void
  readonly reject: (error: Error) => void
}

interface SentBatch {
  readonly number: number
  /** A number that was refused is the next batch's: this tells whose answers are kept with it. */
  readonly serial: number
  readonly session: string
  readonly waiting: readonly QueuedStep[]
  readonly steps: readonly Buffer[]
  readonly grows: boolean
}

export interface CommitterOptions {
  readonly layout: Layout
  readonly ttl: number
  readonly session: () => RedisSession
  readonly onError: (error: Error) => void
  /** Called with what the script has found damaged, in a sentence. */
  readonly damaged: (fault: string) => void
}

export class Committer {
  readonly #options: CommitterOptions
  #queue: QueuedStep[] = []
  /** Sent, and not answered. */
  #batch: SentBatch | undefined
  #serial = 0
  #sending = false
  #scheduled = false
  #timeoutTimer: NodeJS.Timeout | undefined
  #idle = createDeferred()

  constructor(options: CommitterOptions) {
    this.#options = options
    this.#idle.resolve()
  }

  /**
   * @returns what the script answered
   * @throws NotConnected, OutcomeUnknown, WritesRefused; ClaimLost for a step of a session that is over
   */
  submit(step: ScriptStep): Promise<StepReply> {
    return new Promise<StepReply>((resolve, reject) => this.#enqueue({ step, since: monotonic(), resolve, reject }))
  }

  /**
   * One promise for them all: a promise for each is what hundreds of claims cost most. Each has its own result, and what
   * could not be made a step is its own.
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
        this.#enqueue({ step: step.value, since, resolve, reject: (error) => settle({ error }) })
      }
      if (left === 0) resolveAll(results)
    })
  }

  /** Resolves when nothing is under way. Without a connection nothing is waited for. */
  async idle(): Promise<void> {
    if (!this.#session.attached) this.#giveUp(Number.POSITIVE_INFINITY)
    await this.#idle.promise
  }

  /** There is a connection: what was not answered goes first. */
  attached(): void {
    clearTimeout(this.#timeoutTimer)
    this.#timeoutTimer = undefined
    const there = this.#session.attached
    if (there && this.#batch && !this.#sending) void this.#send(there, this.#batch)
    else this.#schedule()
  }

  /** The session is over. */
  sessionLost(session: string): void {
    this.#leaveUnanswered()
    this.#drop(({ step }) => step.session === session, claimLostError)
    this.#schedule()
    this.#notifyIdle()
  }

  /** There will be no session any more. */
  sessionsEnded(): void {
    this.#leaveUnanswered()
    this.#giveUp(Number.POSITIVE_INFINITY)
  }

  get #session(): RedisSession {
    return this.#options.session()
  }

  #enqueue(waiting: QueuedStep): void {
    const wasIdle = this.#queue.length === 0 && !this.#batch
    if (wasIdle) this.#idle = createDeferred()
    this.#queue.push(waiting)
    this.#schedule()
  }

  /** A turn later: what is asked for at the same time makes one batch. */
  #schedule(): void {
    if (this.#scheduled || this.#batch) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#next()
    })
  }

  #next(): void {
    if (this.#batch || this.#sending || this.#queue.length === 0) return
    const there = this.#session.attached
    if (!there) {
      this.#timeoutTimer ??= setTimeout(() => this.#expireWaiting(), this.#options.ttl).unref()
      return
    }
    this.#drop(({ step }) => step.session !== undefined && step.session !== there.id, claimLostError)
    const waiting = this.#queue.splice(0, this.#takeBatch())
    if (waiting.length === 0) {
      this.#notifyIdle()
      return
    }
    const steps = waiting.map(({ step }) => step)
    this.#serial += 1
    this.#batch = {
      number: there.acked + 1,
      serial: this.#serial,
      session: there.id,
      waiting,
      steps: toArguments(steps),
      grows: steps.some(({ grows }) => grows),
    }
    void this.#send(there, this.#batch)
  }

  #takeBatch(): number {
    let bytes = 0
    let count = 0
    for (const { step } of this.#queue) {
      bytes += step.bytes
      if (count >= MAX_BATCH_STEPS || (count > 0 && bytes > MAX_BATCH_BYTES)) break
      count += 1
    }
    return count
  }

  async #send(there: OwnerConnection, batch: SentBatch): Promise<void> {
    const { layout, ttl } = this.#options
    const { feed } = this.#session
    const sentAt = systemClock()
    const head = toBufferReply([batch.number, feed.seen ?? 0, ttl, batch.grows, batch.serial])
    there.sent = batch.number
    this.#sending = true
    try {
      const args = [there.id, layout.channel, head, ...batch.steps]
      const answer = toList(await there.connection.run(COMMIT_SCRIPT, layout.keys(there.id), args))
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
    const session = this.#session
    const [head, answers] = answer
    const [accepted, now, version, changes, paused, late, again, faults = []] = decodeReply<BatchReply>(head)
    if (!accepted) {
      // Also where the key is gone: what comes second is the number it knows.
      session.markLost(sessionExpiredError(session.uri, Number(now)))
      return
    }
    there.acked = batch.number
    for (const fault of faults) this.#options.damaged(fault)
    session.clock.observe(Number(now))
    // One that was done before has renewed nothing now.
    if (!again) session.noteAnswer(there.id, sentAt)
    // Heard before anybody goes on who waits for an answer.
    if (session.attached === there) session.feed.applyReply(changes, { version: Number(version), paused })
    // Whoever heard may have found out that the lease is over, and then all who waited were told.
    if (this.#batch !== batch) return
    this.#batch = undefined
    const dead = late.filter((id) => id !== there.id)
    const freeing =
      dead.length > 0 && session.attached === there ? session.releaseOwners(dead).catch(() => undefined) : undefined
    const results = decodeReply<readonly (readonly [boolean, ...unknown[]])[]>(answers)
    const { session: id } = batch
    batch.waiting.forEach(({ resolve, step, reject }, index) => {
      const [done, ...rest] = results[index] ?? []
      if (done === undefined) reject(outcomeUnknownError(step))
      else if (!done && rest[0] === 'damaged') reject(damaged(step, String(rest[1])))
      else if (done || !freeing)
        resolve({ done, details: rest, session: id, wasReleasedSince: false, isRepeated: again })
      else
        void freeing.then(() =>
          resolve({ done, details: rest, session: id, wasReleasedSince: true, isRepeated: again }),
        )
    })
    this.#notifyIdle()
  }

  #handleFailure(there: OwnerConnection, batch: SentBatch, error: Error): void {
    if (this.#batch !== batch) return
    const complaint = toErrorKind(error)
    // The connection broke: it is found out on the next one.
    if (complaint === undefined || complaint === 'away' || complaint === 'forgotten') return
    this.#batch = undefined
    there.sent = there.acked
    if (complaint === 'refused') this.#handleRefusal(batch, error)
    else {
      this.#options.onError(error)
      for (const { step, reject } of batch.waiting) reject(outcomeUnknownError(step, error))
    }
    this.#notifyIdle()
  }

  /** Nothing was done. What needs no memory is done without the rest. */
  #handleRefusal({ waiting, grows }: SentBatch, cause: Error): void {
    const full = grows && cause.message.includes('OOM')
    const again = full ? waiting.filter(({ step }) => !step.grows) : []
    this.#queue.unshift(...again)
    for (const { step, reject } of waiting) if (!full || step.grows) reject(writesRefusedError(step.what, cause))
  }

  /** There may be a connection since, or a session, or more to do. */
  #resume(): void {
    const there = this.#session.attached
    if (there && this.#batch?.session === there.id && !this.#sending) void this.#send(there, this.#batch)
    else this.#schedule()
  }

  /** Without a connection for so long: nothing that waits was sent. */
  #expireWaiting(): void {
    this.#timeoutTimer = undefined
    if (this.#session.attached) return
    this.#giveUp(monotonic() - this.#options.ttl / 2)
    this.#schedule()
  }

  #giveUp(since: number): void {
    this.#drop(
      (waiting) => waiting.since <= since,
      (step) => notConnectedError(step.what),
    )
    this.#notifyIdle()
  }

  #leaveUnanswered(): void {
    const batch = this.#batch
    this.#batch = undefined
    for (const { step, reject } of batch?.waiting ?? []) reject(outcomeUnknownError(step))
  }

  #drop(which: (waiting: QueuedStep) => boolean, why: (step: ScriptStep) => Error): void {
    const dropped = this.#queue.filter(which)
    if (dropped.length === 0) return
    this.#queue = this.#queue.filter((waiting) => !which(waiting))
    for (const { step, reject } of dropped) reject(why(step))
  }

  #notifyIdle(): void {
    if (this.#queue.length === 0 && !this.#batch) this.#idle.resolve()
  }
}

function outcomeUnknownError({ what }: ScriptStep, cause?: Error): OutcomeUnknown {
  const message = `${what}: the session ended before Redis had answered; nobody can tell whether it was done`
  return new OutcomeUnknown(message, { cause })
}

function damaged({ what }: ScriptStep, problem: string): WritesRefused {
  const why = `a key of the board holds what no board writes (${problem})`
  return new WritesRefused(`${what}: ${why}; nothing was changed, repair or remove it`)
}

function claimLostError({ what, arguments: [name] }: ScriptStep): Error {
  // An entity is registered again with the next session.
  if (name === 'register') return notConnectedError(what)
  return new ClaimLost(`${what}: the session that claimed it is over; stop and write nothing`)
}

/** Before the steps in the script's arguments, counted from 1. */
const HEADER_ARGUMENTS = 4

/** The steps, and behind them the bytes they are given. */
function toArguments(steps: readonly ScriptStep[]): readonly Buffer[] {
  const bytes: Buffer[] = []
  const words = steps.map((step) =>
    step.arguments.map((word) => (word instanceof Uint8Array ? HEADER_ARGUMENTS + bytes.push(toBuffer(word)) : word)),
  )
  return [toBufferReply(words), ...bytes]
}

function toBufferReply(value: unknown): Buffer {
  return toBuffer(encodePlain(value, 'msgpack'))
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
