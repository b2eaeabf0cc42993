/** A job in the trash, as the public API shows it. */
import { type InspectOptions, inspect } from 'node:util'
import { InvalidArgument } from '../../core/errors.ts'
import type { Failure } from '../../core/failure.ts'
import type { TrashedEntry } from '../contract/index.ts'
import { type Attempt, countFailures, type OmittedAttempts, toAttempts, toOmittedAttempts } from '../model/attempts.ts'
import type { Priority } from '../model/claim-order.ts'
import type { DependencyEnd } from '../model/dependencies.ts'
import { isCancellation } from '../model/ended-job.ts'
import { isExpired } from '../model/expiry.ts'
import type { Details } from '../model/posting/posting.ts'
import { queueOf } from '../model/queues.ts'
import type { Resources } from '../model/resources.ts'
import { unseal } from '../model/sealed.ts'

/** A job in the trash, with owner, time and reason. `board.restore` moves it back to the queue, `board.purge` deletes it. */
export class TrashedJob {
  readonly #entry: TrashedEntry
  #details: Details | undefined

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

  /** The details of the job. They may contain secrets: never print them whole. */
  get details(): Details {
    this.#details ??= unseal(this.#entry.posting.details)
    return this.#details
  }

  /** The logbook of the job. */
  get book(): { readonly uuid: string; readonly name: string } {
    return this.#entry.posting.book ?? { uuid: this.uuid, name: this.name }
  }

  /** The jobs after which the job was to be run; empty for most jobs. */
  get after(): readonly { readonly uuid: string; readonly on: DependencyEnd }[] {
    return (this.#entry.posting.after ?? []).map(({ uuid, on }) => ({ uuid, on: on ?? 'done' }))
  }

  /** The uuid of the batch that counts the job; undefined where it is in none. */
  get batch(): string | undefined {
    return this.#entry.posting.batch
  }

  /** The key of the job; undefined where it has none. */
  get key(): string | undefined {
    return this.#entry.posting.key
  }

  /** The resources that the job owned while it ran; an empty object where it needed none. */
  get resources(): Resources {
    return this.#entry.posting.resources ?? {}
  }

  get priority(): Priority {
    return this.#entry.posting.priority
  }

  get queue(): string {
    return queueOf(this.#entry.posting)
  }

  /** The number of its runs. */
  get runs(): number {
    return this.#entry.posting.runs
  }

  /** The attempts, oldest first; not all of more than ten: see {@link omittedAttempts}. */
  get attempts(): readonly Attempt[] {
    return toAttempts(this.#entry.posting)
  }

  /** The numbers of attempts that {@link attempts} does not list, by how they ended; undefined if it lists all. */
  get omittedAttempts(): OmittedAttempts | undefined {
    return toOmittedAttempts(this.#entry.posting)
  }

  /** The number of attempts that have failed, listed or not. */
  get failedAttempts(): number {
    return countFailures(this.#entry.posting.attempts)
  }

  /** The owner name of the board that trashed the job. */
  get who(): string {
    return this.#entry.who
  }

  get at(): Date {
    return this.#entry.at
  }

  get reason(): string {
    return this.#entry.reason
  }

  /** Whether the job is in the trash because nobody started it in time (`expiresAfter`). */
  get expired(): boolean {
    return isExpired(this.#entry)
  }

  /** Whether the job was cancelled. */
  get cancelled(): boolean {
    return isCancellation(this.#entry.reason)
  }

  get failure(): Failure | undefined {
    return this.#entry.failure
  }

  /** @internal Returns the trash entry. @throws InvalidArgument for anything else, such as a job or a uuid */
  static entryFor(trashed: TrashedJob): TrashedEntry {
    if (!(#entry in Object(trashed)))
      throw new InvalidArgument('the argument must be a TrashedJob, as board.trashed() yields them')
    return trashed.#entry
  }

  /** Returns the job without its details, as `JSON.stringify` writes it. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { uuid, name, priority, runs, who, at, reason, cancelled } = this
    return { uuid, name, priority, runs, who, at, reason, cancelled }
  }

  /** Returns the text for `console.log`, without details. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `TrashedJob ${inspect(this.toJSON(), options)}`
  }

  toString(): string {
    return `trashed job ${this.uuid} (${this.name})`
  }
}
