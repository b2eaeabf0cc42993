/**
 * The queues whose jobs a view holds. A process that claims from some queues reads no postings of the others, where the board can be read in
 * sections: their jobs stay outside the view, and only those that hold resources or slots of limits are read while they run.
 *
 * The scope is set by the first caller that claims, before the view is opened. It can only grow while the view is open, since each change
 * makes the view list the board again; a view that is closed forgets it.
 */
import type { BackendSections } from '../contract/index.ts'
import { DEFAULT_QUEUE, isSizeQueue, queueOf } from '../model/queues.ts'
import type { QueueChoice } from '../queue/served-queues.ts'

/** The queues of a view of all queues: a section that contains every job. */
export const ALL_QUEUES = ''

export class ViewScope {
  /** The choices of all callers; undefined for all queues. */
  #choices: readonly QueueChoice[] | undefined
  #isSet = false

  /** Whether the view leaves out the jobs of some queues. */
  get isRestricted(): boolean {
    return this.#choices !== undefined
  }

  /** Returns whether jobs of the queue belong to the view. */
  readonly includes = (queue: string): boolean => {
    return this.#choices === undefined || this.#choices.some((choice) => choice.includes(queue))
  }

  /**
   * Adds the queues of a caller; undefined for all queues. Returns whether the view has to list the board again.
   *
   * @param options.isOpen whether the view is open
   */
  add(choice: QueueChoice | undefined, { isOpen }: { readonly isOpen: boolean }): boolean {
    if (!this.#isSet && !isOpen) {
      this.#isSet = true
      this.#choices = choice && [choice]
      return true
    }
    this.#isSet = true
    if (!this.#choices || (choice && this.#choices.includes(choice))) return false
    this.#choices = choice && [...this.#choices, choice]
    return true
  }

  /** Forgets the callers, because the view was closed. */
  reset(): void {
    this.#isSet = false
    this.#choices = undefined
  }

  /** Returns the section of the board that has the jobs of a queue. */
  sectionOf(at: { readonly queue?: string | undefined }): string {
    return this.isRestricted ? queueOf(at) : ALL_QUEUES
  }

  /** Returns whether the view reads the section of the queue. Jobs that former releases posted with a size are in the default section. */
  readsSection(queue: string): boolean {
    if (this.includes(queue)) return true
    return (
      queue === DEFAULT_QUEUE &&
      (this.#choices ?? []).some(({ places }) => places.some(({ name }) => isSizeQueue(name)))
    )
  }

  /** Returns the sections to read. @throws NotConnected */
  async sections(board: Pick<BackendSections, 'queues'>): Promise<readonly string[]> {
    if (!this.#choices) return [ALL_QUEUES]
    const names = this.#choices.map((choice) => choice.names)
    const known = names.includes(undefined) ? (await board.queues()).map(({ queue }) => queue) : []
    const found = new Set([...names.flatMap((each) => each ?? []), ...known.filter(this.includes)])
    if (this.readsSection(DEFAULT_QUEUE)) found.add(DEFAULT_QUEUE)
    return [...found]
  }
}
