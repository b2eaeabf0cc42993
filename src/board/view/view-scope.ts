/**
 * The queues whose jobs a view holds. A backend with *sections* can list the jobs of one queue alone. There, a process that claims from some
 * queues reads no waiting jobs of the others. It reads the running jobs of all queues that hold resources or slots of limits, because its own jobs
 * may wait for them.
 *
 * The first caller that claims sets the scope, before the view is opened. Each further queue makes the view list the board again, so the scope
 * does not shrink while the view is open: callers that take turns would list the board each time.
 */
import type { BackendSections } from '../contract/index.ts'
import { DEFAULT_QUEUE, QUEUES_OF_STORED_SIZES, queueOf } from '../model/queues.ts'
import type { QueueChoice } from '../queue/served-queues.ts'

/** The maximum number of queues that are remembered. */
const MAX_KNOWN = 1_000
/** The section that contains the jobs of all queues. */
export const ALL_QUEUES = ''

export class ViewScope {
  /** The choices of all callers by their texts; undefined for all queues, and before the first claim. */
  #choices: ReadonlyMap<string, QueueChoice> | undefined
  /** The queues that were asked for, and whether they belong to the view. */
  readonly #known = new Map<string, boolean>()
  #isSet = false

  /** Whether the view leaves out the jobs of some queues. */
  get isRestricted(): boolean {
    return this.#choices !== undefined
  }

  /** Returns whether jobs of the queue belong to the view. */
  readonly includes = (queue: string): boolean => {
    if (this.#choices === undefined) return true
    const known = this.#known.get(queue)
    if (known !== undefined) return known
    const isIncluded = [...this.#choices.values()].some((choice) => choice.includes(queue))
    // Other programs choose the names of queues. Without a limit they could fill the memory.
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(queue, isIncluded)
    return isIncluded
  }

  /**
   * Adds the queues of a caller; undefined for all queues. Returns whether the view has to list the board again.
   *
   * @param options.isOpen whether the view is open
   */
  add(choice: QueueChoice | undefined, { isOpen }: { readonly isOpen: boolean }): boolean {
    const isFirst = !this.#isSet && !isOpen
    this.#isSet = true
    if (!isFirst && (!this.#choices || (choice && this.#choices.has(choice.toString())))) return false
    this.#choices = choice && new Map([...(this.#choices ?? []), [choice.toString(), choice]])
    this.#known.clear()
    return true
  }

  /** Forgets the callers, because the view was closed. */
  reset(): void {
    this.#isSet = false
    this.#choices = undefined
    this.#known.clear()
  }

  /** Returns the section of the board that has the jobs of a queue. */
  sectionOf(at: { readonly queue?: string | undefined }): string {
    return this.isRestricted ? queueOf(at) : ALL_QUEUES
  }

  /** Returns whether the view reads the section of the queue. Jobs that former releases posted with a size are in the section of the default queue. */
  readsSection(queue: string): boolean {
    if (this.includes(queue)) return true
    return queue === DEFAULT_QUEUE && QUEUES_OF_STORED_SIZES.some(this.includes)
  }

  /** Returns the sections to read. @throws NotConnected */
  async sections(board: Pick<BackendSections, 'queues'>): Promise<readonly string[]> {
    if (!this.#choices) return [ALL_QUEUES]
    const names = [...this.#choices.values()].map((choice) => choice.names)
    // Only the board knows the queues that match a pattern.
    const hasPattern = names.includes(undefined)
    const known = hasPattern ? (await board.queues()).map(({ queue }) => queue) : []
    const found = new Set([...names.flatMap((each) => each ?? []), ...known.filter(this.includes)])
    if (this.readsSection(DEFAULT_QUEUE)) found.add(DEFAULT_QUEUE)
    return [...found]
  }
}
