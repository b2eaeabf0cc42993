/**
 * Reports unreadable values of the store, for example values that another program has written. A list leaves out an unreadable value, so that
 * the value never hides the others. Each value is reported once, because lists are read often.
 */
import { keepNewest } from '../../core/collections/keep-newest.ts'
import { InvalidPosting } from '../../core/errors.ts'

/** The number of values that are remembered as reported. */
const MAX_REPORTED = 1_000

export class UnreadableValues {
  readonly #onError: (error: Error) => void
  readonly #reported = new Set<string>()

  constructor({ onError }: { readonly onError: (error: Error) => void }) {
    this.#onError = onError
  }

  /** Reports the value that has this name in a list, such as `history`, and returns no value in its place. */
  leftOut(list: string, name: string): readonly never[] {
    const what = `${list}: ${JSON.stringify(name)}`
    if (this.#reported.has(what)) return []
    this.#reported.add(what)
    keepNewest(this.#reported, MAX_REPORTED)
    this.#onError(new InvalidPosting(`${what} is left out, because its record cannot be read`))
    return []
  }
}
