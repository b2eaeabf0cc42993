/**
 * `accept` is code of users, and postings are written by anybody: one that makes it throw must not keep all others from
 * being claimed. Its job is passed over, and the error is reported once.
 */
import { InvalidPosting } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { parseAcceptResult } from '../api/options.ts'
import type { Posting } from '../model/posting.ts'

/** How many jobs are remembered whose error was reported. */
const MAX_REPORTED_JOBS = 1_000

export class SafeAccept {
  readonly #onError: (error: Error) => void
  readonly #reported = new Set<string>()

  constructor(options: { readonly onError: (error: Error) => void }) {
    this.#onError = options.onError
  }

  /**
   * Asks `accept` about the posting; an error that it throws is a no.
   *
   * @throws InvalidArgument when it has answered with a promise, which is a mistake in `accept` and not in the posting
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
    const what = `job ${uuid} (${name}): accept has thrown ${describeError(cause)}`
    this.#onError(new InvalidPosting(`${what}; the job is not claimed here, mend accept or remove the job`, { cause }))
  }
}
