/** The very errors that atoms threw in this engine: a failure in a record is only what was kept of one. */
export class ThrownErrors {
  /** By atom, the first first. */
  readonly #errors = new Map<string, unknown>()

  note(atom: string, error: unknown): void {
    if (!this.#errors.has(atom)) this.#errors.set(atom, error)
  }

  /** Removes the errors of past attempts, which were undone. */
  forgetUnless(stillCounts: (atom: string) => boolean): void {
    for (const atom of [...this.#errors.keys()]) if (!stillCounts(atom)) this.#errors.delete(atom)
  }

  /** Undefined where there is none; any value can be thrown. */
  get first(): { readonly error: unknown } | undefined {
    for (const error of this.#errors.values()) return { error }
    return undefined
  }
}
