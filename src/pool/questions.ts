/**
 * Questions that a child asks about its work, and their answers: `Questions` in the child, `Answers` in the pool.
 *
 * A question ends with its answer, with a `drop` of the child, or with its work. What the pool does for a child that has died is ended, too:
 * no child would get the answer.
 */
import { createDeferred, type Deferred, rejectOnAbort } from '../core/async/abort.ts'
import { AbortFlag } from '../core/async/abort-flag.ts'
import { InvalidState } from '../core/errors.ts'
import { failureOf, toErrorOfClass } from '../core/failure.ts'
import type { FromChild, ToChild } from './protocol.ts'

/** The questions of one piece of work that may be open at once. */
const MAX_UNDER_WAY = 10_000

export type AnswerMessage = Extract<ToChild, { kind: 'answer' }>
type AskMessage = Extract<FromChild, { kind: 'ask' }>

/** The questions of one piece of work, in the child. */
export class Questions {
  readonly #number: number
  readonly #send: (message: FromChild) => Promise<void>
  readonly #open = new Map<number, Deferred<unknown>>()
  #count = 0

  /** @param number the number of the work */
  constructor(number: number, send: (message: FromChild) => Promise<void>) {
    this.#number = number
    this.#send = send
  }

  async ask(content: unknown, { signal }: { readonly signal: AbortSignal }): Promise<unknown> {
    signal.throwIfAborted()
    this.#count += 1
    const [number, question] = [this.#number, this.#count]
    const answer = createDeferred<unknown>()
    this.#open.set(question, answer)
    try {
      await this.#send({ kind: 'ask', number, question, content })
      return await rejectOnAbort(answer.promise, signal)
    } catch (error) {
      if (signal.aborted) void this.#send({ kind: 'drop', number, question }).catch(() => undefined)
      throw error
    } finally {
      this.#open.delete(question)
    }
  }

  onAnswer(message: AnswerMessage): void {
    const answer = this.#open.get(message.question)
    if ('failure' in message) answer?.reject(toErrorOfClass(message.failure))
    else answer?.resolve(message.result)
  }
}

/** The function that answers a question. @param options.signal fires when the answer is not needed any more */
export type OnAsk = (content: unknown, options: { readonly signal: AbortSignal }) => Promise<unknown>

/** The questions of one piece of work, in the pool. */
export class Answers {
  readonly #onAsk: OnAsk
  readonly #send: (message: AnswerMessage) => void
  readonly #underWay = new Map<number, AbortFlag>()

  constructor(onAsk: OnAsk, send: (message: AnswerMessage) => void) {
    this.#onAsk = onAsk
    this.#send = send
  }

  /** Begins to answer a question. @throws InvalidState for a number that is in use, and for too many */
  onQuestion(message: AskMessage): void {
    const { question } = message
    if (this.#underWay.has(question) || this.#underWay.size >= MAX_UNDER_WAY)
      throw new InvalidState(`question ${question} was asked before, or more than ${MAX_UNDER_WAY} are open`)
    void this.#answer(message)
  }

  async #answer({ number, question, content }: AskMessage): Promise<void> {
    const stop = new AbortFlag()
    this.#underWay.set(question, stop)
    const message = { kind: 'answer', number, question } as const
    try {
      const result = await this.#onAsk(content, { signal: stop.signal })
      if (!stop.aborted) this.#send({ ...message, result })
    } catch (error) {
      if (!stop.aborted) this.#send({ ...message, failure: failureOf(error) })
    } finally {
      this.#underWay.delete(question)
    }
  }

  /** Ends a question whose answer is not needed any more. */
  drop(question: number): void {
    this.#underWay.get(question)?.abort(new InvalidState('the answer is not needed any more'))
  }

  /** Ends all questions, because the work is over. */
  end(): void {
    for (const question of [...this.#underWay.keys()]) this.drop(question)
  }
}
