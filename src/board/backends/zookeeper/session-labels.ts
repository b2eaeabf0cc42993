import type { Settlement } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'

export class SessionLabels {
  readonly #labels = new Map<bigint, string>()

  /** Returns the label of a session. A session gets its label at the first call. */
  labelFor(session: bigint): string {
    const label = this.#labels.get(session) ?? `session ${this.#labels.size + 1}`
    this.#labels.set(session, label)
    return label
  }

  /** The label that was assigned last; empty if there is none yet. */
  get newest(): string {
    return [...this.#labels.values()].at(-1) ?? ''
  }

  /**
   * Returns the session that granted the claim, if it is the current session.
   *
   * @throws ClaimLost if another session granted it
   */
  requireGranting({ session, kind, posting }: Settlement, { now }: { readonly now: bigint | undefined }): bigint {
    if (now !== undefined && this.labelFor(now) === session) return now
    throw refusalError(`${kind} of job ${posting.uuid}`, { why: 'over' })
  }
}
