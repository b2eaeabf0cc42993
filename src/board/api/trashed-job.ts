/** A job in the trash: what was posted, who put it there, when and why. */
import { InvalidArgument } from '../../core/errors.ts'
import type { Failure } from '../../core/failure.ts'
import type { TrashedEntry } from '../backend.ts'
import { type Attempt, toAttempts } from '../model/attempts.ts'
import type { Details } from '../model/posting.ts'

/** A job in the trash: who put it there, when, and why. `board.restore` puts it back, `board.purge` removes it. */
export class TrashedJob {
  readonly #entry: TrashedEntry

  /** @internal */
  constructor(entry: TrashedEntry) {
    this.#entry = entry
  }

  get uuid(): string {
    return this.#entry.posting.uuid
  }

  get name(): string {
    return this.#entry.posting.name
  }

  /** May hold secrets: never print it whole. */
  get details(): Details {
    return this.#entry.posting.details
  }

  /** The logbook of the job. */
  get book(): { readonly uuid: string; readonly name: string } {
    return this.#entry.posting.book ?? { uuid: this.uuid, name: this.name }
  }

  get attempts(): readonly Attempt[] {
    return toAttempts(this.#entry.posting)
  }

  /** Who trashed it. */
  get who(): string {
    return this.#entry.who
  }

  get at(): Date {
    return this.#entry.at
  }

  get reason(): string {
    return this.#entry.reason
  }

  get failure(): Failure | undefined {
    return this.#entry.failure
  }

  /** @internal @throws InvalidArgument for what is none: a job, or a uuid */
  static entryFor(trashed: TrashedJob): TrashedEntry {
    if (!(#entry in Object(trashed)))
      throw new InvalidArgument('what lies in the trash is needed, as board.trashed() lists it')
    return trashed.#entry
  }

  toString(): string {
    return `trashed job ${this.uuid} (${this.name})`
  }
}
