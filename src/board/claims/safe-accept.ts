/**
 * Calls the `accept` function of users safely. Any program may write postings, and one for which `accept` throws must not prevent
 * the claims of other jobs: its job is skipped, and the error is reported once.
 */
import { InvalidPosting } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { parseAcceptResult } from '../api/options.ts'
import type { Posting } from '../model/posting.ts'

/** The maximum number of remembered jobs whose error was reported. */
const MAX_REPORTED_JOBS = 1_000

export class SafeAccept {
  readonly #onError: (error: Error) => void
  readonly #reported = new Set<string>()

  constructor(options: { readonly onError: (error: Error) => void }) {
    this.#onError = options.onError
  }

  /**
   * Returns the result of `accept` for the posting; false if it throws.
   *
   * @throws InvalidArgument when it returns a promise, which is a mistake in `accept` and not in the posting
   */
  accepts(accept: (posting: Posting) => boolean, posting: Posting): boolean {
    let answer: unknown
    try {
      answer = accept(posting)
    } catch (error) {
      this.#report(posting, error)
      return false
    }
    return parseAcceptResult(answer)
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
