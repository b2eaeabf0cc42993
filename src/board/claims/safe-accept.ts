/**
 * `accept` is code of users, and postings are written by anybody: one that makes it throw must not keep all others from
 * being claimed. Its job is passed over, and the error is reported once.
 */
import { InvalidPosting } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { answerOf } from '../options.ts'
import type { Posting } from '../posting.ts'

/** How many jobs are remembered whose error was reported. */
const MOST_REPORTED = 1_000

export class SafeAccept {
  readonly #failed: (error: Error) => void
  readonly #reported = new Set<string>()

  constructor(options: { readonly failed: (error: Error) => void }) {
    this.#failed = options.failed
  }

  /**
   * Asks `accept` about the posting; an error that it throws is a no.
   *
   * @throws InvalidArgument when it has answered with a promise, which is a mistake in `accept` and not in the posting
   */
  ask(accept: (posting: Posting) => boolean, posting: Posting): boolean {
    let answer: unknown
    try {
      answer = accept(posting)
    } catch (error) {
      this.#report(posting, error)
      return false
    }
    return answerOf(answer)
  }

  #report({ uuid, name }: Posting, cause: unknown): void {
    if (this.#reported.has(uuid)) return
    const [oldest] = this.#reported
    if (this.#reported.size >= MOST_REPORTED && oldest !== undefined) this.#reported.delete(oldest)
    this.#reported.add(uuid)
    const what = `job ${uuid} (${name}): accept has thrown ${describeError(cause)}`
    this.#failed(new InvalidPosting(`${what}; the job is not claimed here, mend accept or remove the job`, { cause }))
  }
}
