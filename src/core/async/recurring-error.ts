/** Distinguishes a new error from an error that recurs at each attempt, and that people need to read once. */
export class RecurringError {
  #message: string | undefined

  /** Returns whether the error differs from the one before, or an attempt has succeeded since. */
  isNew({ message }: Error): boolean {
    const isNew = message !== this.#message
    this.#message = message
    return isNew
  }

  /** Notes that an attempt has succeeded: the same error is new when it comes again. */
  clear(): void {
    this.#message = undefined
  }
}
