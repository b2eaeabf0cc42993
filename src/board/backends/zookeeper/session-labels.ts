/** Names for sessions, because their ids are secrets. */
import { ClaimLost } from '../../../core/errors.ts'
import type { Settlement } from '../../backend.ts'

export class SessionLabels {
  readonly #labels = new Map<bigint, string>()

  /** Given to it when it is first asked for. */
  labelFor(session: bigint): string {
    const label = this.#labels.get(session) ?? `session ${this.#labels.size + 1}`
    this.#labels.set(session, label)
    return label
  }

  /** Of the session that was asked for last for the first time; empty where none was. */
  get newest(): string {
    return [...this.#labels.values()].at(-1) ?? ''
  }

  /**
   * The session that granted the claim, if it is the one there is now.
   *
   * @throws ClaimLost
   */
  requireGranting({ session, kind, posting }: Settlement, { now }: { readonly now: bigint | undefined }): bigint {
    if (now !== undefined && this.labelFor(now) === session) return now
    throw new ClaimLost(`${kind} of job ${posting.uuid}: the session that claimed it is over; stop and write nothing`)
  }
}
