/**
 * Calls the `accept` function of users safely. Any program may write postings, and one for which `accept` throws must not prevent
 * the claims of other jobs: its job is skipped, and the error is reported once.
 */
import { InvalidPosting } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Posting } from '../model/posting/posting.ts'
import { isDropped, isSealed, unseal } from '../model/sealed.ts'
import { parseAcceptResult } from './claim-options.ts'

/** The maximum number of remembered jobs whose error was reported. */
const MAX_REPORTED_JOBS = 1_000

export class AcceptGuard {
  readonly #onError: (error: Error) => void
  readonly #reported = new Set<string>()
  /** The dropped details of jobs whose whole posting was read, and not accepted by the function. */
  readonly #declined = new WeakMap<object, WeakSet<object>>()

  constructor(options: { readonly onError: (error: Error) => void }) {
    this.#onError = options.onError
  }

  /**
   * Returns the result of `accept` for the posting; false if it throws. Returns true if it throws because it reads details that the view
   * has not kept: the claimer then reads the whole posting, and calls it again.
   *
   * @throws InvalidArgument when it returns a promise, which is a mistake in `accept` and not in the posting
   */
  accepts(accept: (posting: Posting) => boolean, posting: Posting): boolean {
    let answer: unknown
    try {
      answer = accept(posting)
    } catch (error) {
      const { details } = posting
      if (isDropped(details)) return !this.#declined.get(accept)?.has(details)
      // Sealed details cannot be cloned, for example: the function gets plain ones.
      if (isSealed(details)) return this.accepts(accept, { ...posting, details: unseal(details) })
      this.#report(posting, error)
      return false
    }
    return parseAcceptResult(answer)
  }

  /** Notes that `accept` has not accepted the whole posting of a job. `kept` is the part of the posting that the view has. */
  decline(accept: (posting: Posting) => boolean, kept: Posting): void {
    const declined = this.#declined.get(accept) ?? new WeakSet()
    this.#declined.set(accept, declined.add(kept.details))
  }

  #report({ uuid, name }: Posting, cause: unknown): void {
    if (this.#reported.has(uuid)) return
    const [oldest] = this.#reported
    if (this.#reported.size >= MAX_REPORTED_JOBS && oldest !== undefined) this.#reported.delete(oldest)
    this.#reported.add(uuid)
    const what = `job ${uuid} (${name}): accept threw ${describeError(cause)}`
    this.#onError(
      new InvalidPosting(`${what}; the job is not claimed here, correct accept or cancel the job`, { cause }),
    )
  }
}
