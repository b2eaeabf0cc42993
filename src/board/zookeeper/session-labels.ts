/** Names for sessions, because their ids are secrets. */
export class SessionLabels {
  readonly #labels = new Map<bigint, string>()

  /** Given to it when it is first asked for. */
  of(session: bigint): string {
    const label = this.#labels.get(session) ?? `session ${this.#labels.size + 1}`
    this.#labels.set(session, label)
    return label
  }

  /** Of the session that was asked for last for the first time; empty where none was. */
  get newest(): string {
    return [...this.#labels.values()].at(-1) ?? ''
  }
}
